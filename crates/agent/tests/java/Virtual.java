import java.util.concurrent.*;

/** Virtual threads that allocate, block and end. Needs JDK 21. */
public class Virtual {
    static Object keep;
    static int work(int n) throws Exception { int sum = 0; for (int i = 0; i < 20; i++) { int[] made = new int[n + 1]; keep = made; sum += made.length; Thread.sleep(1); } return sum; }
    public static void main(String[] args) throws Exception {
        long sum = 0;
        try (ExecutorService all = Executors.newVirtualThreadPerTaskExecutor()) {
            Future<?>[] parts = new Future<?>[200];
            for (int i = 0; i < parts.length; i++) { final int n = i; parts[i] = all.submit(() -> work(n)); }
            for (Future<?> part : parts) sum += (Integer) part.get();
        }
        System.out.println("sum " + sum);
    }
}
