/** Keeps about every third object, so that collections of the young generation promote them; each
 * further argument requests three collections of the whole heap. */
public class Promote {
    /** Rows, so that no array is large enough for a place of its own. */
    static Object[][] kept = new Object[1024][];

    public static void main(String[] args) {
        int count = Integer.parseInt(args[0]);
        long sum = 0;
        for (int i = 0; i < count; i++) {
            byte[] bytes = new byte[200 + i % 700];
            if (i % 3 == 0) {
                int row = i / 3 >> 10, at = i / 3 & 1023;
                if (at == 0) kept[row] = new Object[1024];
                kept[row][at] = bytes;
            }
            sum += bytes.length;
        }
        for (int i = 1; i < args.length; i++) for (int n = 0; n < 3; n++) System.gc();
        System.out.println(sum);
    }
}
