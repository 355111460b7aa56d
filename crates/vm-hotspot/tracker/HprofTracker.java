package java.lang;

/**
 * What instrumented code calls. One object per thread holds its counters in plain
 * arrays that only this thread writes; native code reads them when a report is
 * due and is called only when something is seen for the first time, or an object
 * is to be tracked.
 *
 * What is called at each call or allocation is not inlined: in thousands of methods it costs the VM's compilers
 * more than it saves.
 *
 * The class is defined in the boot loader before any class is instrumented, so it
 * must not be instrumented itself and must not call what is, nor what a program can
 * override: it uses native methods of Thread, Object and System, and of a thread's
 * id Thread.threadId, which is final and left alone by the instrumenter. Before JDK
 * 19 there is only getId, which a subclass may override; there the field is read.
 * (Names that differ by version, of threadId, Unsafe, DontInline and HprofCarrier, are
 * replaced before the class is defined.)
 *
 * There can be any number of virtual threads, so each has only what differs from one to
 * the other at one moment: its calling context and its open calls. What is counted is in
 * tables of its carrier, the home of all that are mounted there. No virtual thread leaves
 * its carrier inside of this class, so a table has one writer at a time; and who comes
 * back to another carrier is found out where the tracker is looked up, before anything
 * is counted.
 *
 * Compiled to Java 8 and kept as HprofTracker.class next to this file; a test
 * compares the two.
 */
public final class HprofTracker {
    /** Fills unused slots of tables; it has no owner. */
    static final HprofTracker noThread = new HprofTracker();
    /** Objects of all threads that are not virtual, by thread id. */
    static HprofTracker[] table = {noThread};
    /** The same while allocations are counted, else a table without threads. */
    static HprofTracker[] counting = table;
    /**
     * One of these, of the thread that was the last to notice a tick: its calls need not wait for the way through the
     * table, a large part of the time of a call. Never that of a virtual thread, nor of one that has ended.
     */
    static HprofTracker recent = noThread;
    /** The same for allocations, as long as one thread makes nearly all; where many do, the look at it would cost more than it saves. */
    static HprofTracker alone = noThread;
    /** The object of the thread that was the last to have many objects tracked. */
    static HprofTracker candidate = noThread;
    /** Objects of the virtual threads that live and have counted something, by thread id. */
    static HprofTracker[] guests = {noThread};
    /** Objects that virtual threads had which have ended, linked by host. */
    static HprofTracker free;
    /** All objects that hold tables for virtual threads. */
    static HprofTracker[] homes = {};
    /** Whether there are carriers, which virtual threads are mounted on. */
    static final boolean hasCarriers;
    /** Whether anything is counted. Off before VM initialisation and after death. */
    static boolean on;
    /** Whether allocations are counted. */
    static boolean allocations;
    /** Bits a calling context is shifted by for each call. */
    static final int contextShift;
    /** Whether the depth of stacks can be changed, so that the next two hold instead. */
    static final boolean depthMayChange;
    /** Bits a calling context is shifted by for each call. */
    static int shiftNow;
    /** Makes other keys of the same contexts when the depth of stacks has changed. */
    static long depthSalt;
    /**
     * Nanoseconds of System.nanoTime, written about each millisecond by the clock
     * thread; the low 8 bits count the writes. An element, not a volatile field: after
     * reading one of those a compiler has to read all other fields again. Each call
     * stores to an array of this type, so none keeps an old time.
     */
    static final long[] clock = new long[1];
    /** Whether times are the CPU time of the thread. */
    static final boolean perThread;
    /** Nanoseconds that reading the elapsed time takes. */
    static final long overhead;
    /** Reads the field tid of Thread; null where threads have a final threadId. */
    static final sun.misc.Unsafe unsafe;
    /** Where tid is. */
    static final long tid;
    /** Bytes before the elements of an array, by type code of newarray (2: reference). */
    static final int[] arrayBase = new int[12];
    /** Binary logarithm of an element's width, by type code. */
    static final int[] arrayShift = new int[12];
    /** Object alignment minus one. */
    static final int alignMask;
    /** Sites that make very many objects have only a part of them tracked. */
    static final boolean adaptive;
    /** Binary logarithm of the objects of a site that are all tracked, if the thread has few sites. */
    static final int exactShift;
    /** Stacks are sampled, and a context is one allocating instruction, or 0 where none with inserted code allocates. */
    static final boolean stacksSampled;
    /** The same is at least this once very many objects were tracked, however many sites the thread has. */
    private static final int LEAST_EXACT = 6;
    /** So many objects of a thread are tracked until it is looked up whether other threads had some tracked, too; a power of two. */
    private static final int TURN = 256;
    /** As LEAST_EXACT, but for all sites of a thread together it is 62 - MANY_EXACT - 2 then: a table has four places or more for each site. */
    private static final int MANY_EXACT = 43;

    // Set by native code before anything is counted; not constants to the compiler,
    // but to the JIT.
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

    /** Bits of a site's number that count sites, as where the code is inserted. */
    private static final int SITE_BITS = 28;

    /** Spreads keys over table slots: 2^64 divided by the golden ratio. */
    private static final long SPREAD = 0x9E3779B97F4A7C15L;

    // A node of calling contexts, in its thread's stack and edges, carries these bits.
    /** The number itself. */
    private static final long NODE = 0x7fffffffL;
    /** Each stretch of time in it is measured. */
    private static final long EACH = 1L << 31;
    /** In edges: one call. */
    private static final long CALL = 1L << 32;
    /** In edges: binary logarithm of the calls that native code takes over before a report is due, so that there is room for others. */
    private static final int CARRIED_LOG2 = 22;
    /** In the stack: the call above it is measured. */
    private static final long MEASURED = 1L << 33;
    /** In the stack: the stretch of time that runs is measured. */
    private static final long TIMED = 1L << 34;
    /** In the stack: the clock has ticked since the call; the word above is its time before. */
    private static final long CROSSED = 1L << 35;
    /** In the stack: how many calls the measured one stands for, as a power of two. */
    private static final int WEIGHT = 40;

    /** Stretches of a node that are all measured; of the others, if they are short, one of SOME. */
    private static final int MANY = 256;
    /** Binary logarithm of the mean nanoseconds beyond which all are measured. */
    private static final int LONG_LOG2 = 12;
    private static final int SOME_LOG2 = 8;
    /** Nanoseconds up to which a stretch or call is measured as one of SOME. */
    private static final long SHORT = 1 << 15;
    /** Nanoseconds between two ticks, about. */
    private static final long TICK = 1060000;

    /** The thread this belongs to. Others look whether they are it (recent), so it is in no cache line with what it counts. */
    @jdk.internal.vm.annotation.Contended
    Thread owner;
    /** Number by which native code knows the tables. */
    int id;
    /** Of a virtual thread: where its tables are. Of a carrier and of a home: the next home of this carrier. */
    HprofTracker home;
    /** Of a virtual thread: the object of the carrier that it was mounted on when its tables were taken. */
    HprofTracker host;
    /** Of a carrier: the virtual thread that used its tables last. */
    HprofTracker guest;
    /** Of a virtual thread and of a home: whose counts are kept together. */
    int kind;

    /** Calling context of the code that runs: the last call sites, shifted together. */
    long context;
    /**
     * Allocation sites: key, objects, bytes, and a word whose low half is the follow
     * mask (every mask+1st is tracked) and whose high half is the site's number.
     */
    long[] sites;
    /** 64 minus the binary logarithm of the length of sites. */
    int sitesShift;
    /** Objects that native code is to track, once there are as many as fit; null if each is tracked at once. */
    Object[] pending;
    /** Of each pending object: the last word of its site, bytes if it is an array. */
    long[] pendingWords;
    /** How many are pending; volatile, so that who reads it finds that many entries whole. */
    volatile int pendingCount;
    /** How many of these native code has taken over already. */
    int peeked;
    /** The next array made by reflection is counted by the caller of Arrays.copyOf. */
    boolean muteNewArray;

    /** Open calls: the node before the call, and the clock at the call once it has ticked. */
    long[] stack;
    /** How many objects of the thread were tracked. */
    int tracked;
    /** Used part of the stack. */
    int depth;
    /** When the measured ones of the open calls began, like start. */
    long[] starts;
    /** How often larger ones were wanted since there was memory for them. */
    int refused;
    /** The present calling context as a number given by native code. */
    long node;
    /** Known transitions: (node, method); the node after the call and, in the upper half, how often it was called. */
    long[] edges;
    /** 64 minus the binary logarithm of the length of edges. */
    int edgesShift;
    /** Per node: own time, time with callees, stretches of time measured. */
    long[] costs;
    /** CPU time of the thread like clock, if that is what is measured; else and where it cannot be known 0. */
    volatile long cpu;
    /** The clock when the present stretch of time began. */
    long seen;
    /** When it began, and what reading the time took, if it is measured, else 0. */
    long start;
    /** How many stretches it stands for, as a power of two. */
    int shift;
    /** Calls until one is measured; 0 while a stretch is, so that its end is not missed. */
    int countdown;
    /** The countdown when the present stretch began. */
    int rest;
    /** Of the random numbers that the countdown begins with, and that decide which stacks are sampled. */
    long noise;

    private static int id(Thread thread) {
        return (int) (unsafe != null ? unsafe.getLong(thread, tid) : thread.getId());
    }

    /** The current thread's object, or null if it is not to be tracked. */
    public static HprofTracker get() {
        Thread thread = Thread.currentThread();
        HprofTracker[] all = table;
        HprofTracker found = all[id(thread) & all.length - 1];
        if (found.owner == thread) {
            return found;
        }
        return find(thread);
    }

    /** The same for calls, if it is where one looks first, else null. */
    private static HprofTracker near(Thread thread) {
        HprofTracker found = recent;
        if (found.owner == thread) {
            return found;
        }
        HprofTracker[] all = table;
        found = all[id(thread) & all.length - 1];
        return found.owner == thread ? found : null;
    }

    /** The current thread's object, or null if its allocations are not to be counted. */
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
     * The object of a thread that is not at its place. All code of a virtual thread gets here, so it is one call there: a compiler
     * would put the whole into each method.
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

    /** The object of a thread in a table, or null. */
    private static HprofTracker among(HprofTracker[] all, Thread thread) {
        for (int i = 0, at = id(thread); i < 8; i++) {
            HprofTracker found = all[at + i & all.length - 1];
            if (found.owner == thread) {
                return found;
            }
        }
        return null;
    }

    /** The object of a virtual thread, with the tables of its carrier. */
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
        // Costs have room for all nodes that the thread has been in.
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
        guest.edgesShift = home.edgesShift;
        guest.costs = home.costs;
        guest.home = home;
        guest.host = host;
        host.guest = guest;
        return guest;
    }

    /** What it has of its own begins anew: another thread had it. Its CPU time is not known. */
    private void begin() {
        context = 0;
        node = 0;
        start = 0;
        countdown = 0;
        seen = perThread ? 0 : clock[0];
        muteNewArray = false;
    }

    /** At the entry of a method: what its contexts have in common, with the number of the sites of its class. */
    public static long context(HprofTracker tracker, long sites) {
        return tracker == null ? 0 : (tracker.context << (depthMayChange ? shiftNow : contextShift)) + sites;
    }

    /** Control is about to leave through a call site, or something is allocated there. */
    public static void at(HprofTracker tracker, long context, int site) {
        if (tracker != null) {
            tracker.context = context + number(site);
        }
    }

    /**
     * What a site adds to the number of its class: itself in the low bits, noise above. A compiler knows it when it
     * compiles a call of {@link #at}.
     */
    private static long number(int site) {
        long noise = site * 0x9E3779B97F4A7C15L;
        noise = (noise ^ noise >>> 32) * 0xBF58476D1CE4E5B9L;
        return (noise << SITE_BITS) + site;
    }

    /** At the entry of a method that the VM calls by itself: the context of what it interrupts. */
    public static long found(HprofTracker tracker) {
        return tracker == null ? 0 : tracker.context;
    }

    /** The same where its own context is that of the stack at hand from here on. */
    public static long called(HprofTracker tracker) {
        if (tracker == null) {
            return 0;
        }
        long before = tracker.context;
        upcall(tracker);
        return before;
    }

    /** At its end: the interrupted call continues where it was. */
    public static void back(HprofTracker tracker, long context) {
        if (tracker != null) {
            tracker.context = context;
        }
    }

    // Where stacks are sampled, the context is that of one instruction, from there to the count of its object.

    /** The site of an instruction that is about to call a constructor, or has made an array or copy. */
    @jdk.internal.vm.annotation.DontInline
    public static void here(long sites, int site) {
        HprofTracker tracker = counter();
        if (tracker != null) {
            tracker.context = sites + number(site);
        }
    }

    /** At the entry of a constructor that runs other code before it calls the next one: the site of its object. */
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

    /** Before it calls the next one. */
    @jdk.internal.vm.annotation.DontInline
    public static void hold(long site) {
        HprofTracker tracker = counter();
        if (tracker != null) {
            tracker.context = site;
        }
    }

    /** The next object is not of this site, unless an instruction comes before it. */
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

    /** After multianewarray: the array and the arrays in it. */
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

    /** In Array.newInstance. */
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
            return; // Code of a recording that has ended, in a thread that is known to another one.
        }
        int at = (int) (key * SPREAD >>> sitesShift) & -4;
        if (all[at] != key && (at = probe(all, at, key)) < 0) {
            site(this, made, key, bytes);
            return;
        }
        long objects = all[at + 1] + 1;
        // Of sampled stacks none may be preferred, so the objects are picked in an order without a period.
        if (((stacksSampled ? objects * SPREAD >>> 32 : objects) & (int) all[at + 3]) == 0) {
            follow(made, all, at, bytes);
            return;
        }
        all[at + 1] = objects;
        all[at + 2] += bytes;
    }

    /** Where a key is whose first place another one has; negative if it is new. */
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
     * Counts an object and has it tracked until it dies, at once or when as many are pending as fit. Seldom called for
     * sites that make much.
     */
    @jdk.internal.vm.annotation.DontInline
    private void follow(Object made, long[] all, int at, long bytes) {
        if ((++tracked & TURN - 1) == 0 && host == null) {
            turn();
        }
        long objects = all[at + 1] + 1;
        long how = all[at + 3];
        HprofTracker keeper = host == null ? this : home;
        boolean isFull = false;
        int exact = exactShift;
        // Tracked or pending before it is counted: who reads the counts and then what is pending finds each object that
        // it has the count of.
        if (keeper.pending != null) {
            isFull = keeper.gather(made, how, bytes);
        } else if (track(made, keeper.id, how, bytes) != 0) {
            exact = Math.min(exact, Math.max(LEAST_EXACT, sitesShift - MANY_EXACT));
        }
        all[at + 1] = objects;
        all[at + 2] += bytes;
        if (stacksSampled) {
            sampleSome(objects, how);
        } else if ((objects & objects - 1) == 0) {
            check(this, how);
        }
        if (adaptive && objects >>> exact > (int) how) {
            all[at + 3] = how | (long) (int) how << 1 | 1;
        }
        if (isFull) {
            keeper.takeOver();
        }
    }

    /** Makes this the first one that allocations compare if its thread was also the last one here, else none. Seldom called: all threads read what it writes. */
    private void turn() {
        HprofTracker last = candidate;
        if (last != this) {
            candidate = this;
        }
        HprofTracker now = last == this ? this : noThread;
        if (alone != now) {
            alone = now;
        }
    }

    /** Keeps an object that is to be tracked; whether it is time to take over what is pending. */
    private boolean gather(Object made, long how, long bytes) {
        int count = pendingCount;
        pendingWords[count << 1] = how;
        pendingWords[(count << 1) + 1] = bytes;
        pending[count++] = made;
        pendingCount = count;
        // Large ones are not held back: the program may be short of memory.
        return count == pending.length || bytes > 512;
    }

    private void takeOver() {
        int count = pendingCount;
        drain(this);
        for (int i = 0; i < count; i++) {
            pending[i] = null;
        }
        pendingCount = 0;
        peeked = 0;
    }

    /**
     * Has the stack of an object sampled, that of all of the first ones of a site and then of a random choice that becomes
     * rarer: of 2^n objects that follow the first 2^n of them, about 2^(n / 4 + 2) are sampled. Each stands for as many as
     * it was chosen from.
     */
    private void sampleSome(long objects, long how) {
        int rarity = (60 - Long.numberOfLeadingZeros(objects)) * 3 >> 2;
        int picked = Integer.bitCount((int) how);
        int more = rarity - picked;
        if (more > 0) {
            // Each thread has its own increment, which is odd.
            noise = noise * 6364136223846793005L + 1442695040888963407L + ((long) id << 1);
            if (noise >>> 64 - more != 0) {
                return;
            }
            picked = rarity;
        }
        sample(this, how, picked);
    }

    // In what follows all that is seldom is called last: a compiler keeps in memory what is needed after a call.

    /** A method begins; the result is to be given back at its end. */
    @jdk.internal.vm.annotation.DontInline
    public static int enter(int method) {
        Thread thread = Thread.currentThread();
        HprofTracker found = near(thread);
        return found != null ? found.push(method) : enterOther(thread, method);
    }

    @jdk.internal.vm.annotation.DontInline
    private static int enterOther(Thread thread, int method) {
        HprofTracker tracker = find(thread);
        return tracker == null ? -1 : tracker.push(method);
    }

    private int push(int method) {
        int at = depth;
        long[] open = stack;
        if (open == null) {
            return -1; // As in count.
        }
        if (at + 2 > open.length) {
            return growStack() ? pushHere(method) : -1;
        }
        long now = perThread ? cpu : clock[0];
        long before = node;
        open[at] = before;
        depth = at + 2;
        long key = before << 33 | method;
        long[] all = edges;
        int slot = place(before, method);
        // Both are read before they are compared, so that the VM checks one index only.
        long known = all[slot];
        long word = all[slot + 1];
        if (known != key) {
            return step(at, key, now, slot);
        }
        word += CALL;
        all[slot + 1] = word;
        return lead(at, key, now, word);
    }

    /** The same, called: after what is seldom. */
    @jdk.internal.vm.annotation.DontInline
    private int pushHere(int method) {
        return push(method);
    }

    /** A method has begun: the word of its edge leads to its node. */
    private int lead(int at, long key, long now, long word) {
        node = word & (NODE | EACH);
        int left = countdown - 1;
        countdown = left;
        // The highest bit of an int is that of EACH.
        if (((int) word | left) < 0 || now != seen) {
            return entered(at, key, now);
        }
        return at;
    }

    /** A method begins that leads to no other code; the result is to be given back at its end. */
    @jdk.internal.vm.annotation.DontInline
    public static int leaf(int method) {
        Thread thread = Thread.currentThread();
        HprofTracker found = near(thread);
        return found != null ? found.touch(method) : leafOther(thread, method);
    }

    @jdk.internal.vm.annotation.DontInline
    private static int leafOther(Thread thread, int method) {
        HprofTracker tracker = find(thread);
        return tracker == null ? -1 : tracker.touch(method);
    }

    /** Counts a call that no one can find open, unless time is measured: then it is one like others. */
    private int touch(int method) {
        long now = perThread ? cpu : clock[0];
        long present = node;
        long key = present << 33 | method;
        long[] all = edges;
        int slot = place(present, method);
        int left = countdown - 1;
        if (all == null) {
            return -1; // As in count.
        }
        long known = all[slot];
        long word = all[slot + 1];
        if (known != key || ((int) word | left) < 0 || now != seen) {
            return pushHere(method);
        }
        all[slot + 1] = word + CALL;
        countdown = left;
        return -1;
    }

    /** A method has begun whose edge is not at its first place, or new. */
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
     * The first place of the edge from a node by a method: that of its key, with the product in two parts, because one is
     * known long before the node, which comes back from memory.
     */
    private int place(long before, int method) {
        return (int) (before * (SPREAD << 33) + method * SPREAD >>> edgesShift) & -2;
    }

    /** Where an edge is, or -1. */
    private int slot(long key) {
        long[] all = edges;
        int slot = (int) (key * SPREAD >>> edgesShift) & -2;
        while (all[slot] != key) {
            if (all[slot] == 0) {
                return -1;
            }
            slot = slot + 2 & all.length - 1;
        }
        return slot;
    }

    /** The node that the edge leads to has been measured enough to be measured now and then. */
    private void settle(long key) {
        int slot = slot(key);
        if (slot >= 0) {
            edges[slot + 1] &= ~EACH;
        }
    }

    /** Has native code take over the calls of an edge if they are many. */
    private void carryMany(long key) {
        int slot = slot(key);
        if (slot >= 0 && edges[slot + 1] >>> 32 + CARRIED_LOG2 != 0) {
            carry(this, slot);
        }
    }

    /** False if memory is short: the program has not requested any, so it receives no error, and the call is not counted. */
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

    /** The method that began with the result {@code at} ends. */
    public static void exit(int at) {
        if (at >= 0) {
            end(at);
        }
    }

    /** The same, of a call that is on the stack of open calls. */
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

    /** The method that began with the result {@code at} catches an exception. */
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
            left(at, (int) ended << 2, now);
        }
    }

    /** Ends all calls from {@code at} on: those above the last were ended by an exception. */
    @jdk.internal.vm.annotation.DontInline
    private void popAll(int at) {
        while (depth > at) {
            pop(depth - 2);
        }
    }

    // How time is measured. Between two calls of enter or exit lies a stretch of time that
    // one node spends. Reading the time at each would cost more than short methods take. So
    // a node's first stretches are all measured, and all if they take long on average. Of
    // later short ones a random choice is, each counting for as many as it was chosen from,
    // up to a length of SHORT; what is longer is measured by the clock: a stretch that
    // still runs SHORT after a tick gets the whole time of that tick. On average each
    // stretch thus gets what it took, and none is preferred: one of length L beyond SHORT
    // contains such a tick as often as L - SHORT is contained in the time between two.
    // Calls, with all they call, likewise.

    private static long time(HprofTracker tracker) {
        return !perThread ? System.nanoTime() : tracker.cpu == 0 ? 0 : cpuTime();
    }

    /** What the clock says was longer than SHORT, of what began and ended with these ticks. */
    private static long beyond(long from, long to, long time) {
        if (from == to) {
            return 0;
        }
        if (time - to >= SHORT) {
            return to - from;
        }
        return (to - from & 0xff) == 1 ? 0 : to - from - TICK;
    }

    /** What something measured stands for. */
    private static long weighted(long spent, int weight) {
        if (spent <= 0) {
            return 0;
        }
        return weight == 0 ? spent : (spent < SHORT ? spent : SHORT) << weight;
    }

    // The slow parts are never inlined: what contains them would be too large to be.

    /** The slow part of a method's begin: {@code at} is where it stands in the stack, and the result. */
    @jdk.internal.vm.annotation.DontInline
    private int entered(int at, long key, long now) {
        boolean wasTimed = start != 0;
        if (now != seen) {
            cross(at - 2);
        }
        endStretch((int) stack[at] << 2, now);
        if (wasTimed) {
            countdown--;
        }
        boolean isChosen = countdown < 0;
        if (isChosen) {
            noise = noise * 6364136223846793005L + 1442695040888963407L;
            countdown = (int) ((noise >>> 33) % ((2 << SOME_LOG2) - 1));
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

    /** Whether the node with these costs is measured now and then only; if not, once more now. */
    private boolean isKnown(int at) {
        long measured = costs[at + 2];
        if (measured >= MANY && costs[at] >> LONG_LOG2 < measured) {
            return true;
        }
        costs[at + 2] = measured + 1;
        return false;
    }

    /** Each attempt may cost the program a collection, so there are fewer and fewer of those that fail. */
    private boolean mayGrow() {
        int tried = ++refused;
        return (tried & tried - 1) == 0;
    }

    /** False if memory is short. */
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

    /** The slow part of a method's end, of the node with these costs. */
    @jdk.internal.vm.annotation.DontInline
    private void left(int at, int present, long now) {
        if (host != null) {
            // It may have come to another carrier since it was looked up.
            find(owner);
        }
        if (now != seen) {
            cross(at);
        }
        long time = endStretch(present, now);
        long how = stack[at];
        long entry = (how & CROSSED) != 0 ? stack[at + 1] : now;
        boolean isMeasured = (how & MEASURED) != 0;
        int weight = (int) (how >>> WEIGHT);
        if (isMeasured || now != entry) {
            time = time == 0 ? time(this) : time;
            long spent = isMeasured ? weighted(time - starts[at >> 1], weight) : 0;
            if (!isMeasured || weight != 0) {
                spent += beyond(entry, now, time);
            }
            costs[present + 1] += spent;
        }
        long before = how & (NODE | EACH);
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

    /** The clock has ticked during the open calls up to {@code at}; since the last ones that know. */
    private void cross(int at) {
        if (recent != this && host == null) {
            recent = this;
        }
        long[] open = stack;
        for (long before = seen; at >= 0 && (open[at] & CROSSED) == 0; at -= 2) {
            open[at] |= CROSSED;
            open[at + 1] = before;
        }
    }

    /** A stretch of the node with these costs has ended; the time, or 0 if it was not read. */
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
            countdown = rest;
            spent = weighted(time - begun, shift);
        }
        if (begun == 0 || shift != 0) {
            spent += beyond(from, now, time);
        }
        costs[present] += spent;
        return time;
    }

    /** A stretch begins that is measured; {@code at} is the last open call. The result is start. */
    private long beginStretch(int weight, int at) {
        shift = weight;
        rest = countdown;
        countdown = 0;
        if (at >= 0) {
            stack[at] |= TIMED;
        }
        return start = begun();
    }

    /**
     * The time, read last, and what reading it takes. That of the CPU is asked of the system, which
     * takes a microsecond or so, more when the processor has done other work since or others have
     * it too; hence twice: what the first costs is not counted, and the second says what it costs now.
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

    /** Calls a native method, and answers where Thread.tid is; before anything is counted. */
    private static void prepare(long[] answer) throws NoSuchFieldException {
        cpuTime();
        if (unsafe != null) {
            answer[0] = unsafe.objectFieldOffset(Thread.class.getDeclaredField("tid"));
        }
    }

    /** Makes the object of a thread that is not virtual, or answers null. */
    private static native HprofTracker enroll(Thread thread);

    /** Makes the object of a virtual thread, or answers null. */
    private static native HprofTracker lodge(Thread thread);

    /** Finds the carrier a home with tables large enough for the virtual thread, or answers null. */
    private static native HprofTracker house(HprofTracker host, HprofTracker guest);

    /** Counts an allocation of a key not seen before, and enters the key. */
    private static native void site(HprofTracker tracker, Object made, long key, long bytes);

    /** Makes the context one of the stack at hand. */
    private static native void upcall(HprofTracker tracker);

    /** Whether an allocation is at the stack of its site; for each power of two of them. */
    private static native void check(HprofTracker tracker, long how);

    /** Reads the stack of an object that is at hand; it stands for 2^weight of its site. */
    private static native void sample(HprofTracker tracker, long how, int weight);

    /** Tracks the pending objects until they die. */
    private static native void drain(HprofTracker tracker);

    /**
     * Tracks one object for the tables with this number; the rest is what would be pending of it. Not 0 if very many were
     * tracked, so that fewer of each site will do.
     */
    private static native int track(Object made, int tables, long how, long bytes);

    /** The node after a call not seen before; enters the edge. */
    private static native int edge(HprofTracker tracker, long key);

    /** Takes over the calls of the edge at a place. */
    private static native void carry(HprofTracker tracker, int slot);

    /** CPU time of the current thread. */
    private static native long cpuTime();
}

/** Stands for java.lang.Thread, whose method of this name the compiler of JDK 8 does not know. */
final class HprofCarrier {
    static native Thread currentCarrierThread();
}
