// What a Go program does with the service: go-redis unchanged. Prints what it got as one line of JSON.
package main

import (
	"context"
	"encoding/json"
	"os"
	"strconv"

	"github.com/redis/go-redis/v9"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	port, protocol, namespace, key := os.Args[1], must(strconv.Atoi(os.Args[2])), os.Args[3], os.Args[4]
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, Protocol: protocol, Password: key, MaxRetries: -1})
	defer client.Close()

	first := must(client.Incr(ctx, namespace).Result())
	row := must(client.IncrBy(ctx, namespace, 10).Result())
	commands := must(client.Pipelined(ctx, func(pipeline redis.Pipeliner) error {
		for range 1000 {
			pipeline.Incr(ctx, namespace)
		}
		return nil
	}))
	many := make([]int64, len(commands))
	for at, command := range commands {
		many[at] = command.(*redis.IntCmd).Val()
	}
	queued := must(client.TxPipelined(ctx, func(pipeline redis.Pipeliner) error {
		pipeline.Incr(ctx, namespace)
		pipeline.Incr(ctx, namespace)
		return nil
	}))
	atomic := []int64{queued[0].(*redis.IntCmd).Val(), queued[1].(*redis.IntCmd).Val()}
	id := must(client.Do(ctx, "MINT", "sno").Text())
	ids := must(client.Do(ctx, "MINT", "sno", "COUNT", 3).StringSlice())
	refused := client.Set(ctx, namespace, "1", 0).Err().Error()
	if err := json.NewEncoder(os.Stdout).Encode(map[string]any{
		"first": first, "row": row, "many": many, "atomic": atomic, "id": id, "ids": ids, "refused": refused,
	}); err != nil {
		panic(err)
	}
}
