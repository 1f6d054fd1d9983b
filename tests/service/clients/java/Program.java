import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;

/** The common part of the three programs: the words of the command line, and what the program got, as JSON. */
final class Program {
    final int port;
    final boolean isResp3;
    final String namespace;
    final String key;
    private final Map<String, Object> got = new LinkedHashMap<>();

    Program(String[] words) {
        port = Integer.parseInt(words[0]);
        isResp3 = words[1].equals("3");
        namespace = words[2];
        key = words[3];
    }

    /** Keeps what the program got: a number, a text, or a list of them. */
    void put(String name, Object value) {
        got.put(name, value);
    }

    /** Keeps the error of a call that must fail, and whether it is of the client's class for errors of the server. */
    void refuse(Callable<?> call, Class<? extends Exception> type) {
        try {
            put("refused", String.valueOf(call.call()));
            put("is_typed", false);
        } catch (Exception error) {
            put("refused", String.valueOf(error.getMessage()));
            put("is_typed", type.isInstance(error));
        }
    }

    /** Prints a line of JSON with all that was kept, and forgets it. */
    void print() {
        List<String> parts = new ArrayList<>();
        got.forEach((name, value) -> parts.add(quoted(name) + ": " + json(value)));
        System.out.println("{" + String.join(", ", parts) + "}");
        System.out.flush();
        got.clear();
    }

    /** Waits for a line, calls until no error comes, and prints the result. */
    void again(Callable<Long> call) throws Exception {
        print();
        if (System.in.read() < 0) {
            throw new IllegalStateException("the input ended");
        }
        for (int tries = 0; ; tries++) {
            try {
                put("again", call.call());
                print();
                return;
            } catch (Exception error) {
                if (tries == 100) {
                    throw error;
                }
                Thread.sleep(100);
            }
        }
    }

    private static String json(Object value) {
        if (value instanceof Iterable<?> values) {
            List<String> parts = new ArrayList<>();
            values.forEach(each -> parts.add(json(each)));
            return "[" + String.join(", ", parts) + "]";
        }
        return value instanceof Number || value instanceof Boolean ? value.toString() : quoted(value.toString());
    }

    private static String quoted(String text) {
        return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"").replaceAll("\\p{Cntrl}", " ") + '"';
    }
}
