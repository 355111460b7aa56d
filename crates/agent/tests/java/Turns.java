import java.util.concurrent.SynchronousQueue;

/** Threads that make objects in turn, one after another's end, and at the same time. */
public class Turns {
    static final class Made {}

    static volatile Object last;

    /** Two objects in each step, at two sites. */
    static void make(int steps) {
        for (int i = 0; i < steps; i++) {
            last = new Made();
            last = new short[i % 3];
        }
    }

    static void early() {
        make(3_000);
    }

    static void late() {
        make(5_000);
    }

    static void inTurn() {
        make(700);
    }

    static void between() {
        make(900);
    }

    static void together() {
        make(40_000);
    }

    static Thread start(Runnable run) {
        Thread thread = new Thread(run);
        thread.start();
        return thread;
    }

    public static void main(String[] args) throws Exception {
        SynchronousQueue<Integer> turns = new SynchronousQueue<>();
        Thread other = start(() -> {
            try {
                for (int turn = 0; turn < 20; turn++) {
                    turns.take();
                    inTurn();
                    turns.take();
                }
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        });
        for (int turn = 0; turn < 20; turn++) {
            turns.put(turn);
            turns.put(turn);
            between();
        }
        other.join();
        for (int i = 0; i < 10; i++) {
            start(Turns::early).join();
            between();
            start(Turns::late).join();
        }
        Thread[] threads = new Thread[4];
        for (int i = 0; i < threads.length; i++) threads[i] = start(Turns::together);
        for (Thread thread : threads) thread.join();
        System.out.println("made");
    }
}
