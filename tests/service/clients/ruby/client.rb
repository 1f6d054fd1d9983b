# What a Ruby program does with the service: redis-rb unchanged. Prints what it got as JSON, a line before and one after a pause.
require "json"
require "redis"

$stdout.sync = true
port, _, namespace, key = ARGV
client = Redis.new(host: "127.0.0.1", port: port.to_i, password: key)

got = { first: client.incr(namespace), row: client.incrby(namespace, 10), read: client.get(namespace).to_i }
got[:many] = client.pipelined { |pipeline| 1000.times { pipeline.incr(namespace) } }
got[:atomic] = client.multi { |transaction| 2.times { transaction.incr(namespace) } }
got[:id] = client.call("MINT", "sno")
got[:ids] = client.call("MINT", "sno", "COUNT", "3")
begin
  client.set(namespace, "1")
rescue Redis::BaseError => e
  got[:refused] = e.message
  got[:is_typed] = e.is_a?(Redis::CommandError)
end
puts got.to_json

$stdin.gets
tries = 0
begin
  puts({ again: client.incr(namespace) }.to_json)
rescue Redis::BaseConnectionError
  raise if (tries += 1) > 100

  sleep 0.1
  retry
end
