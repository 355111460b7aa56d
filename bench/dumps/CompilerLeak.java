import java.util.*;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The heap of JavacHeap with a leak in it: a server that compiles for its visitors and never forgets one. The field that
 * holds them all is {@code SessionRegistry.SESSIONS}; each session has a name, attributes and a kilobyte of state.
 *
 * Usage: java CompilerLeak SRC.zip OUT.hprof SESSIONS
 */
public class CompilerLeak {
    static final class SessionRegistry {
        static final Map<String, Session> SESSIONS = new ConcurrentHashMap<>();
    }

    static final class Session {
        final String visitor;
        final long created;
        final Map<String, Object> attributes = new HashMap<>();
        final byte[] state = new byte[1024];

        Session(int number) {
            visitor = "visitor-" + number;
            created = 1_700_000_000_000L + number * 1000L;
            attributes.put("locale", new String("en_GB"));
            attributes.put("cart", new ArrayList<>(List.of("sku-" + number % 1000, "sku-" + number % 77)));
        }
    }

    public static void main(String[] args) throws Exception {
        for (int n = 0; n < Integer.parseInt(args[2]); n++) {
            Session session = new Session(n);
            SessionRegistry.SESSIONS.put(session.visitor, session);
        }
        JavacHeap.main(new String[] {args[0], args[1]});
    }
}
