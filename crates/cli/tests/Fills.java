import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Scanner;
import java.util.concurrent.ConcurrentHashMap;

/** Objects whose sizes and capacities are known; commands come on standard input. */
public class Fills {
    /** Its array is a private field of its parent. */
    static class Bag extends ArrayList<Object> {
        Bag(int room, int size) {
            super(room);
            for (int i = 0; i < size; i++) add("element");
        }
    }

    static class Buffer {
        private final char[] room;
        private final int count;

        Buffer(int room, int count) {
            this.room = new char[room];
            this.count = count;
        }
    }

    static class Line extends Buffer {
        /** An array as well, but no field states it. */
        final Object more = new long[3];

        Line(int count) {
            super(20, count);
        }
    }

    /** One that is empty has no array at all. */
    static class Table extends HashMap<Integer, Object> {
        Table(int size) {
            super(32);
            for (int i = 0; i < size; i++) put(i, "value");
        }
    }

    /** Says neither. */
    static class Plain {
        Object other = "other";
    }

    static List<Object> kept = new ArrayList<>();

    static void bags(int count) {
        for (int i = 0; i < count; i++) kept.add(new Bag(100, i % 10));
    }

    static void others(int count) {
        for (int i = 0; i < count; i++) {
            kept.add(new Line(i % 7));
            kept.add(new Table(i % 5));
            kept.add(new Plain());
            kept.add(new Plain[i % 13]);
            HashSet<Object> set = new HashSet<>();
            ArrayDeque<Object> deque = new ArrayDeque<>();
            ConcurrentHashMap<Object, Object> map = new ConcurrentHashMap<>();
            for (int j = 0; j < i % 4; j++) {
                set.add(j);
                deque.add(j);
                map.put(j, j);
            }
            kept.add(set);
            kept.add(deque);
            kept.add(map);
        }
    }

    /** The same class from two loaders of its own: so many objects of one, and twice as many of the other. */
    static void loaders(int count) throws Exception {
        java.net.URL[] here = {Fills.class.getProtectionDomain().getCodeSource().getLocation()};
        for (int times = 1; times <= 2; times++) {
            ClassLoader loader = new java.net.URLClassLoader(here, null);
            java.lang.reflect.Constructor<?> line = loader.loadClass("Fills$Line").getDeclaredConstructor(int.class);
            line.setAccessible(true);
            for (int i = 0; i < times * count; i++) kept.add(line.newInstance(times));
        }
    }

    static volatile boolean churns;

    /** Makes objects that die soon, all the time. */
    static void churn() {
        churns = true;
        Thread thread = new Thread(() -> {
            Bag[] few = new Bag[20_000];
            for (int i = 0; churns; i++) few[i % few.length] = new Bag(10, 1);
        });
        thread.setDaemon(true);
        thread.start();
    }

    public static void main(String[] arguments) throws Exception {
        Scanner in = new Scanner(System.in);
        System.out.println("ready");
        while (in.hasNextLine()) {
            String[] words = in.nextLine().split(" ");
            int count = words.length > 1 ? Integer.parseInt(words[1]) : 0;
            switch (words[0]) {
                case "bags": bags(count); break;
                case "others": others(count); break;
                case "thread":
                    Thread maker = new Thread(() -> bags(count), "maker");
                    maker.start();
                    maker.join();
                    break;
                case "empty":
                    for (Object one : kept) if (one instanceof Bag) ((Bag) one).clear();
                    break;
                case "loaders": loaders(count); break;
                case "churn": churn(); break;
                case "calm": churns = false; break;
                case "drop": kept.clear(); break;
                case "exit": return;
                default: break;
            }
            System.out.println("ok");
        }
    }
}
