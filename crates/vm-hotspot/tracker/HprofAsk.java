package java.lang;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;

/**
 * Runs code of the program for the agent, on a thread of the agent: the program's options factory, for a class, and
 * toString, hashCode, equals and compareTo of objects. No exception leaves this class; exceptions become text.
 *
 * Compiled for Java 8 and kept as HprofAsk.class next to this file; a test compares the two. It is defined in the boot
 * loader when it is first needed.
 */
final class HprofAsk {
    private static final int TEXT = 1;
    private static final int HASH = 2;
    private static final int EQUAL = 4;
    private static final int ORDER = 8;
    /** The most characters of the text of an exception. */
    private static final int MOST = 300;

    private final Object[] objects;
    private final boolean own;
    private final int ask;
    private final int limit;

    // The answers, by the index of the object.
    final int[] hashed;
    final int[] hashes;
    final Object[] texts;
    final Object[] faults;
    /** Equal objects have the same number, from 1. */
    final int[] groups;
    /** Position in the order, from 1. */
    final int[] ranks;

    /** Number of calls that have begun; the object and method of the last call. */
    volatile int calls;
    volatile int at;
    volatile int what;
    /** Set by the agent to stop further calls. */
    volatile int stop;

    /** If own is 0, only methods of objects of the JDK's value classes are called. */
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

    /** Calls the methods of all objects, until it is stopped. */
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

    /** Whether the object's methods are only code of the JDK. Of an enum only its name is used. */
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

    /** Cuts a text like the original: limit characters, and how many are missing. */
    private static String cut(String text, int limit) {
        int more = text.length() - limit;
        return more <= 0 ? text : text.substring(0, limit) + "+" + more;
    }

    /** Gives equal objects the same number; finds them by their hash codes. */
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

    /** Merge sort, because it ends whatever compareTo returns. */
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

    /** Calls getOptions(module, name) of the factory; returns "off", "FLAGS RATIO", or "!" and the exception. */
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

    /** The exception's class and message. */
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
