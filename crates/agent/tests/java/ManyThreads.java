import java.util.concurrent.CountDownLatch;

/**
 * Threads in batches: all of a batch are there at the same time, and each makes objects and calls
 * before and after it waits for the others. Arguments: virtual or platform, threads in all, at a
 * time. Prints what the heap and the process have while the last batch waits. Needs JDK 21.
 */
public class ManyThreads implements Runnable {
    static final class Made {
    }

    static volatile Object last;
    private final int number;
    private final CountDownLatch all;
    private final CountDownLatch go;

    ManyThreads(int number, CountDownLatch all, CountDownLatch go) {
        this.number = number;
        this.all = all;
        this.go = go;
    }

    /** Three objects and arrays before, two after; 151 calls of one thread in eight, 3 of others; 4 that throw. */
    public void run() {
        step(3);
        deep(number % 8 == 0 ? 150 : 2);
        all.countDown();
        await(go);
        step(2);
        try {
            fail(3);
        } catch (IllegalStateException expected) {
            last = expected;
        }
    }

    static void step(int count) {
        for (int i = 0; i < count; i++) {
            last = new Made();
            last = new int[i];
        }
    }

    static void deep(int more) {
        if (more > 0) {
            deep(more - 1);
        }
    }

    static final IllegalStateException THROWN = new IllegalStateException();

    static void fail(int more) {
        if (more == 0) {
            throw THROWN;
        }
        fail(more - 1);
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    public static void main(String[] args) throws Exception {
        Thread.Builder kind = args[0].equals("virtual") ? Thread.ofVirtual() : Thread.ofPlatform();
        int threads = Integer.parseInt(args[1]);
        int size = Integer.parseInt(args[2]);
        for (int done = 0; done < threads; done += size) {
            CountDownLatch all = new CountDownLatch(size);
            CountDownLatch go = new CountDownLatch(1);
            Thread[] batch = new Thread[size];
            for (int i = 0; i < size; i++) {
                batch[i] = kind.start(new ManyThreads(done + i, all, go));
            }
            all.await();
            if (done + size >= threads) {
                report();
            }
            go.countDown();
            for (Thread thread : batch) {
                thread.join();
            }
        }
        System.out.println("threads " + threads);
    }

    private static void report() throws Exception {
        System.gc();
        Runtime runtime = Runtime.getRuntime();
        System.out.println("heap " + (runtime.totalMemory() - runtime.freeMemory() >> 10));
        for (String line : java.nio.file.Files.readAllLines(java.nio.file.Path.of("/proc/self/status"))) {
            if (line.startsWith("VmRSS:")) {
                System.out.println("resident " + line.replaceAll("[^0-9]", ""));
            }
        }
    }
}
