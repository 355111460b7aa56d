import java.io.*;
import java.util.*;

/** Does something of each kind that the profiler interface has an event for. */
public class Everything {
    /** Set by the program when its threads are where they should be, and by the agent when it has done its part. */
    static volatile boolean ready, done;
    static final Object LOCK = new Object(), BLOCK = new Object(), WAIT = new Object();
    static volatile long sink;
    static Object kept;

    /** Loaded by a loader that goes away. */
    public static class Passing implements Runnable {
        static int[] table = new int[100];
        int sum;
        int add(int n) { sum += n ^ table[n % 100]; return sum; }
        public void run() { for (int i = 0; i < 200000; i++) add(i); }
    }

    static class Own extends ClassLoader {
        Own() { super(null); }
        @Override protected Class<?> findClass(String name) throws ClassNotFoundException {
            String file = name.replace('.', '/') + ".class";
            try (InputStream in = Everything.class.getClassLoader().getResourceAsStream(file)) {
                ByteArrayOutputStream out = new ByteArrayOutputStream();
                byte[] buffer = new byte[4096];
                for (int n; (n = in.read(buffer)) > 0; ) out.write(buffer, 0, n);
                return defineClass(name, out.toByteArray(), 0, out.size());
            } catch (IOException e) { throw new ClassNotFoundException(name, e); }
        }
    }

    static void pass() throws Exception {
        Class<?> passing = new Own().loadClass("Everything$Passing");
        java.lang.reflect.Constructor<?> make = passing.getDeclaredConstructor();
        for (int i = 0; i < 3; i++) ((Runnable) make.newInstance()).run();
    }

    static Thread daemon(String name, Runnable body) {
        Thread thread = new Thread(body, name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    static void contend() throws InterruptedException {
        Thread[] threads = new Thread[3];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> {
                for (int n = 0; n < 5; n++) synchronized (LOCK) {
                    try { Thread.sleep(3); } catch (InterruptedException e) { return; }
                }
            }, "contender " + i);
            threads[i].start();
        }
        synchronized (LOCK) { LOCK.wait(5); }
        for (Thread thread : threads) thread.join();
    }

    static void garbage() {
        for (int i = 0; i < 20000; i++) kept = new Object[] {new int[i % 7], "text" + i, new long[2][3]};
    }

    public static void main(String[] args) throws Exception {
        daemon("spinner", () -> { while (true) sink++; });
        daemon("waiter", () -> { synchronized (WAIT) { try { WAIT.wait(); } catch (InterruptedException e) { } } });
        synchronized (BLOCK) {
            daemon("blocked", () -> { synchronized (BLOCK) { sink++; } });
            contend();
            pass();
            garbage();
            System.gc();
            ready = true;
            for (int i = 0; i < 6000 && !done; i++) Thread.sleep(10);
        }
        for (int i = 0; i < 5; i++) { pass(); System.gc(); Thread.sleep(50); }
        System.out.println(done ? "done" : "the agent never came to its end");
    }
}
