import java.io.BufferedReader;
import java.io.InputStreamReader;

/** Makes known numbers of global and weak references of JNI: by a script, or as standard input says. */
public class References {
    static final class Held {
        long a, b;
    }

    static Held kept = new Held();

    static native long hold(Object object);

    static native void release(long reference);

    static native long holdWeakly(Object object);

    static native void releaseWeak(long reference);

    /** As hold, while the array's elements are held by native code. */
    static native long holdInCriticalRegion(Object object, int[] array);

    /** Throws an exception, makes a reference to it while it is pending, and returns. */
    static native void holdException();

    /** Native threads that attach, make so many references each and drop some of them, and detach. */
    static native void attach(int threads, int makes, int drops, Object object);

    static void leak(int count) {
        for (int i = 0; i < count; i++) hold(new Held());
    }

    static void pass(int count) {
        for (int i = 0; i < count; i++) release(hold(new Held()));
    }

    static void leakWeakly(int count) {
        for (int i = 0; i < count; i++) holdWeakly(new Held());
        holdWeakly(kept);
        releaseWeak(holdWeakly(kept));
    }

    static void leakArrays(int count) {
        for (int i = 0; i < count; i++) hold(new byte[1000]);
    }

    static void leakCritically(int count) {
        for (int i = 0; i < count; i++) holdInCriticalRegion(new Held(), new int[10]);
    }

    /** Threads that make and drop references all the time, and each leaks one. */
    static void busy(int threads, int count) throws InterruptedException {
        Thread[] all = new Thread[threads];
        for (int i = 0; i < threads; i++) {
            all[i] = new Thread(() -> {
                pass(count);
                leak(1);
            });
            all[i].start();
        }
        for (Thread thread : all) thread.join();
    }

    static void script() throws InterruptedException {
        leak(7);
        pass(5);
        leakWeakly(3);
        leakArrays(2);
        leakCritically(3);
        try {
            holdException();
            System.out.println("no exception");
        } catch (IllegalStateException thrown) {
            System.out.println(thrown.getMessage());
        }
        attach(4, 10, 6, kept);
        busy(4, 5000);
        System.gc();
    }

    public static void main(String[] args) throws Exception {
        System.load(args[0]);
        if (args.length > 1) {
            script();
            System.out.println("done");
            return;
        }
        System.out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            String[] words = line.split(" ");
            int count = words.length > 1 ? Integer.parseInt(words[1]) : 0;
            if (words[0].equals("leak")) leak(count);
            if (words[0].equals("pass")) pass(count);
            if (words[0].equals("weak")) leakWeakly(count);
            System.out.println("ok");
        }
    }
}
