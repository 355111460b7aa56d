package java.lang;

/**
 * The methods that instrumented code calls. Each thread has one object of this class, its tracker, which holds the
 * thread's counters in plain arrays that only this thread writes. Native code reads them for a report. Native code is
 * called rarely: for a new thread, allocation site or call, to read a stack, or to track an object.
 *
 * The methods that are called at each call or allocation are not inlined: inlining them in thousands of methods costs
 * the VM's compilers more than it saves.
 *
 * The class is defined in the boot loader before any class is instrumented. It must not be instrumented itself, and
 * must call neither instrumented methods nor methods that a program can override. So it uses native methods of Thread,
 * Object and System, and for a thread's id Thread.threadId, which is final and not instrumented. Before JDK 19 there is
 * only getId, which a subclass may override; there the field tid is read. (Names that differ between versions, of
 * threadId, Unsafe, DontInline and HprofCarrier, are replaced before the class is defined.)
 *
 * There can be any number of virtual threads, so the tracker of a virtual thread (a guest) has only its calling context
 * and its open calls. Its counts are in tables of its carrier (the host): the carrier has a tracker, called a home, for
 * the tables of all virtual threads that are mounted there. A virtual thread never leaves its carrier inside this
 * class, so a table has one writer at a time. A thread that has moved to another carrier is recognized when its tracker
 * is looked up, before anything is counted.
 *
 * Compiled for Java 8 into HprofTracker.class next to this file; a test compares the two.
 */
public final class HprofTracker {
    /** Fills the unused slots of tables; it has no owner. */
    static final HprofTracker noThread = new HprofTracker();
    /** Trackers of all threads that are not virtual, by thread id. */
    static HprofTracker[] table = {noThread};
    /** The same table while allocations are counted, otherwise a table without threads. */
    static HprofTracker[] counting = table;
    /**
     * The tracker of the thread that was the last to notice a tick of the clock. Its calls need no lookup in the table,
     * which is a large part of the time of a call. Never the tracker of a virtual thread or of a thread that has ended.
     */
    static HprofTracker recent = noThread;
    /**
     * The tracker of the thread that makes nearly all allocations. If there is no such thread, it is noThread, because
     * the comparison would cost more than it saves.
     */
    static HprofTracker alone = noThread;
    /** The tracker of the thread that was the last to call updateAlone. */
    static HprofTracker candidate = noThread;
    /** Trackers of live virtual threads that have counted something, by thread id. */
    static HprofTracker[] guests = {noThread};
    /** Trackers of virtual threads that have ended, for reuse; a list linked by host. */
    static HprofTracker free;
    /** All trackers that hold tables for virtual threads. */
    static HprofTracker[] homes = {};
    /** Whether this VM has virtual threads, and thus carriers. */
    static final boolean hasCarriers;
    /** Whether anything is counted: false before the VM is initialized and after its end. */
    static boolean on;
    /** Whether allocations are counted. */
    static boolean allocations;
    /** By how many bits a calling context is shifted for each call. */
    static final int contextShift;
    /** Whether the depth of stacks may change; then the next two fields apply instead of contextShift. */
    static final boolean depthMayChange;
    /** The present value of contextShift, if the depth may change. */
    static int shiftNow;
    /** Gives equal contexts other keys after the depth of stacks has changed. */
    static long depthSalt;
    /**
     * System.nanoTime in nanoseconds, written about every millisecond by the clock thread; the low 8 bits count the
     * writes. It is an array element and not a volatile field, because after reading a volatile field the compiler has
     * to read all other fields again. Each call stores to an array of this type, so the compiler never keeps an old
     * time in a register.
     */
    static final long[] clock = new long[1];
    /** Whether times are CPU times of the thread, and not elapsed time. */
    static final boolean perThread;
    /** Nanoseconds that it takes to read the elapsed time. */
    static final long overhead;
    /** Reads the field tid of Thread; null where Thread has a final method threadId. */
    static final sun.misc.Unsafe unsafe;
    /** Offset of the field tid. */
    static final long tid;
    /** Bytes before the elements of an array, by the type code of newarray (2: references). */
    static final int[] arrayBase = new int[12];
    /** Binary logarithm of an element's width in bytes, by type code. */
    static final int[] arrayShift = new int[12];
    /** Alignment of objects in bytes, minus one. */
    static final int alignMask;
    /** Whether only a part of the objects is tracked at sites that make very many. */
    static final boolean adaptive;
    /**
     * With adaptive: binary logarithm of the number of objects per site that are all tracked, if the thread has few
     * sites.
     */
    static final int exactShift;
    /**
     * Whether stacks are sampled. Then a context is one allocating instruction, or 0 where the allocating code has no
     * inserted code.
     */
    static final boolean stacksSampled;
    /**
     * The least value of exactShift that is used after very many objects were tracked, however many sites the thread
     * has.
     */
    private static final int LEAST_EXACT = 6;
    /**
     * After this many tracked objects, a thread checks whether other threads had objects tracked in the meantime; a
     * power of two.
     */
    private static final int ALONE_INTERVAL = 256;
    /**
     * Limits exactShift in the same case to sitesShift - MANY_EXACT. For all sites of a thread together that is 62 -
     * MANY_EXACT - 2, because a table has at least four slots for each site.
     */
    private static final int MANY_EXACT = 43;

    // Set by native code before anything is counted. The values here keep javac from treating the fields as constants;
    // the JIT does treat them as constants.
    static {
        contextShift = 12;
        depthMayChange = false;
        perThread = false;
        hasCarriers = false;
        overhead = 0;
        unsafe = null;
        tid = 0;
        alignMask = 7;
        adaptive = false;
        exactShift = 12;
        stacksSampled = false;
    }

    /** Low bits of a site's number, which count the sites of its class; as in the instrumenter. */
    private static final int SITE_BITS = 28;

    /** Spreads keys over the slots of a table: 2^64 divided by the golden ratio. */
    private static final long SPREAD = 0x9E3779B97F4A7C15L;

    // Bits of a word that names a node (a calling context), in the stack and in the edges of a thread.
    /** The node's number. */
    private static final long NODE = 0x7fffffffL;
    /** Each stretch of time in the node is measured. */
    private static final long EACH = 1L << 31;
    /** In edges: one call. */
    private static final long CALL = 1L << 32;
    /**
     * In edges: binary logarithm of the number of calls at which native code collects the count before the next report,
     * so that it does not overflow.
     */
    private static final int CARRIED_LOG2 = 22;
    /** In the stack: the call that began here is measured. */
    private static final long MEASURED = 1L << 33;
    /** In the stack: the present stretch of time is measured. */
    private static final long TIMED = 1L << 34;
    /** In the stack: the clock has ticked since the call; the next word is its time before that. */
    private static final long CROSSED = 1L << 35;
    /** In the stack: position of the binary logarithm of the number of calls that the measured one stands for. */
    private static final int WEIGHT = 40;

    /**
     * The number of first stretches of a node that are all measured. If they are short on average, one of 2^SOME_LOG2
     * later ones is measured.
     */
    private static final int MANY = 256;
    /** Binary logarithm of the mean length in nanoseconds beyond which all stretches are measured. */
    private static final int LONG_LOG2 = 12;
    private static final int SOME_LOG2 = 8;
    /** Nanoseconds up to which a stretch or call is measured as one of 2^SOME_LOG2. */
    private static final long SHORT = 1 << 15;
    /** Approximate nanoseconds between two ticks of the clock. */
    private static final long TICK = 1060000;

    /** The thread of this tracker. Other threads read it (recent), so it shares no cache line with the counters. */
    @jdk.internal.vm.annotation.Contended
    Thread owner;
    /** The number of the tables in native code. */
    int id;
    /**
     * Of a virtual thread: the tracker that has its tables. Of a carrier and of a home: the next home of this carrier.
     */
    HprofTracker home;
    /** Of a virtual thread: the tracker of the carrier that it was mounted on when it got its tables. */
    HprofTracker host;
    /** Of a carrier: the tracker of the virtual thread that used its tables last. */
    HprofTracker guest;
    /** Of a virtual thread and of a home: the group of virtual threads whose counts are kept together. */
    int kind;

    /** Calling context of the running code: the last call sites, shifted and added. */
    long context;
    /**
     * Allocation sites, four words each: key, objects, bytes, and a word whose low half is the tracking mask (one of
     * mask + 1 objects is tracked) and whose high half is the site's number.
     */
    long[] sites;
    /** 64 minus the binary logarithm of the length of sites. */
    int sitesShift;
    /** Objects that native code will track when the array is full; null if each object is tracked immediately. */
    Object[] pending;
    /** Two words for each pending object: the last word of its site; its size in bytes if it is an array. */
    long[] pendingWords;
    /** How many objects are pending; volatile, so that a reader finds that many complete entries. */
    volatile int pendingCount;
    /** How many of the pending objects native code has read already. */
    int peeked;
    /** True if the caller of Arrays.copyOf counts the next array that is made by reflection. */
    boolean muteNewArray;

    /** Open calls, two words each: the node before the call; the clock at the call, stored when the clock ticks. */
    long[] stack;
    /** How many objects of the thread were tracked. */
    int tracked;
    /** Words of the stack in use. */
    int depth;
    /** The start time of each measured open call, like start. */
    long[] starts;
    /** How often larger arrays were needed since memory for them was last available. */
    int refused;
    /** The present calling context: a number given by native code. */
    long node;
    /**
     * Known calls, two words each: a key, which is the number of the method times SPREAD, with the number of the node in
     * the upper 31 bits by exclusive or; the node after the call and, in the upper half, the number of calls.
     */
    long[] edges;
    /** For each node: own time, time with callees, number of measured stretches. */
    long[] costs;
    /** CPU time of the thread, in the form of clock; 0 if elapsed time is measured or the CPU time is not known. */
    volatile long cpu;
    /** The clock when the present stretch of time began. */
    long seen;
    /** If the present stretch is measured, its start time plus the time that reading it took; otherwise 0. */
    long start;
    /** Binary logarithm of the number of stretches that the present one stands for. */
    int shift;
    /** Calls until the next one is measured; 0 while a stretch is measured, so that its end is not missed. */
    int countdown;
    /** The value of countdown when the present measured stretch began. */
    int countdownBefore;
    /** State of the random numbers that countdown starts with and that decide which stacks are sampled. */
    long noise;

    private static int id(Thread thread) {
        return (int) (unsafe != null ? unsafe.getLong(thread, tid) : thread.getId());
    }

    /** The current thread's tracker, or null if nothing is counted for it. */
    public static HprofTracker get() {
        Thread thread = Thread.currentThread();
        HprofTracker found = alone;
        return found.owner == thread ? found : other(thread);
    }

    /** The tracker of a thread that does not allocate alone. It is not inlined, because most methods call get. */
    @jdk.internal.vm.annotation.DontInline
    private static HprofTracker other(Thread thread) {
        HprofTracker[] all = table;
        HprofTracker found = all[id(thread) & all.length - 1];
        if (found.owner == thread) {
            return found;
        }
        return find(thread);
    }

    /** The thread's tracker if it is recent or in the thread's first slot of the table, otherwise null. */
    private static HprofTracker near(Thread thread) {
        HprofTracker found = recent;
        if (found.owner == thread) {
            return found;
        }
        HprofTracker[] all = table;
        found = all[id(thread) & all.length - 1];
        return found.owner == thread ? found : null;
    }

    /** The current thread's tracker, or null if its allocations are not counted. */
    private static HprofTracker counter() {
        Thread thread = Thread.currentThread();
        HprofTracker found = alone;
        if (found.owner == thread && allocations) {
            return found;
        }
        HprofTracker[] all = counting;
        found = all[id(thread) & all.length - 1];
        if (found.owner == thread) {
            return found;
        }
        return allocations ? find(thread) : null;
    }

    /**
     * The tracker of a thread that is not in its first slot. All code of a virtual thread gets here. It is not inlined:
     * the compiler would copy the whole lookup into each method.
     */
    @jdk.internal.vm.annotation.DontInline
    private static HprofTracker find(Thread thread) {
        if (!on || thread == null) {
            return null;
        }
        if (hasCarriers) {
            Thread carrier = HprofCarrier.currentCarrierThread();
            if (carrier != thread) {
                return mounted(thread, carrier);
            }
        }
        HprofTracker found = among(table, thread);
        return found != null ? found : enroll(thread);
    }

    /** The tracker of a thread in a table, or null. */
    private static HprofTracker among(HprofTracker[] all, Thread thread) {
        for (int i = 0, at = id(thread); i < 8; i++) {
            HprofTracker found = all[at + i & all.length - 1];
            if (found.owner == thread) {
                return found;
            }
        }
        return null;
    }

    /** The tracker of a virtual thread, with the tables of its carrier. */
    private static HprofTracker mounted(Thread thread, Thread carrier) {
        HprofTracker[] all = table;
        HprofTracker host = all[id(carrier) & all.length - 1];
        if (host.owner != carrier) {
            host = among(all, carrier);
            if (host == null && (host = enroll(carrier)) == null) {
                return null;
            }
        }
        HprofTracker guest = host.guest;
        if (guest != null && guest.owner == thread && guest.host == host) {
            return guest;
        }
        return mount(thread, host);
    }

    /** Gives the tracker of a virtual thread the tables of its present carrier. */
    @jdk.internal.vm.annotation.DontInline
    private static HprofTracker mount(Thread thread, HprofTracker host) {
        HprofTracker guest = among(guests, thread);
        if (guest == null) {
            guest = lodge(thread);
            if (guest == null) {
                return null;
            }
            guest.begin();
        }
        HprofTracker home = host.home;
        while (home != null && home.kind != guest.kind) {
            home = home.home;
        }
        // The costs of the home need an entry for every node that the thread has been in.
        if (home == null || guest.costs != null && guest.costs.length > home.costs.length) {
            home = house(host, guest);
            if (home == null) {
                return null;
            }
        }
        guest.id = home.id;
        guest.sites = home.sites;
        guest.sitesShift = home.sitesShift;
        guest.edges = home.edges;
        guest.costs = home.costs;
        guest.home = home;
        guest.host = host;
        host.guest = guest;
        return guest;
    }

    /** Resets a tracker that another virtual thread used before. The CPU time of a virtual thread is not known. */
    private void begin() {
        context = 0;
        node = 0;
        start = 0;
        countdown = 0;
        seen = perThread ? 0 : clock[0];
        muteNewArray = false;
    }

    /** At the entry of a method: what the contexts of its sites have in common, plus the number of its class. */
    public static long context(HprofTracker tracker, long sites) {
        return tracker == null ? 0 : (tracker.context << (depthMayChange ? shiftNow : contextShift)) + sites;
    }

    /** Before a call or an allocation at a call site: stores its context. */
    public static void at(HprofTracker tracker, long context, int site) {
        if (tracker != null) {
            tracker.context = context + number(site);
        }
    }

    /**
     * What a site adds to the number of its class: its own number in the low bits, a hash of it above. The JIT computes
     * it when it compiles a call of {@link #at}.
     */
    private static long number(int site) {
        long noise = site * 0x9E3779B97F4A7C15L;
        noise = (noise ^ noise >>> 32) * 0xBF58476D1CE4E5B9L;
        return (noise << SITE_BITS) + site;
    }

    /** At the entry of a method that the VM calls by itself: the context of the interrupted code. */
    public static long found(HprofTracker tracker) {
        return tracker == null ? 0 : tracker.context;
    }

    /** The same; also sets the context to that of the present stack. */
    public static long called(HprofTracker tracker) {
        if (tracker == null) {
            return 0;
        }
        long before = tracker.context;
        upcall(tracker);
        return before;
    }

    /** At the end of such a method: restores the context of the interrupted code. */
    public static void back(HprofTracker tracker, long context) {
        if (tracker != null) {
            tracker.context = context;
        }
    }

    // If stacks are sampled, the context is one instruction, from that instruction to the count of its object.

    /** Stores the site of an instruction that is about to call a constructor, or has made an array or a copy. */
    @jdk.internal.vm.annotation.DontInline
    public static void here(long sites, int site) {
        HprofTracker tracker = counter();
        if (tracker != null) {
            tracker.context = sites + number(site);
        }
    }

    /**
     * At the entry of a constructor that runs other code before it calls the next constructor: returns the site of its
     * object and clears it.
     */
    @jdk.internal.vm.annotation.DontInline
    public static long held() {
        HprofTracker tracker = counter();
        if (tracker == null) {
            return 0;
        }
        long site = tracker.context;
        tracker.context = 0;
        return site;
    }

    /** Before such a constructor calls the next one: stores the site again. */
    @jdk.internal.vm.annotation.DontInline
    public static void hold(long site) {
        HprofTracker tracker = counter();
        if (tracker != null) {
            tracker.context = site;
        }
    }

    /** Clears the site, so that the next object does not belong to it unless an instruction stores it again. */
    private void counted() {
        if (stacksSampled) {
            context = 0;
        }
    }

    private long key() {
        return depthMayChange ? context ^ depthSalt : context;
    }

    /** At the entry of Object's constructor. */
    @jdk.internal.vm.annotation.DontInline
    public static void object(Object made) {
        HprofTracker tracker = counter();
        if (tracker != null) {
            long key = tracker.key();
            if (!stacksSampled || tracker.context == 0) {
                key ^= made.getClass().hashCode() * SPREAD; // An instruction makes objects of one class.
            }
            tracker.count(made, key, 0);
            tracker.counted();
        }
    }

    /** After an array instruction. */
    @jdk.internal.vm.annotation.DontInline
    public static void array(Object made, int length, int kind) {
        HprofTracker tracker = counter();
        if (tracker != null) {
            tracker.count(made, tracker.key() ^ kind, arrayBytes(length, kind));
            tracker.counted();
        }
    }

    private static long arrayBytes(int length, int kind) {
        return arrayBase[kind] + ((long) length << arrayShift[kind]) + alignMask & ~alignMask;
    }

    /** After multianewarray: counts the array and the arrays in it. */
    @jdk.internal.vm.annotation.DontInline
    public static void nested(Object made) {
        HprofTracker tracker = counter();
        if (tracker != null) {
            tracker.nest(made);
            tracker.counted();
        }
    }

    private void nest(Object made) {
        copied(made);
        if (made instanceof Object[]) {
            for (Object element : (Object[]) made) {
                if (element != null) {
                    nest(element);
                }
            }
        }
    }

    /** After clone, Array.newInstance or Arrays.copyOf. */
    @jdk.internal.vm.annotation.DontInline
    public static void made(Object made) {
        HprofTracker tracker = counter();
        if (tracker != null && made != null) {
            tracker.copied(made);
            tracker.counted();
        }
    }

    /** In Arrays.copyOf, before it makes its array by reflection. */
    public static void muteNewArray() {
        HprofTracker tracker = counter();
        if (tracker != null) {
            tracker.muteNewArray = true;
        }
    }

    /** In Array.newInstance, when it has made an array. */
    @jdk.internal.vm.annotation.DontInline
    public static void newArray(Object made) {
        HprofTracker tracker = counter();
        if (tracker != null && made != null) {
            if (tracker.muteNewArray) {
                tracker.muteNewArray = false;
            } else {
                tracker.copied(made);
            }
            tracker.counted();
        }
    }

    private void copied(Object made) {
        long key = key() ^ made.getClass().hashCode() * SPREAD;
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
        if (all == null) {
            return; // The code belongs to a recording that has ended; the thread is already known to the next one.
        }
        int at = (int) (key * SPREAD >>> sitesShift) & -4;
        if (all[at] != key && (at = probe(all, at, key)) < 0) {
            site(this, made, key, bytes);
            return;
        }
        long objects = all[at + 1] + 1;
        // If stacks are sampled, the tracked objects are picked without a period, so that no stack is preferred.
        if (((stacksSampled ? objects * SPREAD >>> 32 : objects) & (int) all[at + 3]) == 0) {
            follow(made, all, at, bytes);
            return;
        }
        all[at + 1] = objects;
        all[at + 2] += bytes;
    }

    /** The slot of a key whose first slot is taken by another key; negative if the key is new. */
    @jdk.internal.vm.annotation.DontInline
    private static int probe(long[] all, int at, long key) {
        while (all[at] != key) {
            if (all[at] == 0) {
                return -1;
            }
            at = at + 4 & all.length - 1;
        }
        return at;
    }

    /**
     * Counts an object and has it tracked until it is freed: immediately, or when the array of pending objects is full.
     * Rarely called for sites that make many objects.
     */
    @jdk.internal.vm.annotation.DontInline
    private void follow(Object made, long[] all, int at, long bytes) {
        if ((++tracked & ALONE_INTERVAL - 1) == 0 && host == null) {
            updateAlone();
        }
        long objects = all[at + 1] + 1;
        long siteWord = all[at + 3];
        HprofTracker keeper = host == null ? this : home;
        boolean isFull = false;
        int exact = exactShift;
        // The object is tracked or pending before it is counted, so that a reader of the counts and then of the pending
        // objects finds each object that was counted.
        if (keeper.pending != null) {
            isFull = keeper.gather(made, siteWord, bytes);
        } else if (track(made, keeper.id, siteWord, bytes) != 0) {
            exact = Math.min(exact, Math.max(LEAST_EXACT, sitesShift - MANY_EXACT));
        }
        all[at + 1] = objects;
        all[at + 2] += bytes;
        if (stacksSampled) {
            sampleSome(objects, siteWord);
        } else if ((objects & objects - 1) == 0) {
            check(this, siteWord);
        }
        if (adaptive && objects >>> exact > (int) siteWord) {
            all[at + 3] = siteWord | (long) (int) siteWord << 1 | 1;
        }
        if (isFull) {
            keeper.takeOver();
        }
    }

    /**
     * Sets alone to this tracker if its thread was also the last one to call this method, otherwise to noThread. Rarely
     * called, because all threads read what it writes.
     */
    private void updateAlone() {
        HprofTracker last = candidate;
        if (last != this) {
            candidate = this;
        }
        HprofTracker now = last == this ? this : noThread;
        if (alone != now) {
            alone = now;
        }
    }

    /** Adds a pending object; returns whether native code should take over the pending objects now. */
    private boolean gather(Object made, long siteWord, long bytes) {
        if (pendingCount == pending.length) {
            // A StackOverflowError has come between the last object and its call of takeOver.
            takeOver();
        }
        int count = pendingCount;
        pendingWords[count << 1] = siteWord;
        pendingWords[(count << 1) + 1] = bytes;
        pending[count++] = made;
        pendingCount = count;
        // Large objects are not kept pending, because the program may be short of memory.
        return count == pending.length || bytes > 512;
    }

    private void takeOver() {
        int count = pendingCount;
        drain(this);
        // No call follows, which could throw: what is drained is no longer pending.
        pendingCount = 0;
        peeked = 0;
        for (int i = 0; i < count; i++) {
            pending[i] = null;
        }
    }

    /**
     * Samples the stack of all of the first objects of a site, and then of a random choice that becomes rarer: after
     * the first 2^n objects, about 2^(n / 4 + 2) of the next 2^n are sampled. Each stands for as many objects as it was
     * chosen from.
     */
    private void sampleSome(long objects, long siteWord) {
        int rarity = (60 - Long.numberOfLeadingZeros(objects)) * 3 >> 2;
        int picked = Integer.bitCount((int) siteWord);
        int more = rarity - picked;
        if (more > 0) {
            if (random() >>> 64 - more != 0) {
                return;
            }
            picked = rarity;
        }
        sample(this, siteWord, picked);
    }

    /** 64 bits of which the high ones are random. The increment is odd and differs between threads. */
    private long random() {
        noise = noise * 6364136223846793005L + 1442695040888963407L + ((long) id << 1);
        return noise;
    }

    // In the following methods the rare case is a call at the very end, because the compiler keeps values that are
    // needed after a call in memory instead of registers.

    /**
     * At the beginning of a method: {@code method} is its number times SPREAD. The result must be passed to exit at its
     * end.
     */
    @jdk.internal.vm.annotation.DontInline
    public static int enter(long method) {
        Thread thread = Thread.currentThread();
        HprofTracker found = near(thread);
        return found != null ? found.push(method) : enterOther(thread, method);
    }

    @jdk.internal.vm.annotation.DontInline
    private static int enterOther(Thread thread, long method) {
        HprofTracker tracker = find(thread);
        return tracker == null ? -1 : tracker.push(method);
    }

    private int push(long method) {
        int at = depth;
        long[] open = stack;
        if (open == null) {
            return -1; // See count.
        }
        // Both are even. The VM checks the index only once if it is compared like this.
        if (at < 0 || at >= open.length) {
            return growStack() ? pushHere(method) : -1;
        }
        long now = perThread ? cpu : clock[0];
        long before = node;
        open[at] = before;
        depth = at + 2;
        long key = before << 33 ^ method;
        long[] all = edges;
        int slot = firstSlot(key, all.length);
        // Both are read before the comparison, so that the VM checks only one index.
        long known = all[slot];
        long word = all[slot + 1];
        if (known != key) {
            return step(at, key, now, slot);
        }
        word += CALL;
        all[slot + 1] = word;
        return lead(at, key, now, word);
    }

    /** Calls push without inlining it, for rare cases. */
    @jdk.internal.vm.annotation.DontInline
    private int pushHere(long method) {
        return push(method);
    }

    /** A method has begun; word is the second word of its edge and has its node. */
    private int lead(int at, long key, long now, long word) {
        node = word & (NODE | EACH);
        int remaining = countdown - 1;
        countdown = remaining;
        // EACH is the highest bit of an int.
        if (((int) word | remaining) < 0 || now != seen) {
            return entered(at, key, now);
        }
        return at;
    }

    /** At the beginning of a method that calls no other code. The result must be passed to exit at its end. */
    @jdk.internal.vm.annotation.DontInline
    public static int leaf(long method) {
        Thread thread = Thread.currentThread();
        HprofTracker found = near(thread);
        return found != null ? found.touch(method) : leafOther(thread, method);
    }

    @jdk.internal.vm.annotation.DontInline
    private static int leafOther(Thread thread, long method) {
        HprofTracker tracker = find(thread);
        return tracker == null ? -1 : tracker.touch(method);
    }

    /**
     * Counts a call without putting it on the stack, because no other code runs during it. If time is measured, it is
     * treated like other calls.
     */
    private int touch(long method) {
        long now = perThread ? cpu : clock[0];
        long present = node;
        long key = present << 33 ^ method;
        long[] all = edges;
        int remaining = countdown - 1;
        if (all == null) {
            return -1; // See count.
        }
        int slot = firstSlot(key, all.length);
        long known = all[slot];
        long word = all[slot + 1];
        if (known != key || ((int) word | remaining) < 0 || now != seen) {
            return pushHere(method);
        }
        all[slot + 1] = word + CALL;
        countdown = remaining;
        return -1;
    }

    /** A method has begun whose edge is not in its first slot, or is new. */
    @jdk.internal.vm.annotation.DontInline
    private int step(int at, long key, long now, int slot) {
        long[] all = edges;
        while (all[slot] != key) {
            if (all[slot] == 0) {
                return lead(at, key, now, edge(this, key) | EACH);
            }
            slot = slot + 2 & all.length - 1;
        }
        return lead(at, key, now, all[slot + 1] += CALL);
    }

    /**
     * The first slot of an edge, by the upper half of its key. It takes few instructions, because each call waits for
     * them.
     */
    private static int firstSlot(long key, int length) {
        return (int) (key >>> 32) & length - 2;
    }

    /** The slot of an edge, or -1. */
    private int slot(long key) {
        long[] all = edges;
        int slot = firstSlot(key, all.length);
        while (all[slot] != key) {
            if (all[slot] == 0) {
                return -1;
            }
            slot = slot + 2 & all.length - 1;
        }
        return slot;
    }

    /** From now on only some stretches of the node that the edge leads to are measured. */
    private void settle(long key) {
        int slot = slot(key);
        if (slot >= 0) {
            edges[slot + 1] &= ~EACH;
        }
    }

    /** Lets native code collect the number of calls of an edge if it is large. */
    private void carryMany(long key) {
        int slot = slot(key);
        if (slot >= 0 && edges[slot + 1] >>> 32 + CARRIED_LOG2 != 0) {
            carry(this, slot);
        }
    }

    /**
     * Returns false if there is no memory. The call is then not counted; the program gets no error, because it has not
     * requested the memory.
     */
    @jdk.internal.vm.annotation.DontInline
    private boolean growStack() {
        if (!mayGrow()) {
            return false;
        }
        long[] larger;
        try {
            larger = new long[stack.length * 2];
        } catch (OutOfMemoryError e) {
            return false;
        }
        refused = 0;
        System.arraycopy(stack, 0, larger, 0, stack.length);
        stack = larger;
        return true;
    }

    /** At the end of a method: {@code at} is the result of enter or leaf. */
    public static void exit(int at) {
        if (at >= 0) {
            end(at);
        }
    }

    /** The same for a call that is on the stack of open calls. */
    @jdk.internal.vm.annotation.DontInline
    private static void end(int at) {
        Thread thread = Thread.currentThread();
        HprofTracker found = near(thread);
        if (found != null) {
            found.pop(at);
        } else {
            endOther(thread, at);
        }
    }

    @jdk.internal.vm.annotation.DontInline
    private static void endOther(Thread thread, int at) {
        HprofTracker tracker = find(thread);
        if (tracker != null) {
            tracker.pop(at);
        }
    }

    /** In an exception handler: {@code at} is the result of enter for this method. */
    @jdk.internal.vm.annotation.DontInline
    public static void caught(int at) {
        HprofTracker tracker = at < 0 ? null : get();
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
        long now = perThread ? cpu : clock[0];
        long before = stack[at];
        long ended = node;
        node = before;
        depth = at;
        if (before > NODE | now != seen) {
            exited(at, (int) ended << 2, now);
        }
    }

    /** Ends all calls from {@code at} on. An exception has ended all but the first of them. */
    @jdk.internal.vm.annotation.DontInline
    private void popAll(int at) {
        while (depth > at) {
            pop(depth - 2);
        }
    }

    // How time is measured. The time between two calls of enter or exit is called a stretch; it belongs to one node.
    // Reading the time at each enter and exit would cost more than short methods take. So only the first stretches of a
    // node are all measured, and all later ones if they are long on average. Of later short stretches a random choice
    // is measured. Each of these counts for as many as it was chosen from, but only up to a length of SHORT. Time
    // beyond SHORT is measured by the clock: a stretch that still runs SHORT after a tick gets the whole time between
    // two ticks. On average each stretch thus gets the time that it took: a stretch of length L beyond SHORT contains
    // such a tick with a probability of (L - SHORT) / TICK. Calls with their callees are measured in the same way.

    private static long time(HprofTracker tracker) {
        return !perThread ? System.nanoTime() : tracker.cpu == 0 ? 0 : cpuTime();
    }

    /** The time beyond SHORT, by the clock, of a stretch or call that began and ended at these clock values. */
    private static long beyond(long from, long to, long time) {
        if (from == to) {
            return 0;
        }
        if (time - to >= SHORT) {
            return to - from;
        }
        return (to - from & 0xff) == 1 ? 0 : to - from - TICK;
    }

    /** The time that a measured stretch or call stands for. */
    private static long weighted(long spent, int weight) {
        if (spent <= 0) {
            return 0;
        }
        return weight == 0 ? spent : (spent < SHORT ? spent : SHORT) << weight;
    }

    // The slow parts are never inlined, because their callers would become too large to be inlined.

    /** The slow part of a method's beginning: {@code at} is its position in the stack and the result. */
    @jdk.internal.vm.annotation.DontInline
    private int entered(int at, long key, long now) {
        boolean wasTimed = start != 0;
        if (now != seen) {
            markCrossed(at - 2);
        }
        endStretch((int) stack[at] << 2, now);
        if (wasTimed) {
            countdown--;
        }
        boolean isChosen = countdown < 0;
        if (isChosen) {
            countdown = (int) ((random() >>> 33) % ((2 << SOME_LOG2) - 1));
            carryMany(key);
        }
        int weight = 0;
        long present = node;
        if (present <= NODE || isKnown((int) present << 2)) {
            if (present > NODE) {
                settle(key);
                node = present & NODE;
            }
            if (!isChosen) {
                return at;
            }
            weight = SOME_LOG2;
        }
        if ((starts == null || starts.length <= at >> 1) && !growStarts()) {
            return at;
        }
        stack[at] |= MEASURED | (long) weight << WEIGHT;
        starts[at >> 1] = beginStretch(weight, at);
        return at;
    }

    /** Whether only some stretches of the node with these costs are measured; if not, counts one more measurement. */
    private boolean isKnown(int at) {
        long measured = costs[at + 2];
        if (measured >= MANY && costs[at] >> LONG_LOG2 < measured) {
            return true;
        }
        costs[at + 2] = measured + 1;
        return false;
    }

    /**
     * Whether to try to enlarge an array. Each failed attempt may cost the program a garbage collection, so the
     * attempts become rarer.
     */
    private boolean mayGrow() {
        int tried = ++refused;
        return (tried & tried - 1) == 0;
    }

    /** Returns false if there is no memory. */
    private boolean growStarts() {
        if (!mayGrow()) {
            return false;
        }
        long[] longer;
        try {
            longer = new long[stack.length >> 1];
        } catch (OutOfMemoryError e) {
            return false;
        }
        refused = 0;
        if (starts != null) {
            System.arraycopy(starts, 0, longer, 0, starts.length);
        }
        starts = longer;
        return true;
    }

    /** The slow part of a method's end; present is the position of its node's costs. */
    @jdk.internal.vm.annotation.DontInline
    private void exited(int at, int present, long now) {
        if (host != null) {
            // The thread may have moved to another carrier since its tracker was looked up.
            find(owner);
        }
        if (now != seen) {
            markCrossed(at);
        }
        long time = endStretch(present, now);
        long word = stack[at];
        long entry = (word & CROSSED) != 0 ? stack[at + 1] : now;
        boolean isMeasured = (word & MEASURED) != 0;
        int weight = (int) (word >>> WEIGHT);
        if (isMeasured || now != entry) {
            time = time == 0 ? time(this) : time;
            long spent = isMeasured ? weighted(time - starts[at >> 1], weight) : 0;
            if (!isMeasured || weight != 0) {
                spent += beyond(entry, now, time);
            }
            costs[present + 1] += spent;
        }
        long before = word & (NODE | EACH);
        if (before > NODE) {
            if (isKnown((int) before << 2)) {
                before &= NODE;
            } else {
                weight = 0;
                isMeasured = true;
            }
        }
        node = before;
        if (isMeasured) {
            beginStretch(weight, at - 2);
        }
    }

    /** The clock has ticked: marks the open calls up to {@code at} that are not marked yet. */
    private void markCrossed(int at) {
        if (recent != this && host == null) {
            recent = this;
        }
        long[] open = stack;
        for (long before = seen; at >= 0 && (open[at] & CROSSED) == 0; at -= 2) {
            open[at] |= CROSSED;
            open[at + 1] = before;
        }
    }

    /** A stretch of the node with these costs has ended. Returns the time, or 0 if it was not read. */
    private long endStretch(int present, long now) {
        long from = seen;
        long begun = start;
        if (begun == 0 && from == now) {
            return 0;
        }
        seen = now;
        long time = time(this);
        long spent = 0;
        if (begun != 0) {
            start = 0;
            countdown = countdownBefore;
            spent = weighted(time - begun, shift);
        }
        if (begun == 0 || shift != 0) {
            spent += beyond(from, now, time);
        }
        costs[present] += spent;
        return time;
    }

    /** A measured stretch begins; {@code at} is the last open call. The result is start. */
    private long beginStretch(int weight, int at) {
        shift = weight;
        countdownBefore = countdown;
        countdown = 0;
        if (at >= 0) {
            stack[at] |= TIMED;
        }
        return start = begun();
    }

    /**
     * The time plus what reading it takes. Reading the CPU time is a system call of about a microsecond, longer if the
     * processor has done other work in between or is shared. So it is read twice: the cost of the first call is not
     * counted, and the difference is the present cost of a call.
     */
    private long begun() {
        if (!perThread) {
            return System.nanoTime() + overhead;
        }
        if (cpu == 0) {
            return 0;
        }
        long first = cpuTime();
        long time = cpuTime();
        return time + (time - first);
    }

    /** Before anything is counted: calls a native method, and stores the offset of Thread.tid in the array. */
    private static void prepare(long[] answer) throws NoSuchFieldException {
        cpuTime();
        if (unsafe != null) {
            answer[0] = unsafe.objectFieldOffset(Thread.class.getDeclaredField("tid"));
        }
    }

    /** Makes the tracker of a thread that is not virtual; null if it cannot. */
    private static native HprofTracker enroll(Thread thread);

    /** Makes the tracker of a virtual thread; null if it cannot. */
    private static native HprofTracker lodge(Thread thread);

    /** Gives the carrier a home with tables that are large enough for the virtual thread; null if it cannot. */
    private static native HprofTracker house(HprofTracker host, HprofTracker guest);

    /** Counts an allocation with a new key, and adds the key. */
    private static native void site(HprofTracker tracker, Object made, long key, long bytes);

    /** Sets the context to one of the present stack. */
    private static native void upcall(HprofTracker tracker);

    /** Checks that the present stack is the one of the allocation's site; called when the count is a power of two. */
    private static native void check(HprofTracker tracker, long siteWord);

    /** Reads the present stack, for an object that stands for 2^weight objects of its site. */
    private static native void sample(HprofTracker tracker, long siteWord, int weight);

    /** Tracks the pending objects until they are freed. */
    private static native void drain(HprofTracker tracker);

    /**
     * Tracks one object for the tables with this number; the other arguments are those of a pending object. Not 0 if
     * very many objects were tracked, so that fewer of each site are sufficient.
     */
    private static native int track(Object made, int tables, long siteWord, long bytes);

    /** The node after a call that is new; adds the edge. */
    private static native int edge(HprofTracker tracker, long key);

    /** Collects the number of calls of the edge in a slot. */
    private static native void carry(HprofTracker tracker, int slot);

    /** CPU time of the current thread. */
    private static native long cpuTime();
}

/** Stands for java.lang.Thread, because javac of JDK 8 does not know its method of this name. */
final class HprofCarrier {
    static native Thread currentCarrierThread();
}
