/** Catches many StackOverflowErrors of a recursion that allocates, and allocates after each of them. */
public class StackOverflows {
    static Object last;

    static Object fall(int depth) {
        Object[] made = new Object[4];
        made[0] = fall(depth + 1);
        return made;
    }

    public static void main(String[] args) {
        int overflows = 0;
        int others = 0;
        for (int round = 0; round < 1000; round++) {
            try {
                fall(0);
            } catch (StackOverflowError e) {
                overflows++;
            } catch (Throwable e) {
                others++;
            }
            try {
                for (int n = 0; n < 10; n++) {
                    last = new int[n];
                }
            } catch (Throwable e) {
                others++;
            }
        }
        System.out.println(overflows + " overflows, " + others + " other errors");
    }
}
