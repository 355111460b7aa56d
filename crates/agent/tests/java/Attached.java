/** Threads that native code made call back into Java. */
public class Attached {
    static final Object[] KEEP = new Object[800];
    static int made;

    static class Node { int value; }

    static synchronized void keep(Object o) { KEEP[made++] = o; }

    /** Called by each native thread. */
    static void work() {
        for (int i = 0; i < 100; i++) keep(new Node());
        try { inner(); } catch (IllegalStateException e) { return; }
    }

    static void inner() { throw new IllegalStateException("planned"); }

    /** Starts native threads that attach, call {@link #work}, and detach; half of them as daemons. */
    static native void attach(int threads);

    public static void main(String[] args) {
        System.load(args[0]);
        attach(8);
        System.out.println("made " + made);
    }
}
