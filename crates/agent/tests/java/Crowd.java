import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Many threads wait for a second. Half of them end then, the others still wait when the program ends. Prints how many
 * milliseconds the threads of each half have waited in all.
 */
public class Crowd {
    static final int HALF = 80;
    static final CountDownLatch begun = new CountDownLatch(2 * HALF);
    static final CountDownLatch second = new CountDownLatch(1);
    static final CountDownLatch end = new CountDownLatch(1);
    /** The sum of the times when the threads that stay began to wait. */
    static final AtomicLong began = new AtomicLong();
    static final AtomicLong left = new AtomicLong();

    static void leaves() throws InterruptedException {
        long begin = System.nanoTime();
        begun.countDown();
        second.await();
        left.addAndGet(System.nanoTime() - begin);
    }

    static void stays() throws InterruptedException {
        began.addAndGet(System.nanoTime());
        begun.countDown();
        end.await();
    }

    static void half(boolean leaves) {
        try {
            if (leaves) {
                leaves();
            } else {
                stays();
            }
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    public static void main(String[] args) throws Exception {
        Thread[] leaving = new Thread[HALF];
        for (int i = 0; i < HALF; i++) {
            leaving[i] = new Thread(() -> half(true));
            leaving[i].start();
            Thread staying = new Thread(() -> half(false));
            staying.setDaemon(true);
            staying.start();
        }
        begun.await();
        Thread.sleep(1000);
        second.countDown();
        for (Thread thread : leaving) {
            thread.join();
        }
        System.out.println("leaves " + left.get() / 1_000_000);
        System.out.println("stays " + (HALF * System.nanoTime() - began.get()) / 1_000_000);
    }
}
