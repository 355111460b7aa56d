import java.lang.management.ManagementFactory;

/**
 * Methods that spin for a known time: few and many calls of a short one, and one that is long at
 * times. The time around all calls of each is printed, by the clock and as CPU time.
 */
public class Durations {
    static void few() { long start = System.nanoTime(); while (System.nanoTime() - start < 40000); }
    static void many() { long start = System.nanoTime(); while (System.nanoTime() - start < 2000); }
    static void uneven(int i) {
        long length = i % 100 == 0 ? 1000000 : 1000, start = System.nanoTime();
        while (System.nanoTime() - start < length);
    }

    static long[] now() {
        return new long[] {System.nanoTime(), ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime()};
    }

    static void say(String method, long[] before, long[] after) {
        System.out.println(method + " " + (after[0] - before[0]) + " " + (after[1] - before[1]));
    }

    public static void main(String[] args) {
        now();
        long[] first = now();
        for (int i = 0; i < 20; i++) few();
        long[] few = now();
        for (int i = 0; i < 100000; i++) many();
        long[] many = now();
        for (int i = 0; i < 40000; i++) uneven(i);
        long[] uneven = now();
        say("few", first, few);
        say("many", few, many);
        say("uneven", many, uneven);
    }
}
