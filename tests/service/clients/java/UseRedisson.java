import java.util.List;
import org.redisson.Redisson;
import org.redisson.api.BatchOptions;
import org.redisson.api.BatchOptions.ExecutionMode;
import org.redisson.api.RBatch;
import org.redisson.api.RedissonClient;
import org.redisson.client.RedisException;
import org.redisson.client.codec.StringCodec;
import org.redisson.client.protocol.RedisStrictCommand;
import org.redisson.client.protocol.decoder.ObjectListReplayDecoder;
import org.redisson.config.Config;
import org.redisson.config.Protocol;

/** What a Java program does with the service: Redisson unchanged. */
public final class UseRedisson {
    public static void main(String[] words) throws Exception {
        Program program = new Program(words);
        Config config = new Config().setPassword(program.key);
        config.setProtocol(program.isResp3 ? Protocol.RESP3 : Protocol.RESP2);
        config.useSingleServer().setAddress("redis://127.0.0.1:" + program.port);
        RedissonClient client = Redisson.create(config);
        var counter = client.getAtomicLong(program.namespace);

        program.put("first", counter.incrementAndGet());
        program.put("row", counter.addAndGet(10));
        program.put("read", counter.get());
        program.put("many", batch(client, program.namespace, ExecutionMode.IN_MEMORY, 1000));
        program.put("atomic", batch(client, program.namespace, ExecutionMode.REDIS_WRITE_ATOMIC, 2));
        // Redisson has no call for a command that it does not know; its own objects send theirs in this way.
        var sender = ((Redisson) client).getCommandExecutor();
        var one = new RedisStrictCommand<String>("MINT");
        program.put("id", sender.get(sender.writeAsync("", StringCodec.INSTANCE, one, "sno")));
        var three = new RedisStrictCommand<List<String>>("MINT", new ObjectListReplayDecoder<>());
        program.put("ids", sender.get(sender.writeAsync("", StringCodec.INSTANCE, three, "sno", "COUNT", 3)));
        program.refuse(() -> { counter.set(1); return null; }, RedisException.class);
        program.again(counter::incrementAndGet);
        client.shutdown();
    }

    private static List<?> batch(RedissonClient client, String namespace, ExecutionMode mode, int count) {
        RBatch batch = client.createBatch(BatchOptions.defaults().executionMode(mode));
        for (int at = 0; at < count; at++) {
            batch.getAtomicLong(namespace).incrementAndGetAsync();
        }
        return batch.execute().getResponses();
    }
}
