package java.lang;

/**
 * Runs last among the hooks of Shutdown, when the program has ended and the VM's garbage collector still runs: the last
 * moment at which a concurrent collector can be asked to collect the garbage that a dump at the end should not contain.
 * No  hook runs after Runtime.halt.
 *
 * Compiled for Java 8 and kept as HprofEnd.class next to this file; a test compares the two.
 */
final class HprofEnd implements Runnable {
    public native void run();
}
