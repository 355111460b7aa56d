import java.io.File;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Arrays;
import javax.management.MBeanServer;
import javax.management.ObjectName;

/**
 * DumpAfter OUT MAIN args...: runs MAIN.main(args), waits until it returns or sets the system
 * property testkit.ready, then writes the JVM's histogram to OUT.histo and its heap to OUT. Needs
 * no jcmd, so it works on a bare runtime.
 */
public final class DumpAfter {
    public static void main(String[] args) throws Exception {
        final String[] rest = Arrays.copyOfRange(args, 2, args.length);
        final Method main = Class.forName(args[1]).getMethod("main", String[].class);
        main.setAccessible(true);
        Thread program = new Thread("main-program") {
            @Override
            public void run() {
                try {
                    main.invoke(null, (Object) rest);
                } catch (ReflectiveOperationException e) {
                    e.printStackTrace();
                    System.exit(3);
                }
            }
        };
        program.start();
        while (program.isAlive() && System.getProperty("testkit.ready") == null) {
            Thread.sleep(10);
        }
        MBeanServer server = ManagementFactory.getPlatformMBeanServer();
        Object histogram = server.invoke(
            new ObjectName("com.sun.management:type=DiagnosticCommand"), "gcClassHistogram",
            new Object[] {new String[0]}, new String[] {String[].class.getName()});
        Files.write(Paths.get(args[0] + ".histo"), histogram.toString().getBytes(StandardCharsets.UTF_8));
        new File(args[0]).delete();
        server.invoke(
            new ObjectName("com.sun.management:type=HotSpotDiagnostic"), "dumpHeap",
            new Object[] {args[0], Boolean.TRUE}, new String[] {"java.lang.String", "boolean"});
        Runtime.getRuntime().halt(0);
    }
}
