package java.lang;

/**
 * Exchanges the native method that parks threads. From JDK 15 on the VM warns unless the
 * caller of the native method that does it is of the same loader.
 *
 * Compiled to Java 8 and kept as HprofPark.class next to this file; a test compares
 * the two.
 */
final class HprofPark {
    static void exchange(boolean on) {
        register(on);
    }

    private static native void register(boolean on);
}
