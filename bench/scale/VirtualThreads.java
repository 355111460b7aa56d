import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** Virtual threads that sleep and allocate a little. Arguments: how many in all, how many at a time. Needs JDK 21. */
public class VirtualThreads {
    static final AtomicLong sum = new AtomicLong();

    public static void main(String[] args) throws Exception {
        int count = Integer.parseInt(args[0]);
        Semaphore places = new Semaphore(Integer.parseInt(args[1]));
        ExecutorService all = Executors.newVirtualThreadPerTaskExecutor();
        for (int i = 0; i < count; i++) {
            int k = i;
            places.acquire();
            all.submit(() -> {
                try {
                    Thread.sleep(5);
                    sum.addAndGet(new int[k % 100].length + List.of(k).size());
                } catch (InterruptedException e) {
                    throw new AssertionError(e);
                } finally {
                    places.release();
                }
            });
        }
        all.shutdown();
        if (!all.awaitTermination(30, TimeUnit.MINUTES)) {
            throw new AssertionError("not ended");
        }
        System.gc();
        Runtime runtime = Runtime.getRuntime();
        System.out.println("heap " + (runtime.totalMemory() - runtime.freeMemory() >> 10));
        System.out.println("sum " + sum);
    }
}
