// Command snominter mints with the Go library sno. It reads a request of JSON a line, and writes its answer, a line.
package main

import (
	"bufio"
	"encoding/json"
	"log"
	"os"

	"github.com/muyo/sno"
)

type request struct {
	Snapshot *sno.GeneratorSnapshot `json:"snapshot"` // of a new generator; without it, Go takes its default partition
	Begin    bool                   `json:"begin"`    // true to begin with a new generator
	Mint     int                    `json:"mint"`     // the number of IDs
	Meta     byte                   `json:"meta"`
}

type answer struct {
	IDs      []sno.ID              `json:"ids"`
	Snapshot sno.GeneratorSnapshot `json:"snapshot"`
}

func main() {
	var generator *sno.Generator
	lines, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var asked request
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			log.Fatal(err)
		}
		if asked.Begin {
			var err error
			if generator, err = sno.NewGenerator(asked.Snapshot, nil); err != nil {
				log.Fatal(err)
			}
		}
		minted := make([]sno.ID, asked.Mint)
		for i := range minted {
			minted[i] = generator.New(asked.Meta)
		}
		if err := out.Encode(answer{minted, generator.Snapshot()}); err != nil {
			log.Fatal(err)
		}
	}
}
