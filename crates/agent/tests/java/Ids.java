/** Threads that return any number as their id. */
public class Ids {
    static volatile int asked;
    static class Made { int value = 1; }
    static class Liar extends Thread {
        final java.util.List<Made> made = new java.util.ArrayList<>();
        @Override public long getId() { asked++; new Made(); return 7; }
        @Override public void run() { for (int i = 0; i < 100; i++) work(); }
        void work() { made.add(new Made()); }
    }

    public static void main(String[] args) throws Exception {
        Liar[] liars = new Liar[40];
        for (int i = 0; i < liars.length; i++) (liars[i] = new Liar()).start();
        int sum = 0;
        for (Liar liar : liars) { liar.join(); sum += liar.made.size(); }
        System.out.println("made " + sum + " asked " + asked);
    }
}
