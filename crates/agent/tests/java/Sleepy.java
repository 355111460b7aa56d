/** One thread sleeps while another works. */
public class Sleepy {
    static volatile double sum;

    static void asleep() {
        try {
            Thread.sleep(1500);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    static void awake() {
        long end = System.nanoTime() + 500_000_000L;
        // Short loops: JDK 8 stops no thread inside one that counts an int.
        while (System.nanoTime() < end) for (int i = 0; i < 10_000; i++) sum += Math.sqrt(i);
    }

    public static void main(String[] args) throws Exception {
        Thread sleeper = new Thread(Sleepy::asleep, "sleeper");
        sleeper.start();
        awake();
        sleeper.join();
        System.out.println("slept");
    }
}
