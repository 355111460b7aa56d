import java.io.*;
import java.util.*;
import java.util.concurrent.*;

/** Makes objects as the lines on standard input request, and prints how much bytecode its classes have. Ends with code 3. */
public class Stopped {
    static final List<Object> KEEP = new ArrayList<>();
    static final Class<?>[] CLASSES = {
        Object.class, Thread.class, ArrayList.class, HashMap.class, ConcurrentHashMap.class, StringBuilder.class, Integer.class, Stopped.class,
    };
    static class Node { int value = 1; }
    /** Not loaded before it is wanted. */
    static class Later {
        int value = 2;
        static void keep(int count) { for (int i = 0; i < count; i++) KEEP.add(new Later()); }
    }

    static native long code(Class<?>[] classes);

    static void keep(int count) { for (int i = 0; i < count; i++) KEEP.add(new Node()); }

    /** A thread that makes objects in one frame, which may run while the code around it changes. */
    static final SynchronousQueue<Integer> ORDERS = new SynchronousQueue<>();
    static final SynchronousQueue<Integer> DONE = new SynchronousQueue<>();
    static void work() {
        try {
            for (;;) {
                int count = ORDERS.take();
                for (int i = 0; i < count; i++) synchronized (KEEP) { KEEP.add(new Node()); }
                DONE.put(count);
            }
        } catch (InterruptedException e) { throw new IllegalStateException(e); }
    }

    public static void main(String[] args) throws Exception {
        System.load(args[0]);
        Thread worker = new Thread(Stopped::work, "worker");
        worker.setDaemon(true);
        worker.start();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line; (line = lines.readLine()) != null; ) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "keep": keep(Integer.parseInt(words[1])); break;
                case "later": Later.keep(Integer.parseInt(words[1])); break;
                case "work": ORDERS.put(Integer.parseInt(words[1])); DONE.take(); break;
                case "forget": KEEP.clear(); break;
                case "code": System.out.println("code " + code(CLASSES)); break;
                default: System.exit(3);
            }
            System.out.println("done " + line);
        }
    }
}
