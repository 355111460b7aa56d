/** Calls native code that allocates known amounts. Arguments: folder of the libraries, then steps. */
public class Native {
    static native void leak(int blocks, int size);
    static native void churn(int blocks, int size);
    static native void grow();
    static native void others();
    static native void freeAll();
    static native int fork(int blocks);
    static native void load(String path, int blocks);
    static native void race(String path, int times);
    static native void make();

    static void first() { leak(10, 1000); }
    static void second() { leak(20, 50); }

    static void threads(int count) throws Exception {
        Thread[] threads = new Thread[count];
        for (int i = 0; i < count; i++) {
            threads[i] = new Thread(() -> {
                churn(200, 64);
                leak(100, 48);
            });
            threads[i].start();
        }
        for (Thread thread : threads) thread.join();
    }

    static void buffers() {
        kept = new java.nio.ByteBuffer[] {
            java.nio.ByteBuffer.allocateDirect(1 << 20), java.nio.ByteBuffer.allocateDirect(3 << 20)
        };
    }

    static Object kept;

    public static void main(String[] args) throws Exception {
        System.load(args[0] + "/libblocks.so");
        for (int i = 1; i < args.length; i++) {
            switch (args[i]) {
                case "leak": first(); second(); break;
                case "churn": churn(1000, 100); break;
                case "grow": grow(); break;
                case "others": others(); break;
                case "free": freeAll(); break;
                case "many": for (int n = 0; n < 64; n++) leak(1000, 1000); break;
                case "threads": threads(64); break;
                case "fork": System.out.println("child " + fork(1000)); break;
                case "exec":
                    Process child = new ProcessBuilder("true").start();
                    System.out.println("exec " + child.waitFor());
                    break;
                case "late": load(args[0] + "/liblate.so", 30); break;
                case "race": race(args[0] + "/libmany.so", 100); break;
                case "make": System.load(args[0] + "/libmade.so"); make(); break;
                case "buffers": buffers(); break;
                case "exit": System.exit(3); break;
                default: throw new IllegalArgumentException(args[i]);
            }
        }
    }
}
