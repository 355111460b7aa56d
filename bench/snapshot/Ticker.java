import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Keeps so many MiB of small objects alive, and measures the longest time for which a thread that wants to run every
 * millisecond did not run. Lines of its input: "reset", "longest" (prints microseconds), "write on", "write off" (a
 * thread that changes the objects), "end".
 */
public class Ticker {
    static final class Node {
        Node next;
        long number;
        byte[] bytes = new byte[24];
    }

    static final AtomicLong LONGEST = new AtomicLong();
    static volatile boolean writes;

    public static void main(String[] args) throws Exception {
        long mib = Long.parseLong(args[0]);
        List<Node[]> all = new ArrayList<>();
        // A node has 24 bytes, its array 40, its place in the table 4.
        long count = (mib << 20) / 68;
        while (count > 0) {
            Node[] some = new Node[(int) Math.min(count, 10_000)];
            for (int i = 0; i < some.length; i++) {
                some[i] = new Node();
                some[i].number = i;
                some[i].next = i > 0 ? some[i - 1] : null;
            }
            all.add(some);
            count -= some.length;
        }
        Thread ticker = new Thread(() -> {
            long last = System.nanoTime();
            while (true) {
                try {
                    Thread.sleep(1);
                } catch (InterruptedException e) {
                    return;
                }
                long now = System.nanoTime();
                long gap = now - last;
                LONGEST.accumulateAndGet(gap, Math::max);
                last = now;
            }
        });
        ticker.setDaemon(true);
        ticker.start();
        Thread writer = new Thread(() -> {
            long round = 0;
            while (true) {
                round++;
                for (Node[] some : all) {
                    while (!writes) {
                        Thread.onSpinWait();
                        try {
                            Thread.sleep(10);
                        } catch (InterruptedException e) {
                            return;
                        }
                    }
                    for (Node node : some) {
                        node.number = round;
                    }
                }
            }
        });
        writer.setDaemon(true);
        writer.start();
        System.gc();
        System.out.println("ready");
        java.io.BufferedReader in = new java.io.BufferedReader(new java.io.InputStreamReader(System.in));
        for (String line = in.readLine(); line != null && !line.equals("end"); line = in.readLine()) {
            switch (line) {
                case "reset" -> LONGEST.set(0);
                case "write on" -> writes = true;
                case "write off" -> writes = false;
                default -> { }
            }
            System.out.println(line.equals("longest") ? "longest " + LONGEST.get() / 1000 : "ok");
        }
    }
}
