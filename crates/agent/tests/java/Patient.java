import java.io.*;
import java.util.*;

/** Does what the lines on standard input say, so that a test decides when. Ends with code 3. */
public class Patient {
    static final List<Object> KEEP = new ArrayList<>();
    static class Early { int value = 1; }
    static class Late { int value = 2; }
    static class Deep { int value = 3; }

    static void early() { for (int i = 0; i < 1000; i++) KEEP.add(new Early()); }
    static byte[] last;

    static void late() { for (int i = 0; i < 500; i++) KEEP.add(new Late()); }
    static void deep(int n) { if (n > 0) deep(n - 1); else KEEP.add(new Deep()); }
    static double left() { return spin(400); }
    static double right() { return spin(400); }

    /** Two threads that spin, each in a method of its own, whenever both flags are set. */
    static final java.util.concurrent.CyclicBarrier BARRIER = new java.util.concurrent.CyclicBarrier(3);
    static void twin(String name, java.util.function.DoubleSupplier work) {
        Thread thread = new Thread(() -> {
            try { for (;;) { BARRIER.await(); work.getAsDouble(); BARRIER.await(); } } catch (Exception e) { throw new RuntimeException(e); }
        }, name);
        thread.setDaemon(true);
        thread.start();
    }

    /** Counting starts a moment after an attach has ended. */
    static void awaitCounting() throws Exception {
        java.lang.reflect.Field on = Class.forName("java.lang.HprofTracker").getDeclaredField("on");
        on.setAccessible(true);
        while (!on.getBoolean(null)) Thread.sleep(10);
    }

    /** What a thread of the agent begins after an attach has begun. */
    static void awaitAttached() throws Exception {
        while (Thread.getAllStackTraces().keySet().stream().anyMatch(t -> t.getName().equals("HPROF attach"))) Thread.sleep(10);
    }

    static double spin(long ms) {
        double sum = 0;
        for (long end = System.currentTimeMillis() + ms; System.currentTimeMillis() < end; ) for (int i = 1; i < 10000; i++) sum += Math.sqrt(i);
        return sum;
    }

    static final java.util.concurrent.locks.ReentrantLock LOCK = new java.util.concurrent.locks.ReentrantLock();
    static void wantsLock() { LOCK.lock(); LOCK.unlock(); }

    /** A thread is parked at a lock for a while. */
    static void lock() throws Exception {
        LOCK.lock();
        Thread thread = new Thread(Patient::wantsLock);
        thread.start();
        while (thread.getState() != Thread.State.WAITING) Thread.yield();
        Thread.sleep(100);
        LOCK.unlock();
        thread.join();
    }

    /** Loads the agent by the diagnostic command, on a thread of its own. */
    static void load(String library, String options) {
        Thread thread = new Thread(() -> {
            try {
                Object answer = java.lang.management.ManagementFactory.getPlatformMBeanServer().invoke(
                    new javax.management.ObjectName("com.sun.management:type=DiagnosticCommand"), "jvmtiAgentLoad",
                    new Object[] { new String[] { library, '"' + options + '"' } }, new String[] { String[].class.getName() });
                System.out.println(((String) answer).trim());
            } catch (Exception e) { throw new RuntimeException(e); }
        }, "loader");
        thread.start();
    }

    public static void main(String[] args) throws Exception {
        early();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line; (line = lines.readLine()) != null; ) {
            String[] words = line.split(" ");
            if (words[0].equals("load")) {
                load(words[1], words[2]);
                continue;
            }
            switch (line) {
                case "late": late(); break;
                case "spin": if (spin(700) == 1) System.out.println("never"); break;
                case "deep": deep(20); break;
                case "twins": twin("left", Patient::left); twin("right", Patient::right); break;
                case "lock": lock(); break;
                case "both": BARRIER.await(); BARRIER.await(); break;
                case "counting": awaitCounting(); break;
                case "attached": awaitAttached(); break;
                case "megabytes": for (int i = 0; i < 32; i++) last = new byte[1 << 20]; break;
                case "forget old": KEEP.subList(0, 1500).clear(); break;
                case "forget": KEEP.clear(); break;
                default: System.out.println("kept " + KEEP.size()); System.exit(3);
            }
            System.out.println("done " + line);
        }
    }
}
