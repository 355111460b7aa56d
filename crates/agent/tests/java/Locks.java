import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.concurrent.locks.StampedLock;

/** Threads that are parked at locks, and threads that wait for an event or for work. */
public class Locks {
    static final ReentrantLock plain = new ReentrantLock();
    static final ReentrantReadWriteLock divided = new ReentrantReadWriteLock();
    static final StampedLock stamped = new StampedLock();
    static final CountDownLatch latch = new CountDownLatch(1);
    static final LinkedBlockingQueue<String> work = new LinkedBlockingQueue<>();

    static void wantsPlain() {
        plain.lock();
        plain.unlock();
    }

    static void wantsRead() {
        divided.readLock().lock();
        divided.readLock().unlock();
    }

    static void wantsStamped() {
        stamped.unlockWrite(stamped.writeLock());
    }

    static void wantsEvent() {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    static void wantsWork() {
        try {
            work.take();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    public static void main(String[] args) throws Exception {
        Lock write = divided.writeLock();
        plain.lock();
        write.lock();
        long stamp = stamped.writeLock();
        Thread[] threads = {
            new Thread(Locks::wantsPlain), new Thread(Locks::wantsRead), new Thread(Locks::wantsStamped),
            new Thread(Locks::wantsEvent), new Thread(Locks::wantsWork),
        };
        for (Thread thread : threads) thread.start();
        for (Thread thread : threads) while (thread.getState() != Thread.State.WAITING) Thread.yield();
        Thread.sleep(300);
        plain.unlock();
        write.unlock();
        stamped.unlockWrite(stamp);
        latch.countDown();
        work.add("done");
        for (Thread thread : threads) thread.join();
        System.out.println("unlocked");
    }
}
