import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/** Virtual threads that are parked, each with an object in a local variable; rests until its input ends. */
public class Parked {
    static final int THREADS = 40;
    static final List<Thread> threads = new ArrayList<>();

    static class Held {
        final int number;

        Held(int number) {
            this.number = number;
        }
    }

    static void park(int number) {
        Held held = new Held(number);
        while (held.number >= 0) {
            LockSupport.park();
        }
    }

    public static void main(String[] words) throws Exception {
        Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
        Class<?> type = Class.forName("java.lang.Thread$Builder");
        for (int i = 0; i < THREADS; i++) {
            int number = i;
            Runnable body = () -> park(number);
            threads.add((Thread) type.getMethod("start", Runnable.class).invoke(builder, body));
        }
        for (Thread thread : threads) {
            while (thread.getState() != Thread.State.WAITING) {
                Thread.sleep(1);
            }
        }
        System.out.println("ready");
        while (System.in.read() >= 0) {
        }
    }
}
