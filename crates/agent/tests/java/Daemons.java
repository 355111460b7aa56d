import java.util.concurrent.CountDownLatch;

/** Exits while many daemon threads allocate. */
public class Daemons {
    static final int THREADS = 10;
    static volatile Object last;

    public static void main(String[] args) throws InterruptedException {
        CountDownLatch running = new CountDownLatch(THREADS);
        for (int n = 0; n < THREADS; n++) {
            Thread thread = new Thread(() -> {
                for (int made = 0;; made++) {
                    last = new byte[1000];
                    if (made == 1000) {
                        running.countDown();
                    }
                }
            });
            thread.setDaemon(true);
            thread.start();
        }
        running.await();
        System.out.println("exits");
        System.exit(7);
    }
}
