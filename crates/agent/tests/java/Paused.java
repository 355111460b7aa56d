import java.io.FileInputStream;
import java.io.InputStream;
import java.util.zip.Deflater;

/** Threads in native code and threads that wait, while another thread makes so much garbage that the VM often pauses. */
public class Paused {
    static volatile boolean isOver;
    static volatile Object[] kept;
    static long made;

    static void sleeps() throws Exception {
        while (!isOver) Thread.sleep(5);
    }

    static void waits(Object lock) throws Exception {
        synchronized (lock) {
            while (!isOver) lock.wait(200);
        }
    }

    static void compresses() {
        byte[] input = new byte[1 << 14];
        for (int i = 0; i < input.length; i++) input[i] = (byte) (i * i >> 7);
        byte[] output = new byte[1 << 15];
        Deflater deflater = new Deflater(9);
        while (!isOver) {
            deflater.reset();
            deflater.setInput(input);
            deflater.finish();
            made += deflater.deflate(output);
        }
        deflater.end();
    }

    static void reads() throws Exception {
        byte[] bytes = new byte[1 << 18];
        try (InputStream random = new FileInputStream("/dev/urandom")) {
            while (!isOver) made += random.read(bytes);
        }
    }

    interface Body {
        void run() throws Exception;
    }

    static Thread start(String name, Body body) {
        Thread thread = new Thread(() -> {
            long begun = System.nanoTime();
            try {
                body.run();
            } catch (Exception e) {
                throw new AssertionError(e);
            }
            System.out.println(name + " " + (System.nanoTime() - begun) / 1_000_000);
        }, name);
        thread.start();
        return thread;
    }

    public static void main(String[] args) throws Exception {
        Object lock = new Object();
        // Its objects live for a while, so that a pause copies many of them.
        kept = new Object[60_000];
        Thread[] all = {
            start("sleeps", Paused::sleeps),
            start("waits", () -> waits(lock)),
            start("compresses", Paused::compresses),
            start("reads", Paused::reads),
        };
        long end = System.nanoTime() + 2_000_000_000L;
        for (int i = 0; System.nanoTime() < end; i = (i + 1) % kept.length) {
            try {
                kept[i] = new int[40 + i % 60];
            } catch (OutOfMemoryError e) {
                // JDK 8 does not wait long for a thread that uses an array in native code.
                kept[i] = null;
            }
        }
        isOver = true;
        synchronized (lock) {
            lock.notifyAll();
        }
        for (Thread thread : all) thread.join();
    }
}
