import java.util.ArrayList;
import java.util.List;

/** Keeps objects that several stacks have allocated, and waits for a line. */
public class Numbered {
    static final List<Object> KEPT = new ArrayList<>();

    static class Item {
        final int number;
        final long[] body;

        Item(int number) {
            this.number = number;
            this.body = new long[1000 + number % 7];
        }
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 300; i++) {
            switch (i % 3) {
                case 0: first(i); break;
                case 1: second(i); break;
                default: deep(i, i % 5);
            }
        }
        Runnable lambda = () -> KEPT.add(new Item(300));
        lambda.run();
        System.out.println("ready");
        System.in.read();
    }

    static void first(int number) {
        KEPT.add(new Item(number));
    }

    static void second(int number) {
        Object[] pair = {new Item(number), null};
        KEPT.add(pair);
    }

    static void deep(int number, int depth) {
        if (depth > 0) {
            deep(number, depth - 1);
        } else {
            KEPT.add(new Item(number));
        }
    }
}
