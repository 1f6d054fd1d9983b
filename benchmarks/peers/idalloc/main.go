// Command idalloc runs the ID server of the Go library idalloc as its README configures it.
package main

import (
	"database/sql"
	"errors"
	"flag"
	"log"

	"github.com/daemon-coder/idalloc/app/server"
	"github.com/daemon-coder/idalloc/definition"
	_ "github.com/go-sql-driver/mysql"
	"github.com/kataras/iris/v12"
	"github.com/redis/go-redis/v9"
)

// From resource/tables.sql of idalloc.
const table = "CREATE TABLE IF NOT EXISTS tbl_alloc_info (" +
	"service_name VARCHAR(64) NOT NULL PRIMARY KEY, " +
	"last_alloc_value BIGINT UNSIGNED NOT NULL DEFAULT 0, " +
	"data_version BIGINT UNSIGNED NOT NULL DEFAULT 0" +
	") ENGINE = InnoDB CHARACTER SET = utf8mb4"

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address to listen on")
	dsn := flag.String("mysql", "", "data source name, such as user:password@tcp(127.0.0.1:3306)/idalloc")
	address := flag.String("redis", "127.0.0.1:6379", "address of Redis")
	level := flag.String("log-level", "INFO", "log level; at INFO it writes lines for each request")
	qps := flag.Int("qps", 0, "requests a second before it refuses; 0: never, or that would be what is measured")
	flag.Parse()

	database, err := sql.Open("mysql", *dsn)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := database.Exec(table); err != nil {
		log.Fatal(err)
	}
	s := server.NewServer(&definition.Config{
		AppName:                   "idalloc",
		DB:                        database,
		Redis:                     redis.NewClient(&redis.Options{Addr: *address}),
		UsePprof:                  true,
		UsePrometheus:             true,
		LogLevel:                  *level,
		RateLimit:                 definition.RateLimit{Enable: *qps > 0, Qps: *qps},
		SyncRedisAndDBChanSize:    10000,
		SyncRedisAndDBThreadNum:   10,
		RedisBatchAllocNum:        10000,
		WriteDBEveryNVersion:      10,
		RecoverRedisEveryNVersion: 100,
	})
	// What s.Run() does, which would listen at all addresses: it has no authentication.
	s.RedisAllocHandler.Start()
	s.AllocHandler.Start()
	err = s.IrisApp.Run(iris.Addr(*listen), iris.WithCharset("UTF-8"), iris.WithoutStartupLog)
	s.AllocHandler.Shutdown()
	s.RedisAllocHandler.Shutdown()
	if err != nil && !errors.Is(err, iris.ErrServerClosed) {
		log.Fatal(err)
	}
}
