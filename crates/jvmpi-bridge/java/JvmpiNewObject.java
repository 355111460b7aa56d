package java.lang;

/**
 * Receives each object that Java code makes, by code that new_objects.rs inserts into Object's constructor
 * and behind instructions that make arrays; for VMs before 11, which do not report them themselves.
 * Compiled with -source 8 -target 8; the class file beside it is what the bridge defines.
 */
public final class JvmpiNewObject {
    /** Whether OBJECT_ALLOC is on. */
    static volatile boolean on;

    private JvmpiNewObject() {}

    public static void object(Object made) {
        if (on) made(made);
    }

    /** Rows of an array of arrays, too. */
    public static void nested(Object made) {
        if (!on) return;
        if (made instanceof Object[]) for (Object row : (Object[]) made) if (row != null) nested(row);
        made(made);
    }

    private static native void made(Object object);
}
