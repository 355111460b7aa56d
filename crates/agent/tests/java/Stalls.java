/** A loop in which some VMs let no thread stop for a safepoint, and a wait after it. */
public class Stalls {
    static volatile double sum;

    static void computes() {
        long end = System.nanoTime() + 500_000_000L;
        for (int i = 0; i < 100_000_000 || System.nanoTime() < end; i++) sum += Math.sqrt(i);
    }

    public static void main(String[] args) throws Exception {
        long begin = System.nanoTime();
        computes();
        long ms = (System.nanoTime() - begin) / 1_000_000;
        Thread.sleep(300);
        System.out.println(ms);
    }
}
