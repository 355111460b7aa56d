import java.lang.reflect.Field;

/**
 * Calls new methods while it holds the monitor that a collection of JDK 8 begins with, the lock of
 * pending references, and starts threads meanwhile.
 */
public class Pending {
    static final int DEPTH = 7;
    static volatile boolean done;
    static int sum;

    static void a(int path, int depth) { next(path, depth); }
    static void b(int path, int depth) { next(path, depth); }
    static void c(int path, int depth) { next(path, depth); }
    static void d(int path, int depth) { next(path, depth); }

    static void next(int path, int depth) {
        sum += new Object[1].length;
        if (depth == 0) return;
        switch (path & 3) {
            case 0: a(path >> 2, depth - 1); break;
            case 1: b(path >> 2, depth - 1); break;
            case 2: c(path >> 2, depth - 1); break;
            default: d(path >> 2, depth - 1);
        }
    }

    public static void main(String[] args) throws Exception {
        Field field = Class.forName("java.lang.ref.Reference").getDeclaredField("lock");
        field.setAccessible(true);
        Object lock = field.get(null);
        Thread starter = new Thread(() -> {
            try {
                while (!done) {
                    Thread[] some = new Thread[8];
                    for (int i = 0; i < some.length; i++) {
                        int path = i;
                        some[i] = new Thread(() -> next(path, 1));
                        some[i].start();
                    }
                    for (Thread one : some) one.join();
                }
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        });
        starter.start();
        for (int path = 0; path < 1 << 2 * DEPTH; path++) {
            synchronized (lock) {
                next(path, DEPTH);
            }
        }
        done = true;
        starter.join();
        System.out.println("done " + (sum > 0));
    }
}
