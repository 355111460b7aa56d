package java.lang;

/**
 * Runs last among the hooks of Shutdown, when the program has ended and the VM's
 * collector has not: the last moment at which a concurrent collector can be asked
 * to collect what a dump at the end is not to have. No hook runs after Runtime.halt.
 *
 * Compiled to Java 8 and kept as HprofEnd.class next to this file; a test compares
 * the two.
 */
final class HprofEnd implements Runnable {
    public native void run();
}
