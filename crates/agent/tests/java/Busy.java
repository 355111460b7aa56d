/** Half a second of work in one method, and some objects. */
public class Busy {
    static double hot(int n) { double sum = 0; for (int i = 1; i < n; i++) sum += Math.sqrt(i); return sum; }
    static double middle(int n) { return hot(n) + hot(n); }

    public static void main(String[] args) {
        Object[] kept = new Object[100];
        double sum = 0;
        for (long i = 0, end = System.nanoTime() + 500_000_000L; System.nanoTime() < end; i++) {
            sum += middle(20000);
            kept[(int) (i % 100)] = new int[10];
        }
        System.out.println(sum > 0 ? "busy" : "idle");
    }
}
