/** Loads the agent into a running VM (args: library, options), then works. Run with jdk.attach allowed to attach to itself. */
public class Attach {
    public static void main(String[] args) throws Exception {
        String pid = java.lang.management.ManagementFactory.getRuntimeMXBean().getName().split("@")[0];
        com.sun.tools.attach.VirtualMachine vm = com.sun.tools.attach.VirtualMachine.attach(pid);
        vm.loadAgentPath(args[0], args[1]);
        vm.detach();
        awaitCounting();
        Known.main(new String[0]);
    }

    /** Counting starts a moment after the attach has ended. */
    static void awaitCounting() throws Exception {
        Class<?> tracker;
        try { tracker = Class.forName("java.lang.HprofTracker"); } catch (ClassNotFoundException e) { return; }
        java.lang.reflect.Field on = tracker.getDeclaredField("on");
        on.setAccessible(true);
        for (int i = 0; i < 3000 && !on.getBoolean(null); i++) Thread.sleep(10);
    }
}
