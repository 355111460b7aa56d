import java.io.*;
import java.lang.management.*;

/** Threads that hold what a dump may want while they block elsewhere. Ends with its input. */
public class Contended {
    static final Object[] LOCKS = new Object[3];
    static int turns;
    static void turn(int i) {
        // Long enough for others to give up waiting actively.
        synchronized (LOCKS[i % LOCKS.length]) {
            turns++;
            try { Thread.sleep(1); } catch (InterruptedException e) { throw new RuntimeException(e); }
        }
    }

    static void work(int i) {
        try {
            for (;;) {
                // The platform's beans are looked up under locks that a dump takes as well.
                synchronized (ManagementFactory.class) { turn(i); }
                ManagementFactory.getPlatformMBeanServer();
                synchronized (LOCKS[i % LOCKS.length]) { LOCKS[i % LOCKS.length].wait(1); }
                new Thread(() -> turn(i)).start();
            }
        } catch (InterruptedException e) { throw new RuntimeException(e); }
    }

    /** One thread waits for another: that happens before the first dump however busy the machine is. */
    static void contend() throws InterruptedException {
        Thread second = new Thread(() -> turn(0));
        synchronized (LOCKS[0]) {
            second.start();
            while (second.getState() != Thread.State.BLOCKED) Thread.yield();
        }
        second.join();
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < LOCKS.length; i++) LOCKS[i] = new Object();
        contend();
        for (int i = 0; i < 6; i++) {
            int n = i;
            Thread thread = new Thread(() -> work(n));
            thread.setDaemon(true);
            thread.start();
        }
        System.out.println("ready");
        while (System.in.read() >= 0) { }
        System.out.println("ended");
    }
}
