/** Methods that know how long they take: few and many calls of a short one, and one that is long at times. */
public class Durations {
    static long few, many, uneven;

    static void few() { long start = System.nanoTime(), now; do now = System.nanoTime(); while (now - start < 40000); few += now - start; }
    static void many() { long start = System.nanoTime(), now; do now = System.nanoTime(); while (now - start < 2000); many += now - start; }
    static void uneven(int i) {
        long length = i % 100 == 0 ? 1000000 : 1000;
        long start = System.nanoTime(), now;
        do now = System.nanoTime(); while (now - start < length);
        uneven += now - start;
    }

    public static void main(String[] args) {
        for (int i = 0; i < 20; i++) few();
        for (int i = 0; i < 100000; i++) many();
        for (int i = 0; i < 40000; i++) uneven(i);
        System.out.println("few " + few + " many " + many + " uneven " + uneven);
    }
}
