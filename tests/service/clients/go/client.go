// What a Go program does with the service: go-redis unchanged. Prints what it got as JSON, a line before and one after a pause.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
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
	port, protocol, namespace, key := os.Args[1], must(strconv.Atoi(os.Args[2])), os.Args[3], os.Args[4]
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, Protocol: protocol, Password: key, MaxRetries: -1})
	defer client.Close()

	first := must(client.Incr(ctx, namespace).Result())
	row := must(client.IncrBy(ctx, namespace, 10).Result())
	read := must(client.Get(ctx, namespace).Int64())
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
	refused := client.Set(ctx, namespace, "1", 0).Err()
	var typed redis.Error
	show(map[string]any{
		"first": first, "row": row, "read": read, "many": many, "atomic": atomic, "id": id, "ids": ids,
		"refused": refused.Error(), "is_typed": errors.As(refused, &typed),
	})

	must(bufio.NewReader(os.Stdin).ReadString('\n'))
	again, err := client.Incr(ctx, namespace).Result()
	for tries := 0; err != nil && tries < 100; tries++ {
		time.Sleep(100 * time.Millisecond)
		again, err = client.Incr(ctx, namespace).Result()
	}
	show(map[string]any{"again": must(again, err)})
}
