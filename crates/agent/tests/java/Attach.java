/** Loads the agent into a running VM (args: library, options), then works. Run with jdk.attach allowed to attach to itself. */
public class Attach {
    public static void main(String[] args) throws Exception {
        String pid = java.lang.management.ManagementFactory.getRuntimeMXBean().getName().split("@")[0];
        com.sun.tools.attach.VirtualMachine vm = com.sun.tools.attach.VirtualMachine.attach(pid);
        vm.loadAgentPath(args[0], args[1]);
        vm.detach();
        Known.main(new String[0]);
    }
}
