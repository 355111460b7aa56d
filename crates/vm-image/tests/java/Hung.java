/** A VM that answers no request: one thread counts without a safepoint, another one wants a collection. */
public class Hung {
    static final Object kept = new StringBuilder("kept by a static field");
    static volatile long result;
    static volatile boolean isCounting;

    /** With -XX:-UseCountedLoopSafepoints the compiled loop does not stop before its end. */
    static long count(int until, long seed) {
        long value = seed;
        for (int i = 1; i < until; i++) {
            value = value / (i | 1) + (value ^ i) % 1000003;
        }
        return value;
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 20_000; i++) {
            result += count(500, i);
        }
        Thread counting = new Thread(() -> {
            isCounting = true;
            for (int i = 0; i < 100; i++) {
                result += count(Integer.MAX_VALUE, i);
            }
        }, "counting");
        counting.setDaemon(true);
        counting.start();
        while (!isCounting) {
            Thread.sleep(1);
        }
        System.out.println("ready");
        System.gc();
        System.out.println("collected");
    }
}
