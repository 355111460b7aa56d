import java.lang.reflect.*;
import java.net.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;

/** All that agents have died of, one after the other in one program. Prints what it saw, and ends as its argument says. */
public class Torture {
    static int depth;
    static void deeper() { depth++; deeper(); }
    interface Shape { double area(); }
    static synchronized void count(AtomicLong sum, int n) { sum.addAndGet(n); }

    static void overflow() {
        int caught = 0;
        for (int i = 0; i < 3; i++) { depth = 0; try { deeper(); } catch (StackOverflowError e) { caught++; } }
        System.out.println("overflow " + caught);
    }

    static void memory() {
        int caught = 0;
        for (int i = 0; i < 2; i++) {
            List<byte[]> all = new ArrayList<>();
            try { while (true) all.add(new byte[1 << 20]); } catch (OutOfMemoryError e) { all = null; caught++; }
        }
        System.out.println("memory " + caught);
    }

    static void lambdas() {
        double sum = 0;
        for (int i = 0; i < 20; i++) { final int n = i; Shape shape = () -> n * 2.0; sum += shape.area(); }
        System.out.println("lambdas " + sum + " " + Arrays.asList(3, 1, 2).stream().map(x -> "v" + x).sorted().reduce("", String::concat));
    }

    static void reflection() throws Exception {
        Object list = Class.forName("java.util.ArrayList").getDeclaredConstructor().newInstance();
        Method add = list.getClass().getMethod("add", Object.class);
        for (int i = 0; i < 50; i++) add.invoke(list, i);
        Object array = Array.newInstance(String.class, 3);
        Object proxy = java.lang.reflect.Proxy.newProxyInstance(Torture.class.getClassLoader(), new Class<?>[] {Callable.class}, (self, method, args) -> 7);
        System.out.println("reflection " + ((List<?>) list).size() + " " + Array.getLength(array) + " " + ((Callable<?>) proxy).call());
    }

    static void threads() throws Exception {
        AtomicLong sum = new AtomicLong();
        Thread[] threads = new Thread[200];
        for (int i = 0; i < threads.length; i++) { final int n = i; threads[i] = new Thread(() -> count(sum, n)); threads[i].start(); }
        for (Thread thread : threads) thread.join();
        System.out.println("threads " + sum);
    }

    /** Where there are none, platform threads do the same. */
    static void virtualThreads() throws Exception {
        AtomicLong sum = new AtomicLong();
        Method start = null;
        try { start = Thread.class.getMethod("startVirtualThread", Runnable.class); } catch (NoSuchMethodException e) { }
        List<Thread> all = new ArrayList<>();
        for (int i = 0; i < 500; i++) {
            final int n = i;
            Runnable work = () -> { Object[] made = new Object[10]; Thread.yield(); sum.addAndGet(n + made.length); };
            Thread thread = null;
            if (start != null) try { thread = (Thread) start.invoke(null, work); } catch (InvocationTargetException e) { start = null; }
            if (thread == null) { thread = new Thread(work); thread.start(); }
            all.add(thread);
        }
        for (Thread thread : all) thread.join();
        System.out.println("virtual threads " + sum);
    }

    static void loaders() throws Exception {
        URL here = Torture.class.getProtectionDomain().getCodeSource().getLocation();
        int loaded = 0;
        for (int i = 0; i < 10; i++) {
            try (URLClassLoader loader = new URLClassLoader(new URL[] {here}, null)) {
                Class<?> other = Class.forName("Torture", true, loader);
                if (other != Torture.class && other.getDeclaredMethod("overflow") != null) loaded++;
            }
        }
        System.gc();
        System.out.println("loaders " + loaded);
    }

    static void processes() throws Exception {
        System.out.println("process " + new ProcessBuilder("sh", "-c", "exit 5").start().waitFor());
    }

    /** Native methods that make strings, arrays and references. */
    static void natives() throws Exception {
        System.out.println("natives " + "x".intern() + " " + new int[] {1, 2}.clone().length + " " + InetAddress.getByName("127.0.0.1").getHostAddress());
    }

    public static void main(String[] args) throws Exception {
        overflow();
        lambdas();
        reflection();
        threads();
        virtualThreads();
        loaders();
        processes();
        natives();
        memory();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook")));
        switch (args[0]) {
            case "exit": System.exit(3);
            case "halt": Runtime.getRuntime().halt(7);
            case "throw": throw new IllegalStateException("the end");
            default: System.out.println("end");
        }
    }
}
