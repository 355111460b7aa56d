import java.io.FileInputStream;
import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.util.zip.Deflater;

/** Uses the processor where the arguments say, in native code of several kinds, for 400 ms each. */
public class InNative {
    static native void spin(int n);

    static long made;

    static boolean goesOn(long before) {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() - before < 400_000_000L;
    }

    static void compress() {
        byte[] input = new byte[1 << 18];
        for (int i = 0; i < input.length; i++) input[i] = (byte) (i * i >> 7);
        byte[] output = new byte[1 << 19];
        Deflater deflater = new Deflater(9);
        deflater.setInput(input);
        deflater.finish();
        made += deflater.deflate(output);
        deflater.end();
    }

    static void fromKernel() throws Exception {
        // To make random bytes takes the kernel longer than it takes the libraries to copy them; that is not so of zeros.
        byte[] bytes = new byte[1 << 18];
        try (InputStream random = new FileInputStream("/dev/urandom")) {
            for (int i = 0; i < 8; i++) made += random.read(bytes);
        }
    }

    public static void main(String[] args) throws Exception {
        for (String what : args) if (what.endsWith(".so")) System.load(what);
        for (String what : args) {
            long before = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
            do {
                switch (what) {
                    case "deflate": compress(); break;
                    case "kernel": fromKernel(); break;
                    case "gc": System.gc(); break;
                    default: spin(1_000_000);
                }
            } while (goesOn(before) && !what.equals("gc"));
        }
        System.out.println("done");
    }
}
