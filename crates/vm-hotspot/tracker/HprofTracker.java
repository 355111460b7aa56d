package java.lang;

/**
 * What instrumented code calls. One object per thread holds its counters in plain
 * arrays that only this thread writes; native code reads them when a report is
 * due and is called only when something is seen for the first time, or an object
 * is to be followed.
 *
 * The class is defined in the boot loader before any class is instrumented, so it
 * must not be instrumented itself and must not call what is: it uses native
 * methods of Thread, Object and System, and Thread.getId (threadId from JDK 19 on:
 * the constant is replaced before the class is defined), which the instrumenter
 * leaves alone.
 *
 * Compiled to Java 8 and kept as HprofTracker.class next to this file; a test
 * compares the two.
 */
public final class HprofTracker {
    /** All threads' objects, by thread id; unused slots hold an object without owner. */
    static HprofTracker[] table = {new HprofTracker()};
    /** Whether anything is counted. Off before VM initialisation and after death. */
    static boolean on;
    /** Nanoseconds, written by the clock thread. */
    static volatile long clock;
    /** Whether times are read from System.nanoTime instead of the clock thread. */
    static final boolean precise;
    /** Whether times are the CPU time of the thread, written by the clock thread. */
    static final boolean perThread;
    /** Bits a calling context is shifted by for each call: 64 / depth of stacks. */
    static final int contextShift;
    /** Bytes before the elements of an array, by type code of newarray (2: reference). */
    static final int[] arrayBase = new int[12];
    /** Binary logarithm of an element's width, by type code. */
    static final int[] arrayShift = new int[12];
    /** Object alignment minus one. */
    static final int alignMask;
    /** Sites that make very many objects have only a part of them followed. */
    static final boolean adaptive;
    /** Binary logarithm of the objects of a site that are all followed. */
    static final int exactShift;

    // Set by native code before anything is counted; not constants to the compiler,
    // but to the JIT.
    static {
        precise = false;
        perThread = false;
        contextShift = 16;
        alignMask = 7;
        adaptive = false;
        exactShift = 12;
    }

    /** Spreads keys over table slots: 2^64 divided by the golden ratio. */
    private static final long SPREAD = 0x9E3779B97F4A7C15L;

    /** The thread this belongs to. */
    Thread owner;
    /** Number by which native code knows this object. */
    int id;

    /** Calling context of the code that runs: the last call sites, shifted together. */
    long context;
    /**
     * Allocation sites: key, objects, bytes, and a word whose low half is the follow
     * mask (every mask+1st is followed) and whose high half is the site's number.
     */
    long[] sites;
    /** 64 minus the binary logarithm of the number of sites that fit. */
    int sitesShift;
    /** Objects that native code is to follow, once there are as many as fit. */
    Object[] pending;
    /** Of each pending object: the last word of its site, bytes if it is an array. */
    long[] pendingWords;
    /** How many are pending; volatile, so that who reads it finds that many entries whole. */
    volatile int pendingCount;
    /** How many of these native code has taken over already. */
    int peeked;
    /** The next array made by reflection is counted by the caller of Arrays.copyOf. */
    boolean muteNewArray;

    /** Open calls: the node before the call, and the time of the call. */
    long[] stack;
    /** Used part of the stack. */
    int depth;
    /** The present calling context as a number given by native code. */
    int node;
    /** Known transitions: (node, method) and the node after the call. */
    long[] edges;
    /** 64 minus the binary logarithm of the number of edges that fit. */
    int edgesShift;
    /** Per node: calls, own time, time with callees, unused. */
    long[] costs;
    /** CPU time of the thread, if that is what is measured. */
    volatile long cpu;
    /** When costs were last charged. */
    long last;

    /** The current thread's object, or null if it is not to be followed. */
    public static HprofTracker get() {
        Thread thread = Thread.currentThread();
        HprofTracker[] all = table;
        HprofTracker found = all[(int) thread.getId() & all.length - 1];
        if (found.owner == thread) {
            return found;
        }
        return find(thread);
    }

    private static HprofTracker find(Thread thread) {
        if (!on || thread == null) {
            return null;
        }
        HprofTracker[] all = table;
        for (int i = 1, at = (int) thread.getId(); i < 8; i++) {
            HprofTracker found = all[at + i & all.length - 1];
            if (found.owner == thread) {
                return found;
            }
        }
        return enroll(thread);
    }

    /** The context at the entry of a method. */
    public static long context(HprofTracker tracker) {
        return tracker == null ? 0 : tracker.context;
    }

    /** Control is about to leave through a call site, or something is allocated there. */
    public static void at(HprofTracker tracker, long context, long site) {
        if (tracker != null) {
            tracker.context = (context << contextShift) + site;
        }
    }

    /** At the entry of Object's constructor. */
    public static void object(Object made) {
        HprofTracker tracker = get();
        if (tracker != null) {
            tracker.count(made, tracker.context ^ made.getClass().hashCode() * SPREAD, 0);
        }
    }

    /** After an array instruction. */
    public static void array(Object made, int length, int kind) {
        HprofTracker tracker = get();
        if (tracker != null) {
            tracker.count(made, tracker.context ^ kind, arrayBytes(length, kind));
        }
    }

    private static long arrayBytes(int length, int kind) {
        return arrayBase[kind] + ((long) length << arrayShift[kind]) + alignMask & ~alignMask;
    }

    /** After multianewarray: the array and the arrays in it. */
    public static void nested(Object made) {
        HprofTracker tracker = get();
        if (tracker != null) {
            tracker.copied(made);
            if (made instanceof Object[]) {
                for (Object element : (Object[]) made) {
                    if (element != null) {
                        nested(element);
                    }
                }
            }
        }
    }

    /** After clone, Array.newInstance or Arrays.copyOf. */
    public static void made(Object made) {
        HprofTracker tracker = get();
        if (tracker != null && made != null) {
            tracker.copied(made);
        }
    }

    /** In Arrays.copyOf, before it makes its array by reflection. */
    public static void muteNewArray() {
        HprofTracker tracker = get();
        if (tracker != null) {
            tracker.muteNewArray = true;
        }
    }

    /** In Array.newInstance. */
    public static void newArray(Object made) {
        HprofTracker tracker = get();
        if (tracker != null && made != null) {
            if (tracker.muteNewArray) {
                tracker.muteNewArray = false;
            } else {
                tracker.copied(made);
            }
        }
    }

    private void copied(Object made) {
        long key = context ^ made.getClass().hashCode() * SPREAD;
        long bytes = 0;
        if (made instanceof Object[]) {
            bytes = arrayBytes(((Object[]) made).length, 2);
        } else if (made instanceof byte[]) {
            bytes = arrayBytes(((byte[]) made).length, 8);
        } else if (made instanceof int[]) {
            bytes = arrayBytes(((int[]) made).length, 10);
        } else if (made instanceof char[]) {
            bytes = arrayBytes(((char[]) made).length, 5);
        } else if (made instanceof long[]) {
            bytes = arrayBytes(((long[]) made).length, 11);
        } else if (made instanceof boolean[]) {
            bytes = arrayBytes(((boolean[]) made).length, 4);
        } else if (made instanceof double[]) {
            bytes = arrayBytes(((double[]) made).length, 7);
        } else if (made instanceof float[]) {
            bytes = arrayBytes(((float[]) made).length, 6);
        } else if (made instanceof short[]) {
            bytes = arrayBytes(((short[]) made).length, 9);
        }
        count(made, key, bytes);
    }

    private void count(Object made, long key, long bytes) {
        long[] all = sites;
        int at = (int) (key * SPREAD >>> sitesShift) << 2;
        if (all[at] == key) {
            long objects = ++all[at + 1];
            all[at + 2] += bytes;
            if ((objects & (int) all[at + 3]) == 0) {
                follow(made, at, bytes);
            }
        } else {
            probe(made, key, bytes, at);
        }
    }

    private void probe(Object made, long key, long bytes, int at) {
        long[] all = sites;
        while (all[at] != key) {
            if (all[at] == 0) {
                site(this, made, key, bytes);
                return;
            }
            at = at + 4 & all.length - 1;
        }
        long objects = ++all[at + 1];
        all[at + 2] += bytes;
        if ((objects & (int) all[at + 3]) == 0) {
            follow(made, at, bytes);
        }
    }

    /** Puts an object among those to be followed until they die. */
    private void follow(Object made, int at, long bytes) {
        int count = pendingCount;
        long[] words = pendingWords;
        Object[] objects = pending;
        long how = sites[at + 3];
        words[count << 1] = how;
        words[(count << 1) + 1] = bytes;
        objects[count] = made;
        pendingCount = count + 1;
        if (adaptive && sites[at + 1] >>> exactShift > (int) how) {
            sites[at + 3] = how | (long) (int) how << 1 | 1;
        }
        // Large ones are not held back: the program may be short of memory.
        if (count + 1 == objects.length || bytes > 512) {
            drain(this);
            for (int i = 0; i <= count; i++) {
                objects[i] = null;
            }
            pendingCount = 0;
            peeked = 0;
        }
    }

    /** A method begins; the result is to be given back at its end. */
    public static int enter(HprofTracker tracker, int method) {
        return tracker == null ? -1 : tracker.push(method);
    }

    private int push(int method) {
        int at = depth;
        long[] open = stack;
        if (at + 2 > open.length) {
            open = growStack();
        }
        long now = precise ? System.nanoTime() : perThread ? cpu : clock;
        if (now != last) {
            charge(now);
        }
        int before = node;
        open[at] = before;
        open[at + 1] = now;
        depth = at + 2;
        long key = (long) before << 32 | method;
        long[] all = edges;
        int slot = (int) (key * SPREAD >>> edgesShift) << 1;
        node = all[slot] == key ? (int) all[slot + 1] : step(key, slot);
        return at;
    }

    /** The present context has spent the time since the clock was last seen to change. */
    private void charge(long now) {
        costs[(node << 2) + 1] += now - last;
        last = now;
    }

    private int step(long key, int slot) {
        long[] all = edges;
        while (all[slot] != key) {
            if (all[slot] == 0) {
                return edge(this, key);
            }
            slot = slot + 2 & all.length - 1;
        }
        return (int) all[slot + 1];
    }

    private long[] growStack() {
        long[] larger = new long[stack.length * 2];
        System.arraycopy(stack, 0, larger, 0, stack.length);
        stack = larger;
        return larger;
    }

    /** The method that began with the result {@code at} ends. */
    public static void exit(HprofTracker tracker, int at) {
        if (tracker != null) {
            tracker.pop(at);
        }
    }

    /** The method that began with the result {@code at} catches an exception. */
    public static void caught(HprofTracker tracker, int at) {
        if (tracker != null && tracker.depth > at + 2) {
            tracker.popAll(at + 2);
        }
    }

    /** Ends the call that began at {@code at}. */
    private void pop(int at) {
        if (depth != at + 2) {
            popAll(at);
            return;
        }
        long now = precise ? System.nanoTime() : perThread ? cpu : clock;
        if (now != last) {
            charge(now);
        }
        long[] open = stack;
        int present = node << 2;
        long[] sums = costs;
        sums[present]++;
        long spent = now - open[at + 1];
        if (spent != 0) {
            sums[present + 2] += spent;
        }
        node = (int) open[at];
        depth = at;
    }

    /** Ends all calls from {@code at} on: those above the last were ended by an exception. */
    private void popAll(int at) {
        while (depth > at) {
            pop(depth - 2);
        }
    }

    /** Makes the object of a thread, or answers null. */
    private static native HprofTracker enroll(Thread thread);

    /** Counts an allocation of a key not seen before, and enters the key. */
    private static native void site(HprofTracker tracker, Object made, long key, long bytes);

    /** Follows the pending objects until they die. */
    private static native void drain(HprofTracker tracker);

    /** The node after a call not seen before; enters the edge. */
    private static native int edge(HprofTracker tracker, long key);
}
