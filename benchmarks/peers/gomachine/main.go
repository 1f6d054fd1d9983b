// Command gomachine mints with a Go library whose machine id is 1: `gomachine bwmarrin` or `gomachine sonyflake`. It
// obeys the lines that benchmarks/machine_ids/minter.py describes, and `behind SECONDS`: a generator made
// afterwards has an epoch that is later by so much, as if the clock were behind.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/bwmarrin/snowflake"
	"github.com/sony/sonyflake/v2"
)

const burst = 100

type minter func() (int64, error)

func newMinter(library string, behind time.Duration) (minter, error) {
	if library == "bwmarrin" {
		snowflake.Epoch = 1288834974657 + behind.Milliseconds()
		node, err := snowflake.NewNode(1)
		if err != nil {
			return nil, err
		}
		return func() (int64, error) { return node.Generate().Int64(), nil }, nil
	}
	one := func() (int, error) { return 1, nil }
	start := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC).Add(behind)
	generator, err := sonyflake.New(sonyflake.Settings{StartTime: start, MachineID: one})
	if err != nil {
		return nil, err
	}
	return generator.NextID, nil
}

func seconds(number float64) time.Duration {
	return time.Duration(number * float64(time.Second))
}

func unix(at time.Time) float64 {
	return float64(at.UnixMicro()) / 1e6
}

func mint(next minter, start, length float64) (string, error) {
	time.Sleep(seconds(start - unix(time.Now())))
	var ids strings.Builder
	began := time.Now()
	for time.Since(began) < seconds(length) {
		for i := 0; i < burst; i++ {
			id, err := next()
			if err != nil {
				return "", err
			}
			fmt.Fprintf(&ids, " %d", id)
		}
		time.Sleep(time.Millisecond)
	}
	return fmt.Sprintf("%f %f%s", unix(began), unix(time.Now()), ids.String()), nil
}

func rate(next minter, length float64) (string, error) {
	count, began := 0, time.Now()
	for time.Since(began) < seconds(length) {
		for i := 0; i < burst; i++ {
			if _, err := next(); err != nil {
				return "", err
			}
		}
		count += burst
	}
	return fmt.Sprint(float64(count) / time.Since(began).Seconds()), nil
}

func obey(library string) error {
	var next minter
	var behind time.Duration
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var verb, answer string
		var first, second float64
		fmt.Sscan(lines.Text(), &verb, &first, &second)
		if verb == "behind" {
			behind = seconds(first)
			fmt.Println()
			continue
		}
		var err error
		if next == nil {
			if next, err = newMinter(library, behind); err != nil {
				return err
			}
		}
		if verb == "mint" {
			answer, err = mint(next, first, second)
		} else {
			answer, err = rate(next, first)
		}
		if err != nil {
			return err
		}
		fmt.Println(answer)
	}
	return nil
}

func main() {
	if err := obey(os.Args[1]); err != nil {
		fmt.Println("error", err)
	}
}
