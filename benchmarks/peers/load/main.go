// Command load offers requests to a server at a fixed rate and tells how long each answer took.
//
// The rate does not wait for the server: request number n is due at n/rate, and its time counts from then, not from
// when a connection was free for it. So a server that stands still is charged for all who would have come meanwhile
// ("coordinated omission" leaves them out). One thread spins over non-blocking sockets, as a timer would be late by as
// much as is measured. Where the thread itself was kept from its processor, it does not know when answers came: those
// under way are not counted, and the schedule moves by as much.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"
)

const alloc = `{"serviceName":"orders","count":1}`

var requests = map[string]string{
	"http": fmt.Sprintf("POST /alloc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		len(alloc), alloc),
	"redis": "*2\r\n$4\r\nINCR\r\n$6\r\norders\r\n",
}

// connection has at most one request under way.
type connection struct {
	fd     int
	due    time.Duration // of the request under way, by the clock
	unseen bool          // its answer may have come while the clock stood still
	read   []byte
}

// clock stands still while this thread is kept from its processor.
type clock struct {
	start, last time.Time
	all         []connection
}

// A system call on loopback takes a tenth of this.
const gap = 200 * time.Microsecond

func (c *clock) now() time.Duration {
	now := time.Now()
	if away := now.Sub(c.last); away > gap {
		c.start = c.start.Add(away)
		for i := range c.all {
			c.all[i].unseen = true
		}
	}
	c.last = now
	return now.Sub(c.start)
}

type report struct {
	Rate   float64 `json:"rate"` // answers a second
	Errors int     `json:"errors"`
	Unseen int     `json:"unseen"` // answers that are not counted
	P50    float64 `json:"p50_us"`
	P99    float64 `json:"p99_us"`
	P999   float64 `json:"p999_us"`
	Max    float64 `json:"max_us"`
}

// whole tells whether an answer is complete, and whether it is a good one.
func whole(protocol string, answer []byte) (complete, good bool) {
	if protocol == "redis" {
		return bytes.HasSuffix(answer, []byte("\r\n")), answer[0] == ':'
	}
	head, body, found := bytes.Cut(answer, []byte("\r\n\r\n"))
	if !found {
		return false, false
	}
	const name = "content-length: "
	at := bytes.Index(bytes.ToLower(head), []byte(name))
	if at < 0 {
		log.Fatalf("an answer without Content-Length: %q", answer)
	}
	digits, _, _ := bytes.Cut(head[at+len(name):], []byte("\r\n"))
	length, err := strconv.Atoi(string(digits))
	if err != nil {
		log.Fatal(err)
	}
	return len(body) >= length, bytes.Contains(body, []byte(`"code":0`))
}

func connect(port int) int {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err == nil {
		err = syscall.Connect(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	}
	if err == nil {
		err = syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
	}
	if err == nil {
		err = syscall.SetNonblock(fd, true)
	}
	if err != nil {
		log.Fatal(err)
	}
	return fd
}

func main() {
	port := flag.Int("port", 8080, "port on loopback")
	protocol := flag.String("protocol", "http", "http: POST /alloc; redis: INCR")
	rate := flag.Float64("rate", 1000, "requests a second")
	seconds := flag.Float64("seconds", 1, "how long to offer them")
	connections := flag.Int("connections", 32, "connections")
	flag.Parse()
	request := []byte(requests[*protocol])
	runtime.LockOSThread()

	poll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		log.Fatal(err)
	}
	all := make([]connection, *connections)
	idle := make([]int, 0, *connections)
	for i := range all {
		all[i] = connection{fd: connect(*port), read: make([]byte, 0, 4096)}
		event := syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(i)}
		if err := syscall.EpollCtl(poll, syscall.EPOLL_CTL_ADD, all[i].fd, &event); err != nil {
			log.Fatal(err)
		}
		idle = append(idle, i)
	}

	total := int(*rate * *seconds)
	took := make([]time.Duration, 0, total)
	events := make([]syscall.EpollEvent, *connections)
	errors, unseen := 0, 0
	runtime.GC()
	clock := clock{time.Now(), time.Now(), all}
	for sent := 0; len(took)+unseen < total; {
		for sent < total && len(idle) > 0 {
			due := time.Duration(float64(sent) / *rate * 1e9)
			if clock.now() < due {
				break
			}
			c := &all[idle[0]]
			idle = idle[1:]
			if n, err := syscall.Write(c.fd, request); err != nil || n != len(request) {
				log.Fatalf("wrote %d bytes: %v", n, err)
			}
			c.due, c.unseen = due, false
			sent++
		}
		n, err := syscall.EpollWait(poll, events, 0)
		if err != nil && err != syscall.EINTR {
			log.Fatal(err)
		}
		for _, event := range events[:max(n, 0)] {
			c := &all[event.Fd]
			n, err := syscall.Read(c.fd, c.read[len(c.read):cap(c.read)])
			if err == syscall.EAGAIN {
				continue
			}
			if err != nil || n == 0 {
				log.Fatalf("the server closed a connection: %v", err)
			}
			c.read = c.read[:len(c.read)+n]
			complete, good := whole(*protocol, c.read)
			if !complete {
				continue
			}
			if !good {
				errors++
			}
			now := clock.now()
			if c.unseen {
				unseen++
			} else {
				took = append(took, now-c.due)
			}
			c.read = c.read[:0]
			idle = append(idle, int(event.Fd))
		}
	}
	elapsed := clock.now()

	if len(took) < total/2 {
		log.Fatalf("%d of %d answers were not seen: the processor has other things to do", unseen, total)
	}
	slices.Sort(took)
	at := func(share float64) float64 { return float64(took[int(share*float64(len(took)-1))].Nanoseconds()) / 1e3 }
	err = json.NewEncoder(os.Stdout).Encode(report{
		float64(total) / elapsed.Seconds(), errors, unseen, at(0.5), at(0.99), at(0.999), at(1),
	})
	if err != nil {
		log.Fatal(err)
	}
}
