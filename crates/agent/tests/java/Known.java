import java.util.*;

/** A program whose allocations and calls can be counted by hand. */
public class Known {
    static final List<Object> KEEP = new ArrayList<>();

    static class Node implements Cloneable {
        int value;
        Node(int value) { this.value = value; }
        Node copy() { try { return (Node) super.clone(); } catch (CloneNotSupportedException e) { throw new Error(e); } }
    }

    static void nodes() { for (int i = 0; i < 1000; i++) KEEP.add(new Node(i)); }
    static void garbage() { for (int i = 0; i < 20000; i++) { Object o = new Node(i); if (o.hashCode() == 77777777) KEEP.add(o); } }
    static void clones() { Node n = new Node(-1); for (int i = 0; i < 200; i++) KEEP.add(n.copy()); }
    static void arrays() { for (int i = 0; i < 64; i++) { KEEP.add(new byte[i]); KEEP.add(new long[i]); KEEP.add(new Object[i]); } }
    static void nested() { for (int i = 0; i < 10; i++) KEEP.add(new int[3][4]); }
    static void copied() { Object[] from = new Object[8]; for (int i = 0; i < 30; i++) KEEP.add(Arrays.copyOf(from, 5)); }
    static void byReflection() { for (int i = 0; i < 100; i++) KEEP.add(java.lang.reflect.Array.newInstance(double.class, 10)); }

    static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
    static int once(int n) { return n + 1; }
    static int twice(int n) { return once(once(n)); }
    static void thrower(int n) { if (n == 0) throw new IllegalStateException("planned"); thrower(n - 1); }
    static void catcher() { try { thrower(4); } catch (IllegalStateException e) { KEEP.add(e); } }
    interface Shape { default int sides() { return 4; } static int unit() { return 1; } }
    static class Square implements Shape { }

    public static void main(String[] args) throws Exception {
        if (args.length > 0) { calls(); return; }
        nodes(); garbage(); clones(); arrays(); nested(); copied(); byReflection();
        System.gc(); Thread.sleep(200);
        System.out.println("kept " + KEEP.size());
    }

    static void calls() throws Exception {
        for (int i = 0; i < 20; i++) fib(10);
        for (int i = 0; i < 10; i++) catcher();
        Shape shape = new Square();
        // Many, so that most are not measured: then calls of leaves are counted another way.
        for (int i = 0; i < 300000; i++) { shape.sides(); Shape.unit(); }
        // More than a thread's table keeps of one call, with and without calls inside.
        for (int i = 0; i < 10_000_000; i++) { twice(i); }
        Runnable lambda = () -> fib(3);
        for (int i = 0; i < 7; i++) lambda.run();
        Thread[] threads = new Thread[4];
        for (int i = 0; i < threads.length; i++) { threads[i] = new Thread(() -> fib(5)); threads[i].start(); }
        for (Thread thread : threads) thread.join();
        System.out.println("done");
    }
}
