package shop;

import java.util.ArrayList;
import java.util.List;
import java.util.Scanner;

/**
 * Allocates, works and waits: {@code go} on standard input makes orders of which every second one is kept, keeps two threads
 * waiting for each other, and says {@code ok}; the end of the input ends it.
 */
public class Mixed {
    static class Order { long number; int[] lines; Order(long number) { this.number = number; lines = new int[20]; } }

    static final List<Order> kept = new ArrayList<>();
    static final Object lock = new Object();
    static volatile long sum;

    static void orders() {
        for (int i = 0; i < 100_000; i++) {
            Order order = new Order(i);
            if (i % 2 == 0) kept.add(order);
        }
    }

    static void texts() {
        for (int i = 0; i < 20_000; i++) sum += String.valueOf(sum + i).hashCode();
    }

    static void work() {
        long end = System.nanoTime() + 400_000_000L;
        while (System.nanoTime() < end) sum += Long.toString(sum).length();
    }

    static void contend() throws InterruptedException {
        ThreadGroup group = new ThreadGroup("tills");
        Thread[] threads = new Thread[2];
        for (int i = 0; i < 2; i++) {
            threads[i] = new Thread(group, () -> {
                for (int j = 0; j < 20; j++) {
                    synchronized (lock) {
                        try { Thread.sleep(5); } catch (InterruptedException end) { return; }
                    }
                }
            }, "till " + i);
            threads[i].start();
        }
        for (Thread thread : threads) thread.join();
    }

    public static void main(String[] arguments) throws Exception {
        Scanner in = new Scanner(System.in);
        System.out.println("ready");
        while (in.hasNextLine()) {
            in.nextLine();
            orders();
            texts();
            work();
            contend();
            System.out.println("ok");
        }
    }
}
