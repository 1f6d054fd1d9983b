import cn.hutool.core.lang.Snowflake;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Date;
import java.util.function.LongSupplier;
import me.ahoo.cosid.snowflake.ClockSyncSnowflakeId;
import me.ahoo.cosid.snowflake.MillisecondSnowflakeId;

/**
 * Mints with a Java library whose machine id is 1: `cosid` or `hutool`. It obeys the lines that
 * benchmarks/machine_ids/minter.py describes, and `behind SECONDS`: a generator made afterwards has an epoch that is
 * later by so much, as if the clock were behind.
 */
public final class Machine {
    private static final int BURST = 100;
    private static final boolean IS_FAKED = System.getenv("FAKETIME_TIMESTAMP_FILE") != null;
    private static final long EPOCH_MS = 1_577_836_800_000L;

    private static LongSupplier minter(String library, double behind) {
        long epochMs = EPOCH_MS + (long) (behind * 1e3);
        if (library.equals("cosid")) {
            return new ClockSyncSnowflakeId(new MillisecondSnowflakeId(epochMs, 41, 10, 12, 1))::generate;
        }
        return new Snowflake(new Date(epochMs), 1, 0, false)::nextId;
    }

    /** Waits for a millisecond; under libfaketime, `Thread.sleep` can take seconds. */
    private static void pause() throws InterruptedException {
        if (!IS_FAKED) {
            Thread.sleep(1);
        }
        for (long began = System.nanoTime(); IS_FAKED && System.nanoTime() - began < 1_000_000; ) {
            Thread.onSpinWait();
        }
    }

    private static String mint(LongSupplier next, double start, double seconds) throws InterruptedException {
        long early = (long) (start * 1e3) - System.currentTimeMillis();
        if (early > 0) {
            Thread.sleep(early);
        }
        StringBuilder ids = new StringBuilder();
        double beganAt = System.currentTimeMillis() / 1e3;
        long began = System.nanoTime();
        while (System.nanoTime() - began < seconds * 1e9) {
            for (int i = 0; i < BURST; i++) {
                ids.append(' ').append(next.getAsLong());
            }
            pause();
        }
        return String.format("%.3f %.3f%s", beganAt, System.currentTimeMillis() / 1e3, ids);
    }

    private static String rate(LongSupplier next, double seconds) {
        long count = 0;
        long began = System.nanoTime();
        while (System.nanoTime() - began < seconds * 1e9) {
            for (int i = 0; i < BURST; i++) {
                next.getAsLong();
            }
            count += BURST;
        }
        return String.valueOf(count / ((System.nanoTime() - began) / 1e9));
    }

    public static void main(String[] words) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        LongSupplier next = null;
        double behind = 0;
        try {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] asked = line.split(" ");
                double first = Double.parseDouble(asked[1]);
                if (asked[0].equals("behind")) {
                    behind = first;
                    System.out.println();
                    continue;
                }
                next = next == null ? minter(words[0], behind) : next;
                boolean mints = asked[0].equals("mint");
                System.out.println(mints ? mint(next, first, Double.parseDouble(asked[2])) : rate(next, first));
            }
        } catch (RuntimeException error) {
            System.out.println("error " + error.getMessage().replace('\n', ' '));
        }
    }
}
