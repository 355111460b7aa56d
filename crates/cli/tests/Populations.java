import java.util.ArrayList;
import java.util.List;
import java.util.Scanner;

/** Makes populations that are known to the object; commands come on standard input. */
public class Populations {
    static class Node {
        Node next;
        int number;
    }

    static class Bag extends ArrayList<Object> {
        Bag(int room) {
            super(room);
        }
    }

    static Node kept;
    static List<Object> bags = new ArrayList<>();

    static void keep(int count) {
        for (int i = 0; i < count; i++) {
            Node node = new Node();
            node.next = kept;
            kept = node;
        }
    }

    static int garbage(int count) {
        int sum = 0;
        for (int i = 0; i < count; i++) {
            Node node = new Node();
            node.number = i;
            sum += node.hashCode();
        }
        return sum;
    }

    /** The agent holds the last objects of each thread until the thread has made others. */
    static int other(int count) {
        int sum = 0;
        for (int i = 0; i < count; i++) sum += new Object().hashCode();
        return sum;
    }

    static List<java.nio.ByteBuffer> buffers = new ArrayList<>();

    /** Native memory: so many blocks of a mebibyte. */
    static void direct(int count) {
        for (int i = 0; i < count; i++) buffers.add(java.nio.ByteBuffer.allocateDirect(1 << 20));
    }

    /** Native memory: so many blocks of a kibibyte. */
    static void small(int count) {
        for (int i = 0; i < count; i++) buffers.add(java.nio.ByteBuffer.allocateDirect(1 << 10));
    }

    static void bags(int count) {
        for (int i = 0; i < count; i++) {
            Bag bag = new Bag(100);
            for (int j = 0; j < 10; j++) bag.add("element");
            bags.add(bag);
        }
    }

    /** The same class from two loaders of its own: so many objects of one, and twice as many of the other. */
    static void loaders(int count) throws Exception {
        java.net.URL[] here = {Populations.class.getProtectionDomain().getCodeSource().getLocation()};
        for (int times = 1; times <= 2; times++) {
            ClassLoader loader = new java.net.URLClassLoader(here, null);
            java.lang.reflect.Constructor<?> node = loader.loadClass("Populations$Node").getDeclaredConstructor();
            node.setAccessible(true);
            for (int i = 0; i < times * count; i++) bags.add(node.newInstance());
        }
    }

    static class Order {
        final Integer number;

        Order(int number) {
            this.number = number;
        }
    }

    static List<Object> wasted = new ArrayList<>();

    static void boxedFields(int i) {
        wasted.add(new Order(500_000 + i));
    }

    static void equalBoxes(int i) {
        wasted.add(Integer.valueOf(700_000 + i % 2));
    }

    static void equalArrays() {
        wasted.add(new int[] {7, 71, 7, 71, 7, 71, 7, 71});
    }

    static void equalTexts() {
        wasted.add(new String(new char[] {'w', 'a', 's', 't', 'e', '7'}));
    }

    static void singles(int i) {
        List<Object> list = new ArrayList<>(1);
        list.add(wasted.get(i));
        wasted.add(list);
    }

    static void empties() {
        wasted.add(new ArrayList<>(50));
    }

    static void rooms(int i) {
        List<Object> list = new ArrayList<>(100);
        list.add(wasted.get(i));
        list.add(wasted.get(i));
        wasted.add(list);
    }

    /** So much of each kind of waste. */
    static void waste(int count) {
        for (int i = 0; i < count; i++) {
            boxedFields(i);
            equalBoxes(i);
            equalArrays();
            equalTexts();
            singles(i);
            empties();
            rooms(i);
        }
    }

    /** Makes an object at a stack of its own for each number of so many bits. */
    static int left(int path, int bits) {
        if (bits == 0) return new int[1].length;
        return (path & 1) == 0 ? left(path >> 1, bits - 1) : right(path >> 1, bits - 1);
    }

    static int right(int path, int bits) {
        return left(path, bits);
    }

    /** So many milliseconds of CPU time. */
    static long burn(int ms) {
        java.lang.management.ThreadMXBean bean = java.lang.management.ManagementFactory.getThreadMXBean();
        long end = bean.getCurrentThreadCpuTime() + ms * 1_000_000L;
        long sum = 0;
        while (bean.getCurrentThreadCpuTime() < end)
            for (int i = 0; i < 1_000_000; i++) sum += i ^ (sum << 1);
        return sum;
    }

    static class Lock {
    }

    static void blocked(Lock lock) {
        synchronized (lock) {
            lock.notifyAll();
        }
    }

    /** So many times a thread finds a lock taken, for 100 milliseconds and more each time. */
    static void contend(int times) throws Exception {
        for (int i = 0; i < times; i++) {
            Lock lock = new Lock();
            Thread other = new Thread(() -> blocked(lock));
            synchronized (lock) {
                other.start();
                while (other.getState() != Thread.State.BLOCKED) Thread.sleep(1);
                Thread.sleep(100);
            }
            other.join();
        }
    }

    public static void main(String[] arguments) throws Exception {
        Scanner in = new Scanner(System.in);
        System.out.println("ready");
        while (in.hasNextLine()) {
            String[] words = in.nextLine().split(" ");
            int count = words.length > 1 ? Integer.parseInt(words[1]) : 0;
            switch (words[0]) {
                case "keep": keep(count); break;
                case "garbage": garbage(count); break;
                case "other": other(count); break;
                case "bags": bags(count); break;
                case "direct": direct(count); break;
                case "small": small(count); break;
                case "halve": buffers.subList(0, buffers.size() / 2).clear(); break;
                case "release": buffers.clear(); break;
                case "loaders": loaders(count); break;
                case "waste": waste(count); break;
                case "burn": burn(count); break;
                case "contend": contend(count); break;
                case "stacks": for (int n = 0; n < 1 << count; n++) left(n, count); break;
                case "drop": kept = null; break;
                case "exit": return;
                default: break;
            }
            System.out.println("ok");
        }
    }
}
