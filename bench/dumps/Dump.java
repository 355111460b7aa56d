/** Writes the heap of this JVM with the VM's own heap dumper (live objects only). */
final class Dump {
    static void dump(String out) throws Exception {
        new java.io.File(out).delete();
        java.lang.management.ManagementFactory.getPlatformMXBean(com.sun.management.HotSpotDiagnosticMXBean.class).dumpHeap(out, true);
        System.out.printf("%s: %d bytes%n", out, new java.io.File(out).length());
    }
}
