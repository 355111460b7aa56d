import java.util.HashMap;
import java.util.Map;

/** Gets an OutOfMemoryError several times, and continues. */
public class Overflow {
    static final Map<Integer, byte[]> CACHE = new HashMap<>();

    static Object last;

    public static void main(String[] args) {
        try {
            last = new int[Integer.MAX_VALUE];
        } catch (OutOfMemoryError e) {
            System.out.println("array refused");
        }
        for (int round = 0; round < 3; round++) {
            try {
                fill();
            } catch (OutOfMemoryError e) {
                CACHE.clear();
                System.out.println("full " + round);
            }
        }
        System.exit(7);
    }

    static void fill() {
        for (;;) {
            CACHE.put(CACHE.size(), new byte[20_000]);
        }
    }
}
