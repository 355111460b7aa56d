import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;

/**
 * Old live objects between dead ones whose classes are unloaded, and other classes in the memory of these classes. It
 * runs with -XX:+ExplicitGCInvokesConcurrent -XX:MaxTenuringThreshold=0.
 */
public class Unloaded {
    /** Defines classes of its own with these names. */
    static class Loader extends ClassLoader {
        Loader() {
            super(Unloaded.class.getClassLoader());
        }

        Object made(String name, byte[] bytes) throws Exception {
            return defineClass(name, bytes, 0, bytes.length).getConstructor().newInstance();
        }
    }

    public static class Small {
        int a, b, c, d, e;

        public Object another() {
            return new Small();
        }
    }

    public static class Large {
        long a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x;
    }

    static class Live {
        final int number;

        Live(int number) {
            this.number = number;
        }
    }

    static final List<Object> live = new ArrayList<>();
    static List<Object> dead = new ArrayList<>();

    static byte[] bytes(String name) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (InputStream in = Unloaded.class.getResourceAsStream(name + ".class")) {
            for (int next = in.read(); next >= 0; next = in.read()) {
                bytes.write(next);
            }
        }
        return bytes.toByteArray();
    }

    public static void main(String[] args) throws Exception {
        byte[] small = bytes("Unloaded$Small");
        byte[] large = bytes("Unloaded$Large");
        for (int k = 0; k < 300; k++) {
            Object made = new Loader().made("Unloaded$Small", small);
            java.lang.reflect.Method another = made.getClass().getMethod("another");
            for (int n = 0; n < 50; n++) {
                dead.add(another.invoke(made));
                live.add(new Live(live.size()));
            }
        }
        // Both kinds become old, then one of them dies.
        System.gc();
        dead = null;
        System.gc();
        for (int k = 0; k < 300; k++) {
            live.add(new Loader().made("Unloaded$Large", large));
        }
        System.out.println("ready");
        while (System.in.read() >= 0) {
            System.out.println("alive");
        }
    }
}
