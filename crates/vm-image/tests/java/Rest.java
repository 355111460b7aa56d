import java.util.ArrayList;
import java.util.List;

/** Makes objects of all kinds, says that it is ready, and rests until its input ends. */
public class Rest {
    static int i0 = 42;
    static long l0 = -5;
    static double d0 = 1.5;
    static boolean b0 = true;
    static char c0 = 'x';
    static byte y0 = 7;
    static short s0 = -9;
    static float f0 = 2.5f;
    static String name = "h\u00e9llo";
    static final List<Object> kept = new ArrayList<>();

    int i;
    long l;
    double d;
    boolean b;
    char c;
    byte y;
    short s;
    float f;
    Object o;
    String t;

    /** More than sixteen fields, of which one hides one of the superclass. */
    static class Sub extends Rest {
        int i = 77;
        Object more = new int[3];
        byte q1 = 1, q2 = 2, q3 = 3;
        int q4 = 4, q5 = 5, q6 = 6, q7 = 7, q8 = 8, q9 = 9, q10 = 10, q11 = 11;
        long q12 = 12, q13 = 13, q14 = 14, q15 = 15, q16 = 16, q17 = 17, q18 = 18;
    }

    interface Shape {
        Object AREA = new Object();

        default Object area() {
            return AREA;
        }
    }

    enum Color {
        RED,
        GREEN {
            int value() {
                return 2;
            }
        };

        int value() {
            return 1;
        }
    }

    static Rest made(int k) {
        Rest made = k % 2 == 0 ? new Rest() : new Sub();
        made.i = k;
        made.l = k * 1000000007L;
        made.d = k / 3.0;
        made.b = k % 3 == 0;
        made.c = (char) k;
        made.y = (byte) k;
        made.s = (short) -k;
        made.f = k * 0.5f;
        made.o = kept;
        made.t = "n" + k;
        return made;
    }

    public static void main(String[] args) throws Exception {
        for (int k = 0; k < 500; k++) {
            kept.add(made(k));
        }
        kept.add(new byte[] {1, -1});
        kept.add(new char[][] {{'a', 'b'}, {}});
        kept.add(new boolean[] {true, false, true});
        kept.add(new short[] {1, -1});
        kept.add(new int[] {1, -1});
        kept.add(new long[] {1, -1});
        kept.add(new float[] {-1f});
        kept.add(new double[] {1, 2});
        kept.add(new Object[][][] {{{kept}}});
        Runnable lambda = () -> System.out.println(kept.size());
        kept.add(lambda);
        kept.add(Color.GREEN);
        kept.add(new Shape() {}.area());
        kept.add(Shape.class);
        // Larger than what is read at once, and than a region of G1.
        long[] large = new long[700_000];
        large[699_999] = 99;
        kept.add(large);
        Object[] references = new Object[400_000];
        references[399_999] = kept;
        kept.add(references);
        Waiting waiting = new Waiting();
        waiting.setDaemon(true);
        waiting.start();
        while (waiting.getState() != Thread.State.WAITING) {
            Thread.sleep(1);
        }
        System.gc();
        for (int k = 0; k < 2000; k++) {
            kept.add(new StringBuilder("young" + k));
        }
        System.out.println("ready");
        for (int next = System.in.read(); next >= 0; next = System.in.read()) {
            System.out.println("alive");
        }
    }

    static class Waiting extends Thread {
        Waiting() {
            super("waiting");
        }

        @Override
        public void run() {
            Object local = new StringBuilder("a local variable of a thread that waits");
            synchronized (local) {
                try {
                    local.wait();
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
            }
        }
    }
}
