import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/** Works for a second of CPU time and prints what it was, in milliseconds. */
public class Burn {
    static final ThreadMXBean BEAN = ManagementFactory.getThreadMXBean();
    static volatile double sum;

    static void burn(long end) {
        while (BEAN.getCurrentThreadCpuTime() < end) for (int i = 0; i < 100_000; i++) sum += Math.sqrt(i);
    }

    public static void main(String[] args) {
        long before = BEAN.getCurrentThreadCpuTime();
        burn(before + 1_000_000_000L);
        System.out.println((BEAN.getCurrentThreadCpuTime() - before) / 1_000_000);
    }
}
