package java.lang;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;

/**
 * Runs code of the program for the agent, on a thread of the agent's own: what the program's
 * options factory says of a class, and what objects say of themselves. Nothing that is thrown there
 * leaves this class; it becomes text.
 *
 * Compiled to Java 8 and kept as HprofAsk.class next to this file; a test compares the two. It is
 * defined in the boot loader when it is first needed.
 */
final class HprofAsk {
    private static final int TEXT = 1;
    private static final int HASH = 2;
    private static final int EQUAL = 4;
    private static final int ORDER = 8;
    /** Most characters of what was thrown. */
    private static final int MOST = 300;

    private final Object[] objects;
    private final boolean own;
    private final int ask;
    private final int limit;

    // The answers, by the place of the object.
    final int[] hashed;
    final int[] hashes;
    final Object[] texts;
    final Object[] faults;
    /** Equal objects have one number, from 1. */
    final int[] groups;
    /** Place in the order, from 1. */
    final int[] ranks;

    /** Calls that have begun, and of what the last was asked. */
    volatile int calls;
    volatile int at;
    volatile int what;
    /** Written by the agent: no more calls. */
    volatile int stop;

    /** Without own, only objects whose classes are the JDK's own values are asked. */
    HprofAsk(Object[] objects, int own, int ask, int limit) {
        int count = objects.length;
        this.objects = objects;
        this.own = own != 0;
        this.ask = ask;
        this.limit = limit;
        hashed = new int[count];
        hashes = new int[count];
        texts = new Object[count];
        faults = new Object[count];
        groups = new int[count];
        ranks = new int[count];
    }

    /** Asks all objects, until it is stopped. */
    void run() {
        try {
            for (int i = 0; i < objects.length && stop == 0; i++) {
                if (isAsked(i)) {
                    if ((ask & (HASH | EQUAL)) != 0) {
                        hash(i);
                    }
                    if ((ask & TEXT) != 0 && stop == 0) {
                        text(i);
                    }
                }
            }
            if ((ask & EQUAL) != 0) {
                group();
            }
            if ((ask & ORDER) != 0) {
                order();
            }
        } catch (Throwable e) {
            fault(at, "asking", e);
        }
    }

    private boolean isAsked(int i) {
        Object object = objects[i];
        return object != null && (own || isValue(object));
    }

    /** Whether what it says of itself is code of the JDK alone; of an enum, its name. */
    private static boolean isValue(Object object) {
        Class<?> type = object.getClass();
        return type == String.class || type == Integer.class || type == Long.class || type == Short.class
            || type == Byte.class || type == Character.class || type == Boolean.class || type == Double.class
            || type == Float.class || type == Class.class || object instanceof Enum;
    }

    private void begin(int i, int what) {
        at = i;
        this.what = what;
        calls++;
    }

    private void hash(int i) {
        begin(i, HASH);
        try {
            hashes[i] = objects[i].hashCode();
            hashed[i] = 1;
        } catch (Throwable e) {
            fault(i, "hashCode", e);
        }
    }

    private void text(int i) {
        begin(i, TEXT);
        try {
            Object object = objects[i];
            String text = !own && object instanceof Enum ? ((Enum<?>) object).name() : object.toString();
            texts[i] = text == null ? "null" : cut(text, limit);
        } catch (Throwable e) {
            fault(i, "toString", e);
        }
    }

    /** As the original cut texts: so many characters, and how many are missing. */
    private static String cut(String text, int limit) {
        int more = text.length() - limit;
        return more <= 0 ? text : text.substring(0, limit) + "+" + more;
    }

    /** Numbers equal objects, found by their hash codes. */
    private void group() {
        int room = Integer.highestOneBit(objects.length | 1) * 2;
        int[] first = new int[room];
        int[] next = new int[objects.length];
        int count = 0;
        for (int i = 0; i < objects.length && stop == 0; i++) {
            if (hashed[i] == 0) {
                continue;
            }
            int slot = (hashes[i] ^ hashes[i] >>> 16) & room - 1;
            int found = first[slot];
            while (found != 0 && !(hashes[found - 1] == hashes[i] && isEqual(found - 1, i))) {
                found = stop == 0 ? next[found - 1] : 0;
            }
            if (found == 0) {
                next[i] = first[slot];
                first[slot] = i + 1;
                groups[i] = ++count;
            } else {
                groups[i] = groups[found - 1];
            }
        }
    }

    private boolean isEqual(int one, int other) {
        begin(other, EQUAL);
        try {
            return objects[one].equals(objects[other]);
        } catch (Throwable e) {
            fault(other, "equals", e);
            return false;
        }
    }

    /** Sorts by merging, which ends whatever compareTo says. */
    private void order() {
        int[] from = new int[objects.length];
        int count = 0;
        for (int i = 0; i < objects.length; i++) {
            if (isAsked(i) && objects[i] instanceof Comparable) {
                from[count++] = i;
            }
        }
        int[] to = new int[count];
        for (int width = 1; width < count && stop == 0; width *= 2) {
            for (int left = 0; left < count; left += 2 * width) {
                int middle = Math.min(left + width, count);
                int right = Math.min(left + 2 * width, count);
                int a = left;
                int b = middle;
                for (int k = left; k < right; k++) {
                    boolean isLeft = a < middle && (b >= right || compare(from[a], from[b]) <= 0);
                    to[k] = isLeft ? from[a++] : from[b++];
                }
            }
            int[] swap = from;
            from = to;
            to = swap;
        }
        for (int k = 0; k < count && stop == 0; k++) {
            boolean isSame = k > 0 && compare(from[k - 1], from[k]) == 0;
            ranks[from[k]] = isSame ? ranks[from[k - 1]] : k + 1;
        }
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private int compare(int one, int other) {
        if (stop != 0) {
            return 0;
        }
        begin(other, ORDER);
        try {
            return ((Comparable) objects[one]).compareTo(objects[other]);
        } catch (Throwable e) {
            fault(other, "compareTo", e);
            return 0;
        }
    }

    private void fault(int i, String what, Throwable thrown) {
        if (faults[i] == null) {
            faults[i] = what + ": " + cut(name(thrown), MOST);
        }
    }

    /** What getOptions(module, name) of a class says: "off", "FLAGS RATIO", or "!" and what went wrong. */
    static String options(String factory, String module, String name) {
        try {
            Class<?> type = Class.forName(factory, true, ClassLoader.getSystemClassLoader());
            Method get = type.getMethod("getOptions", String.class, String.class);
            get.setAccessible(true);
            Object options = get.invoke(null, module, name);
            if (options == null) {
                return "off";
            }
            Object flags = call(options, "getFlags");
            Object ratio = call(options, "getSampleRatio");
            return ((Number) flags).intValue() + " " + ((Number) ratio).doubleValue();
        } catch (InvocationTargetException e) {
            return "!" + name(e.getCause());
        } catch (Throwable e) {
            return "!" + name(e);
        }
    }

    private static Object call(Object object, String name) throws Exception {
        Method method = object.getClass().getMethod(name);
        method.setAccessible(true);
        return method.invoke(object);
    }

    /** What was thrown, in one line. */
    private static String name(Throwable thrown) {
        if (thrown == null) {
            return "nothing";
        }
        String name = thrown.getClass().getName();
        try {
            String message = thrown.getMessage();
            return message == null ? name : name + ": " + message;
        } catch (Throwable e) {
            return name;
        }
    }
}
