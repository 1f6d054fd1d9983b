import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.stream.IntStream;
import redis.clients.jedis.AbstractPipeline;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisDataException;

/** What a Java program does with the service: Jedis unchanged. */
public final class UseJedis {
    public static void main(String[] words) throws Exception {
        Program program = new Program(words);
        String namespace = program.namespace;
        ProtocolCommand mint = () -> "MINT".getBytes(StandardCharsets.US_ASCII);
        var config = DefaultJedisClientConfig.builder()
            .password(program.key)
            .protocol(program.isResp3 ? RedisProtocol.RESP3 : RedisProtocol.RESP2)
            .build();
        var builder = RedisClient.builder().hostAndPort(new HostAndPort("127.0.0.1", program.port)).clientConfig(config);
        try (RedisClient client = builder.build()) {
            program.put("first", client.incr(namespace));
            program.put("row", client.incrBy(namespace, 10));
            program.put("read", Long.valueOf(client.get(namespace)));
            try (AbstractPipeline pipeline = client.pipelined()) {
                var many = IntStream.range(0, 1000).mapToObj(at -> pipeline.incr(namespace)).toList();
                pipeline.sync();
                program.put("many", many.stream().map(reply -> reply.get()).toList());
            }
            try (AbstractTransaction transaction = client.multi()) {
                transaction.incr(namespace);
                transaction.incr(namespace);
                program.put("atomic", transaction.exec());
            }
            program.put("id", text(client.sendCommand(mint, "sno")));
            List<?> ids = (List<?>) client.sendCommand(mint, "sno", "COUNT", "3");
            program.put("ids", ids.stream().map(UseJedis::text).toList());
            program.refuse(() -> client.set(namespace, "1"), JedisDataException.class);
            program.again(() -> client.incr(namespace));
        }
    }

    private static String text(Object reply) {
        return new String((byte[]) reply, StandardCharsets.US_ASCII);
    }
}
