import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import jdk.jfr.FlightRecorder;

/** Threads that compute, allocate, find a monitor taken and wait for a lock: something for each event that is read. */
public class Recorded {
    static final Object LOCK = new Object();
    static final ReentrantLock PARK = new ReentrantLock();
    static final List<byte[]> KEPT = new ArrayList<>();
    static volatile long sink;

    static void compute() {
        long sum = 0;
        for (int i = 0; i < 400_000; i++) {
            sum += Long.hashCode(i * 31L) ^ sum >>> 3;
        }
        sink += sum;
    }

    static void allocate() {
        Object[] all = new Object[500];
        for (int i = 0; i < all.length; i++) {
            all[i] = new StringBuilder("x" + i);
        }
        sink += all.length;
    }

    static void keep() {
        KEPT.add(new byte[20_000]);
    }

    /** Starts a thread and waits until it waits. */
    static Thread waiting(String name, Thread.State how, Runnable task) {
        Thread thread = new Thread(task, name);
        thread.start();
        while (thread.getState() != how) {
            Thread.onSpinWait();
        }
        return thread;
    }

    static void enter() {
        synchronized (LOCK) {
            sink++;
        }
    }

    static void lock() {
        PARK.lock();
        PARK.unlock();
    }

    public static void main(String[] arguments) throws Exception {
        Thread entering;
        synchronized (LOCK) {
            entering = waiting("task-2", Thread.State.BLOCKED, Recorded::enter);
        }
        PARK.lock();
        Thread locking = waiting("task-3", Thread.State.WAITING, Recorded::lock);
        PARK.unlock();
        Thread computing = new Thread(() -> {
            for (int i = 0; i < 1500; i++) {
                compute();
                keep();
            }
        }, "task-0");
        Thread allocating = new Thread(() -> {
            for (int i = 0; i < 1500; i++) {
                allocate();
            }
        }, "task-1");
        computing.start();
        allocating.start();
        for (Thread thread : new Thread[] {entering, locking, computing, allocating}) {
            thread.join();
        }
        // The rest goes into another chunk.
        FlightRecorder.getFlightRecorder().takeSnapshot().close();
        for (int i = 0; i < 100; i++) {
            compute();
            allocate();
            keep();
        }
    }
}
