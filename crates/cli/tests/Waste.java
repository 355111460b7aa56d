import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;

/** Wastes memory in known amounts; waste.rs knows them. */
public class Waste {
    /** 1000 orders whose city is a copy, with a note that is never written. */
    static final class Order {
        final String city;
        Object note;
        long refund;

        Order(int n) {
            city = new String(new char[] {'B', 'r', 'e', 'm', 'e', 'n', (char) ('0' + n % 4)});
        }
    }

    /** 64 keys that all fall into one bucket of a map. */
    static final class Key {
        final int n;

        Key(int n) {
            this.n = n;
        }

        @Override
        public int hashCode() {
            return 7;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Key && ((Key) other).n == n;
        }
    }

    /** A value that holds its own key. */
    static final class Held {
        final Object[] key;

        Held(Object key) {
            this.key = new Object[] {key};
        }
    }

    /** Lists of a class of their own, so that the JDK's lists do not mix in. */
    static final class Lines extends ArrayList<Object> {
        Lines(int capacity) {
            super(capacity);
        }
    }

    /** Maps of a class of their own. */
    static final class Prices extends HashMap<Object, Object> {
        Prices(int capacity) {
            super(capacity);
        }
    }

    static final List<Object> all = new ArrayList<>();

    public static void main(String[] args) {
        Order[] orders = new Order[1000];
        for (int i = 0; i < orders.length; i++) {
            orders[i] = new Order(i);
        }
        all.add(orders);
        for (int i = 0; i < 200; i++) {
            all.add(new Lines(50));
        }
        for (int i = 0; i < 100; i++) {
            Lines lines = new Lines(100);
            lines.add("one");
            lines.add("two");
            all.add(lines);
        }
        for (int i = 0; i < 30; i++) {
            Prices prices = new Prices(1000);
            prices.put("one", "two");
            all.add(prices);
        }
        Prices collided = new Prices(100);
        for (int i = 0; i < 64; i++) {
            collided.put(new Key(i), "x");
        }
        all.add(collided);
        for (int i = 0; i < 500; i++) {
            all.add(new Double(1234567.5 + i % 5));
        }
        Map<Object, Object> weak = new WeakHashMap<>();
        for (int i = 0; i < 50; i++) {
            Object key = new Key(1000 + i);
            weak.put(key, new Held(key));
        }
        all.add(weak);
        for (int i = 0; i < 10; i++) {
            ByteBuffer buffer = ByteBuffer.allocateDirect(123456);
            all.add(buffer);
            all.add(buffer.slice());
        }
        for (int i = 0; i < 40; i++) {
            all.add(new float[1000]);
        }
    }
}
