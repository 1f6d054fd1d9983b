import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.StringListOutput;
import io.lettuce.core.output.ValueOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import io.lettuce.core.protocol.ProtocolVersion;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** What a Java program does with the service: Lettuce unchanged. */
public final class UseLettuce {
    private enum Own implements ProtocolKeyword {
        MINT;

        @Override
        public byte[] getBytes() {
            return name().getBytes(StandardCharsets.US_ASCII);
        }
    }

    public static void main(String[] words) throws Exception {
        Program program = new Program(words);
        String namespace = program.namespace;
        var place = RedisURI.builder().withHost("127.0.0.1").withPort(program.port);
        RedisClient client = RedisClient.create(place.withPassword(program.key.toCharArray()).build());
        var version = program.isResp3 ? ProtocolVersion.RESP3 : ProtocolVersion.RESP2;
        client.setOptions(ClientOptions.builder().protocolVersion(version).build());
        try (StatefulRedisConnection<String, String> connection = client.connect()) {
            var calls = connection.sync();
            program.put("first", calls.incr(namespace));
            program.put("row", calls.incrby(namespace, 10));
            program.put("read", Long.valueOf(calls.get(namespace)));
            connection.setAutoFlushCommands(false);
            List<RedisFuture<Long>> replies = new ArrayList<>();
            for (int at = 0; at < 1000; at++) {
                replies.add(connection.async().incr(namespace));
            }
            connection.flushCommands();
            connection.setAutoFlushCommands(true);
            List<Long> many = new ArrayList<>();
            for (var reply : replies) {
                many.add(reply.get());
            }
            program.put("many", many);
            calls.multi();
            calls.incr(namespace);
            calls.incr(namespace);
            program.put("atomic", calls.exec());
            StringCodec codec = StringCodec.ASCII;
            program.put("id", calls.dispatch(Own.MINT, new ValueOutput<>(codec), new CommandArgs<>(codec).add("sno")));
            var three = new CommandArgs<>(codec).add("sno").add("COUNT").add(3);
            program.put("ids", calls.dispatch(Own.MINT, new StringListOutput<>(codec), three));
            program.refuse(() -> calls.set(namespace, "1"), RedisCommandExecutionException.class);
            program.again(() -> calls.incr(namespace));
        }
        client.shutdown();
    }
}
