// What a Go program does with the service: rueidis unchanged. Prints what it got as JSON, a line before and one after a pause.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"time"

	"github.com/redis/rueidis"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func show(got map[string]any) {
	if err := json.NewEncoder(os.Stdout).Encode(got); err != nil {
		panic(err)
	}
}

func main() {
	port, protocol, namespace, key := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	ctx := context.Background()
	client := must(rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{"127.0.0.1:" + port}, Password: key, DisableCache: true, AlwaysRESP2: protocol == "2",
	}))
	defer client.Close()
	incr := func() rueidis.Completed { return client.B().Incr().Key(namespace).Build() }

	first := must(client.Do(ctx, incr()).AsInt64())
	row := must(client.Do(ctx, client.B().Incrby().Key(namespace).Increment(10).Build()).AsInt64())
	read := must(client.Do(ctx, client.B().Get().Key(namespace).Build()).AsInt64())
	commands := make(rueidis.Commands, 1000)
	for at := range commands {
		commands[at] = incr()
	}
	many := make([]int64, len(commands))
	for at, reply := range client.DoMulti(ctx, commands...) {
		many[at] = must(reply.AsInt64())
	}
	var atomic []int64
	must(0, client.Dedicated(func(own rueidis.DedicatedClient) error {
		replies := own.DoMulti(ctx, own.B().Multi().Build(), incr(), incr(), own.B().Exec().Build())
		atomic = must(replies[3].AsIntSlice())
		return nil
	}))
	id := must(client.Do(ctx, client.B().Arbitrary("MINT", "sno").Build()).ToString())
	ids := must(client.Do(ctx, client.B().Arbitrary("MINT", "sno", "COUNT", "3").Build()).AsStrSlice())
	refused := client.Do(ctx, client.B().Set().Key(namespace).Value("1").Build()).Error()
	_, typed := rueidis.IsRedisErr(refused)
	show(map[string]any{
		"first": first, "row": row, "read": read, "many": many, "atomic": atomic, "id": id, "ids": ids,
		"refused": refused.Error(), "is_typed": typed,
	})

	must(bufio.NewReader(os.Stdin).ReadString('\n'))
	again, err := client.Do(ctx, incr()).AsInt64()
	for tries := 0; err != nil && tries < 100; tries++ {
		time.Sleep(100 * time.Millisecond)
		again, err = client.Do(ctx, incr()).AsInt64()
	}
	show(map[string]any{"again": must(again, err)})
}
