import java.util.ArrayDeque;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * A service under load: threads that answer requests at a fixed rate, each request with garbage of its own, beside objects that
 * live for long. {@code Serve SHAPE SECONDS THREADS REQUESTS_PER_SECOND LIVE_MIB}.
 *
 * <ul>
 * <li>{@code requests}: small objects of many sites, some of them kept for a while.
 * <li>{@code buffers}: buffers of 256 KiB to 1 MiB, freed at the end of the request.
 * <li>{@code queue}: elements of a linked queue, each of which refers to the next: one that is not freed keeps all later ones.
 * </ul>
 *
 * The last lines are the number of requests, and how late the answers were: the median, one in a thousand, the longest.
 */
public class Serve {
    /** A small object with content. */
    static final class Item {
        final byte[] content;
        final Item other;

        Item(int size, Item other) {
            content = new byte[size];
            this.other = other;
        }
    }

    /** An element of a queue. */
    static final class Node {
        Node next;
        final byte[] content = new byte[100];
    }

    static Object[] kept;
    static volatile Object seen;

    /** A tree of calls, so that there are many stacks. */
    static Item make(int depth, long random) {
        if (depth == 0) {
            return new Item(16 + (int) (random >>> 32 & 127), null);
        }
        switch ((int) (random >>> 3 * depth & 3)) {
            case 0: return new Item(24, make(depth - 1, random));
            case 1: return make(depth - 1, random + 1);
            case 2: return new Item(32, make(depth - 1, random * 3));
            default: return make(depth - 1, random ^ 0x5555);
        }
    }

    static void request(String shape, long number, ArrayDeque<Object> recent, Node[] last) {
        long random = number * 0x9E3779B97F4A7C15L;
        switch (shape) {
            case "requests":
                for (int i = 0; i < 200; i++) {
                    recent.add(make(6, random + i * 0x2545F4914F6CDD1DL));
                    if (recent.size() > 2000) {
                        recent.poll();
                    }
                }
                break;
            case "buffers":
                byte[] buffer = new byte[(256 << 10) + (int) (random >>> 40) % (768 << 10)];
                buffer[buffer.length / 2] = (byte) number;
                recent.add(buffer);
                if (recent.size() > 2) {
                    recent.poll();
                }
                break;
            default:
                for (int i = 0; i < 200; i++) {
                    Node node = new Node();
                    last[0].next = node;
                    last[0] = node;
                }
        }
        seen = recent.peek();
    }

    public static void main(String[] args) throws Exception {
        String shape = args[0];
        long seconds = Long.parseLong(args[1]);
        int n = Integer.parseInt(args[2]);
        long every = TimeUnit.SECONDS.toNanos(1) * n / Long.parseLong(args[3]);
        kept = new Object[Integer.parseInt(args[4]) * 1024];
        for (int i = 0; i < kept.length; i++) {
            kept[i] = new byte[1000];
        }
        long[][] late = new long[n][];
        Thread[] threads = new Thread[n];
        long start = System.nanoTime();
        for (int t = 0; t < n; t++) {
            int me = t;
            threads[t] = new Thread(() -> {
                long[] mine = new long[(int) (TimeUnit.SECONDS.toNanos(seconds) / every)];
                ArrayDeque<Object> recent = new ArrayDeque<>();
                Node[] last = {new Node()};
                for (int i = 0; i < mine.length; i++) {
                    long due = start + i * every;
                    for (long left; (left = due - System.nanoTime()) > 0; ) {
                        LockSupport.parkNanos(left);
                    }
                    request(shape, (long) me << 32 | i, recent, last);
                    mine[i] = System.nanoTime() - due;
                }
                late[me] = mine;
            });
            threads[t].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        long[] all = java.util.Arrays.stream(late).flatMapToLong(java.util.Arrays::stream).sorted().toArray();
        System.out.println("requests " + all.length);
        System.out.println("late " + all[all.length / 2] / 1000 + " " + all[all.length - 1 - all.length / 1000] / 1000 + " " + all[all.length - 1] / 1000);
    }
}
