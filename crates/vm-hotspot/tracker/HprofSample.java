package java.lang;

/**
 * Receives each object that Java code makes, from calls that new_object_calls.rs inserts into Object's constructor and
 * after instructions that make arrays. Reports one object per interval of bytes to native code. For JDKs before 11,
 * whose  VM does not sample allocations itself.
 *
 * It must not be instrumented itself, and calls only native methods.
 *
 * Compiled for Java 8 and kept as HprofSample.class next to this file; a test compares the two.
 */
public final class HprofSample {
    /** Counters of bytes. A thread's hash selects its counter; no two counters share a cache line. */
    private static final int COUNTERS = 64;
    private static final int APART = 16;
    /** Bytes until the next sampled object. Threads that share a counter may overwrite each other's counts. */
    private static final long[] left = new long[(COUNTERS + 1) * APART];
    /**
     * Sizes of instances: the identity hash of a class in the high half, bytes in the low half. This keeps no class
     * alive.
     */
    private static final long[] sizes = new long[1 << 12];

    /** Whether objects are sampled. */
    static boolean on;
    /** Bytes before the elements of an array. */
    static int base;
    /** Bytes of a reference. */
    static int reference;
    /** Alignment of objects in bytes, minus one. */
    static int mask;

    private HprofSample() {}

    public static void object(Object made) {
        if (!on) return;
        Class<?> of = made.getClass();
        int hash = System.identityHashCode(of);
        int at = hash & sizes.length - 1;
        long known = sizes[at];
        if ((int) (known >>> 32) != hash) {
            known = (long) hash << 32 | size(made) & 0xffffffffL;
            sizes[at] = known;
        }
        count(made, (int) known);
    }

    public static void array(Object made) {
        if (!on) return;
        long bytes;
        if (made instanceof Object[]) bytes = (long) ((Object[]) made).length * reference;
        else if (made instanceof byte[]) bytes = ((byte[]) made).length;
        else if (made instanceof char[]) bytes = (long) ((char[]) made).length << 1;
        else if (made instanceof int[]) bytes = (long) ((int[]) made).length << 2;
        else if (made instanceof long[]) bytes = (long) ((long[]) made).length << 3;
        else if (made instanceof boolean[]) bytes = ((boolean[]) made).length;
        else if (made instanceof short[]) bytes = (long) ((short[]) made).length << 1;
        else if (made instanceof float[]) bytes = (long) ((float[]) made).length << 2;
        else bytes = (long) ((double[]) made).length << 3;
        count(made, base + bytes + mask & ~mask);
    }

    /** Counts an array of arrays and its rows. */
    public static void nested(Object made) {
        if (!on) return;
        if (made instanceof Object[]) for (Object row : (Object[]) made) if (row != null) nested(row);
        array(made);
    }

    private static void count(Object made, long bytes) {
        int at = (System.identityHashCode(Thread.currentThread()) & COUNTERS - 1) * APART + APART;
        long rest = left[at] - bytes;
        left[at] = rest < 0 ? sampled(made) : rest;
    }

    /** Samples an object; returns the number of bytes until the next one. */
    private static native int sampled(Object made);

    /** Bytes of an object. */
    private static native int size(Object made);
}
