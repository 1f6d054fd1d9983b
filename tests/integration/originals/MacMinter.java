import java.io.BufferedReader;
import java.io.InputStreamReader;

/**
 * A fleet of hosts that number themselves by a hash of their MAC addresses. The arguments are the addresses of a host each, joined by
 * a comma. For each line that it reads, each host mints as many IDs as the line says, and a line of output has them all.
 */
public final class MacMinter {
    private static final long EPOCH_MS = 1_420_070_400_000L;

    private final long node;
    private long last = -1;
    private long count;

    private MacMinter(String addresses) {
        node = addresses.replaceAll("[^0-9A-Fa-f]", "").toUpperCase().hashCode() & 1023;
    }

    private long mint() {
        long now = System.currentTimeMillis() - EPOCH_MS;
        while (now < last || (now == last && count == 4095)) {
            now = System.currentTimeMillis() - EPOCH_MS;
        }
        count = now == last ? count + 1 : 0;
        last = now;
        return now << 22 | node << 12 | count;
    }

    public static void main(String[] hosts) throws Exception {
        MacMinter[] fleet = new MacMinter[hosts.length];
        for (int i = 0; i < hosts.length; i++) {
            fleet[i] = new MacMinter(hosts[i]);
        }
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            StringBuilder minted = new StringBuilder();
            for (MacMinter host : fleet) {
                for (int i = Integer.parseInt(line); i > 0; i--) {
                    minted.append(host.mint()).append(' ');
                }
            }
            System.out.println(minted);
        }
    }
}
