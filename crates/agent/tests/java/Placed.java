import java.util.Random;

/**
 * Objects that say where they were made, replaced all the time by two threads, so
 * that collections move them about. Ends when its input does.
 */
public class Placed {
    static final class Item {
        final int site;
        final Object beside;

        Item(int site, Object beside) {
            this.site = site;
            this.beside = beside;
        }
    }

    static volatile boolean over;
    /** The objects are there to the end. */
    static Item[][] kept;

    static Item first(Object beside) {
        return new Item(1, beside);
    }

    static Item second(Object beside) {
        return new Item(2, beside);
    }

    static int[] third() {
        return new int[] {0x7e57, 3};
    }

    static int[] fourth() {
        return new int[] {0x7e57, 4};
    }

    static void churn(Item[] items, int seed, boolean forever) {
        Random random = new Random(seed);
        for (int round = 0; forever ? !over : round < 3 * items.length; round++) {
            boolean odd = random.nextBoolean();
            Object beside = odd ? third() : fourth();
            int at = forever ? random.nextInt(items.length) : round % items.length;
            items[at] = random.nextBoolean() ? first(beside) : second(beside);
            if (forever && round % 1000 == 0) {
                Thread.yield();
            }
        }
    }

    public static void main(String[] args) throws Exception {
        final boolean busy = args.length > 0 && args[0].equals("busy");
        final Item[][] all = new Item[2][20000];
        kept = all;
        Thread[] threads = new Thread[2];
        for (int i = 0; i < 2; i++) {
            final int id = i;
            churn(all[i], i, false);
            threads[i] = new Thread(new Runnable() {
                public void run() {
                    churn(all[id], id, true);
                }
            });
        }
        if (busy) {
            threads[0].start();
            threads[1].start();
        }
        System.out.println("ready");
        while (System.in.read() >= 0) { }
        over = true;
        threads[0].join();
        threads[1].join();
        long count = 0;
        for (Item[] items : all) {
            for (Item item : items) {
                count += item.site > 0 ? 1 : 0;
            }
        }
        System.out.println("items " + count);
    }
}
