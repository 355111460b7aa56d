import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** A service with a known leak: sessions that are never removed. The argument says how many. */
public class Leak {
    static final class Session {
        final byte[] state = new byte[200];
        final String user;

        Session(int n) {
            user = "user-" + n;
        }
    }

    /** Keeps every session there ever was. */
    static final class Registry {
        static final Registry INSTANCE = new Registry();
        final Map<String, Session> sessions = new ConcurrentHashMap<>();
    }

    /** Caches come and go: they do not grow from one dump to the next. */
    static final class Cache {
        static final Cache INSTANCE = new Cache();
        final Map<Integer, int[]> pages = new HashMap<>();
    }

    static final List<Object> noise = new ArrayList<>();

    public static void main(String[] args) {
        int leaked = Integer.parseInt(args[0]);
        for (int i = 0; i < leaked; i++) {
            Registry.INSTANCE.sessions.put("session-" + i, new Session(i));
        }
        for (int i = 0; i < 500; i++) {
            Cache.INSTANCE.pages.put(i * 7 + leaked, new int[400]);
        }
        // Something else grows too, but less.
        for (int i = 0; i < 1000 + leaked / 10; i++) {
            noise.add(new long[] {i});
        }
    }
}
