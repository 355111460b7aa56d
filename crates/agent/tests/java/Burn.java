import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/** Works for half a second and prints the CPU time that this took, in milliseconds. */
public class Burn {
    static volatile double sum;

    static void burn() {
        long end = System.nanoTime() + 500_000_000L;
        for (int i = 0; i < 30_000_000 || System.nanoTime() < end; i++) sum += Math.sqrt(i);
    }

    public static void main(String[] args) {
        ThreadMXBean bean = ManagementFactory.getThreadMXBean();
        long before = bean.getCurrentThreadCpuTime();
        burn();
        System.out.println((bean.getCurrentThreadCpuTime() - before) / 1_000_000);
    }
}
