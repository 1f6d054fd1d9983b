// Command gosno measures one generator of the Go library sno under several goroutines: the time of one ID
// (wall time over all IDs) and how many IDs came out twice. It prints one JSON object a round.
package main

import (
	"encoding/json"
	"flag"
	"log"
	"os"
	"sync"
	"time"

	"github.com/muyo/sno"
)

type round struct {
	Goroutines int     `json:"goroutines"`
	IDs        int     `json:"ids"`
	NsPerID    float64 `json:"ns_per_id"`
	Duplicates int     `json:"duplicates"`
}

// mint takes ids IDs, rounded down to a multiple of goroutines, from one new generator.
func mint(goroutines, ids int) round {
	generator, err := sno.NewGenerator(nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	share := ids / goroutines
	minted := make([]sno.ID, share*goroutines)
	clear(minted) // touch every page before the clock starts
	begin := make(chan struct{})
	var done sync.WaitGroup
	for g := 0; g < goroutines; g++ {
		done.Add(1)
		go func(mine []sno.ID) {
			defer done.Done()
			<-begin
			for i := range mine {
				mine[i] = generator.New(0)
			}
		}(minted[g*share : (g+1)*share])
	}
	start := time.Now()
	close(begin)
	done.Wait()
	elapsed := time.Since(start)

	seen := make(map[sno.ID]struct{}, len(minted))
	for _, id := range minted {
		seen[id] = struct{}{}
	}
	return round{goroutines, len(minted), float64(elapsed.Nanoseconds()) / float64(len(minted)), len(minted) - len(seen)}
}

func main() {
	goroutines := flag.Int("goroutines", 2, "goroutines that share the generator")
	ids := flag.Int("ids", 1<<20, "IDs of one round")
	rounds := flag.Int("rounds", 5, "rounds, each of them with one goroutine first, then with all")
	flag.Parse()
	out := json.NewEncoder(os.Stdout)
	for r := 0; r < *rounds; r++ {
		for _, n := range []int{1, *goroutines} {
			if err := out.Encode(mint(n, *ids)); err != nil {
				log.Fatal(err)
			}
		}
	}
}
