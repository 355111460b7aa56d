package java.lang;

/**
 * Replaces the native method that parks threads. From JDK 15 on the VM prints a warning unless the class that replaces
 * a  native method has the same class loader.
 *
 * Compiled for Java 8 and kept as HprofPark.class next to this file; a test compares the two.
 */
final class HprofPark {
    static void exchange(boolean on) {
        register(on);
    }

    private static native void register(boolean on);
}
