import java.io.*;
import java.lang.management.*;

/** Handles SIGPROF itself, raises it and uses CPU time as the lines on standard input say. Ends with code 3. */
public class Signals {
    static native void install(boolean wantsOrigin);
    static native void passOn();
    static native void raise();
    static native int caught();

    static long spin() {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        long sum = 0;
        for (long end = threads.getCurrentThreadCpuTime() + 200_000_000; threads.getCurrentThreadCpuTime() < end; ) {
            for (int i = 0; i < 100_000; i++) sum += sum ^ i;
        }
        return sum;
    }

    public static void main(String[] args) throws Exception {
        System.load(args[0]);
        if (args[1].equals("passing")) passOn(); else install(args[1].equals("origin"));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line; (line = lines.readLine()) != null; ) {
            switch (line) {
                case "again": passOn(); break;
                case "spin": if (spin() == 1) return; break;
                case "raise": for (int i = 0; i < 5; i++) raise(); break;
                case "caught": System.out.println("caught " + caught()); break;
                default: System.exit(3);
            }
            System.out.println("done " + line);
        }
    }
}
