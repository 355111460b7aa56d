/** Calls itself deeper than ever when there is no memory left, which needs none. */
public class Full {
    static int down(int n) { return n == 0 ? 0 : 1 + down(n - 1); }

    public static void main(String[] args) {
        Object[] keep = new Object[100_000];
        int count = 0;
        for (int size = 1 << 20; size > 512; size >>= 1) {
            try {
                while (true) { keep[count] = new byte[size]; count++; }
            } catch (OutOfMemoryError e) {
                // Smaller ones may still fit.
            }
        }
        int depth;
        try {
            depth = down(3000);
        } catch (OutOfMemoryError e) {
            depth = -1;
        }
        keep = null;
        System.out.println("depth " + depth);
    }
}
