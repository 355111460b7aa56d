import java.net.*;
import java.nio.file.*;
import java.util.*;

/** Programs that agents have died of, by name. Prints what it saw; the agent must not change that. */
public class Trouble {
    static int depth;
    static void sink() { depth++; sink(); }

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "overflow": {
                int caught = 0;
                for (int i = 0; i < 5; i++) { depth = 0; try { sink(); } catch (StackOverflowError e) { caught++; } }
                System.out.println("caught " + caught);
                break;
            }
            case "memory": {
                List<byte[]> all = new ArrayList<>();
                try { while (true) all.add(new byte[1 << 20]); } catch (OutOfMemoryError e) { all = null; }
                System.out.println("survived");
                break;
            }
            case "uncaught": throw new IllegalStateException("boom");
            case "exit": System.exit(3);
            case "halt": Runtime.getRuntime().halt(7);
            case "threads": {
                Thread[] threads = new Thread[1000];
                long[] sum = new long[1];
                for (int i = 0; i < threads.length; i++) {
                    final int n = i;
                    threads[i] = new Thread(() -> { synchronized (sum) { sum[0] += n; } });
                    threads[i].start();
                }
                for (Thread thread : threads) thread.join();
                System.out.println("sum " + sum[0]);
                break;
            }
            case "loaders": {
                URL here = Trouble.class.getProtectionDomain().getCodeSource().getLocation();
                List<java.lang.ref.WeakReference<ClassLoader>> loaders = new ArrayList<>();
                for (int i = 0; i < 20; i++) {
                    URLClassLoader loader = new URLClassLoader(new URL[] {here}, null);
                    Class<?> known = Class.forName("Known", true, loader);
                    known.getDeclaredMethod("catcher").setAccessible(true);
                    loaders.add(new java.lang.ref.WeakReference<>(loader));
                    loader.close();
                }
                for (int i = 0; i < 5; i++) { System.gc(); Thread.sleep(50); }
                int gone = 0;
                for (java.lang.ref.WeakReference<ClassLoader> loader : loaders) if (loader.get() == null) gone++;
                System.out.println(gone >= 19 ? "unloaded" : "kept " + (20 - gone));
                break;
            }
            default: System.out.println("lambda " + Arrays.asList(3, 1, 2).stream().map(x -> "v" + x).sorted().reduce("", String::concat));
        }
    }
}
