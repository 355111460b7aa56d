/** Loads the agent into a running VM (args: library, options, and a program if it is not Known), then works. Run with jdk.attach allowed to attach to itself. */
public class Attach {
    public static void main(String[] args) throws Exception {
        String pid = java.lang.management.ManagementFactory.getRuntimeMXBean().getName().split("@")[0];
        com.sun.tools.attach.VirtualMachine vm = com.sun.tools.attach.VirtualMachine.attach(pid);
        vm.loadAgentPath(args[0], args[1]);
        vm.detach();
        awaitCounting();
        if (args.length == 2) { Known.main(new String[0]); return; }
        String[] rest = java.util.Arrays.copyOfRange(args, 3, args.length);
        Class.forName(args[2]).getMethod("main", String[].class).invoke(null, (Object) rest);
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
