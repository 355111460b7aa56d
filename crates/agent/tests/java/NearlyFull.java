import java.util.ArrayList;
import java.util.List;

/** Keeps four fifths of the heap, and makes garbage for some seconds. */
public class NearlyFull {
    static final class Node {
        final byte[] data = new byte[1000];
    }

    static final List<Node> KEPT = new ArrayList<>();
    static volatile Object last;

    public static void main(String[] args) throws InterruptedException {
        long count = Runtime.getRuntime().maxMemory() / 5 * 4 / 1040;
        for (long n = 0; n < count; n++) {
            KEPT.add(new Node());
        }
        long end = System.nanoTime() + 4_000_000_000L;
        while (System.nanoTime() < end) {
            for (int n = 0; n < 1000; n++) {
                last = new byte[100];
            }
            Thread.sleep(5);
        }
        System.out.println(KEPT.size());
    }
}
