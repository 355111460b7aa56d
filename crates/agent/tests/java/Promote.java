/** Keeps about every third object, so that collections of the young generation promote them. */
public class Promote {
    static Object[] kept = new Object[1 << 20];

    public static void main(String[] args) {
        int count = Integer.parseInt(args[0]);
        long sum = 0;
        for (int i = 0; i < count; i++) {
            byte[] bytes = new byte[200 + i % 700];
            if (i % 3 == 0) kept[i / 3] = bytes;
            sum += bytes.length;
        }
        System.out.println(sum);
    }
}
