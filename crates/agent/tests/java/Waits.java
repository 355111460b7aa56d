/** Four threads that want one lock for two seconds, so that three of them wait. Prints the milliseconds that it took. */
public class Waits {
    static final Object LOCK = new Object();
    static double sum;

    static void locked() {
        synchronized (LOCK) { for (int i = 1; i < 500_000; i++) sum += Math.sqrt(i); }
    }

    static void work(long end) {
        while (System.nanoTime() < end) locked();
    }

    public static void main(String[] args) throws Exception {
        long begin = System.nanoTime();
        Thread[] threads = new Thread[4];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> work(begin + 2_000_000_000L));
            threads[i].start();
        }
        for (Thread thread : threads) thread.join();
        System.out.println((System.nanoTime() - begin) / 1_000_000);
    }
}
