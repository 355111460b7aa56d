import java.util.*;

/** Makes very many objects at one place on several threads and keeps every third; then ends. */
public class Living {
    static final int EACH = 40_000;
    static final List<Object> KEEP = Collections.synchronizedList(new ArrayList<>());

    static class Node { int value; Node(int value) { this.value = value; } }
    static class Dead { Object[] more = new Object[2]; }
    static class Kept { }

    static void nodes() {
        for (int i = 0; i < EACH; i++) {
            Object node = new Node(i);
            if (i % 3 == 0) KEEP.add(node);
        }
    }

    static void arrays() {
        for (int i = 0; i < EACH; i++) {
            Object array = new char[i % 7];
            if (i % 3 == 0) KEEP.add(array);
        }
    }

    static void garbage() {
        for (int i = 0; i < 20_000; i++) {
            Dead dead = new Dead();
            if (dead.hashCode() == dead.more.hashCode()) KEEP.add(dead);
        }
    }

    public static void main(String[] args) throws Exception {
        if (args[0].equals("count")) {
            Thread[] threads = new Thread[3];
            for (int i = 0; i < threads.length; i++) {
                threads[i] = new Thread(() -> { nodes(); arrays(); });
                threads[i].start();
            }
            for (Thread thread : threads) thread.join();
            System.gc();
            System.out.println("kept " + KEEP.size());
            return;
        }
        for (int i = 0; i < 500; i++) KEEP.add(new Kept());
        // So that the last of it is as young as can be.
        garbage();
        if (args[0].equals("exit")) System.exit(5);
    }
}
