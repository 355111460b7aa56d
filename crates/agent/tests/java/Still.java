/** Makes a known population and known monitors in use, prints a line, and stands still until its input ends. With an
 * argument it continues to make objects, some of which live on for a while. */
public class Still {
    static final int NODES = 3000;
    static Node first;
    static Object[] kept = new Object[500];
    static final Lock LOCK = new Lock();
    static final Gate GATE = new Gate();

    static class Base {
        long mark = 0x1122334455667788L;
    }

    static class Node extends Base {
        final int number;
        final Node next;
        char letter = 'x';

        Node(int number, Node next) {
            this.number = number;
            this.next = next;
        }
    }

    static class Lock {
        static final String CONSTANT = "held by the constant pool";
    }

    static class Gate {}

    static Thread start(String name, Runnable body) {
        Thread thread = new Thread(body, name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    static void until(Thread thread, Thread.State state) throws InterruptedException {
        while (thread.getState() != state) Thread.sleep(5);
    }

    static void sleep() {
        try {
            Thread.sleep(1 << 30);
        } catch (InterruptedException end) {
            throw new IllegalStateException(end);
        }
    }

    static void own() {
        synchronized (LOCK) {
            synchronized (LOCK) {
                sleep();
            }
        }
    }

    static void enter() {
        synchronized (LOCK) {
            sleep();
        }
    }

    static void await() {
        synchronized (GATE) {
            try {
                GATE.wait();
            } catch (InterruptedException end) {
                throw new IllegalStateException(end);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        // The main thread has a buffer from before there was an agent.
        for (int i = 0; i < 40000; i++) kept[0] = new byte[400];
        for (int i = NODES - 1; i >= 0; i--) first = new Node(i, first);
        for (int i = 0; i < kept.length; i++) kept[i] = i % 2 == 0 ? new int[i] : new Node[i][2];
        until(start("owner", Still::own), Thread.State.TIMED_WAITING);
        until(start("entering one", Still::enter), Thread.State.BLOCKED);
        until(start("entering two", Still::enter), Thread.State.BLOCKED);
        until(start("notified", Still::await), Thread.State.WAITING);
        System.out.println("ready");
        if (args.length > 0) start("mutator", Still::mutate);
        while (System.in.read() >= 0) {}
    }

    static void mutate() {
        Object[] ring = new Object[20000];
        for (int i = 0; ; i++) {
            Node node = new Node(-1, null);
            ring[i % ring.length] = i % 3 == 0 ? new byte[i % 300] : node;
            if (i % 50000 == 0) kept[i / 50000 % 100] = new Node[][] {{node}};
        }
    }
}
