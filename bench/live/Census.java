import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;

/**
 * Populations of known size for bench/live.py. Commands on standard input: {@code census} keeps
 * {@link #COUNTS} objects of each class, {@code keep N} keeps N small ones, {@code work MS} runs for so long and
 * prints rounds of work and nanoseconds of CPU.
 */
public class Census {
    /** Class i is made by the i-th maker; bench/live.py reads the counts from the answer of census. */
    interface Maker { Object make(); }

    static class A { } static class B { long a; } static class C { long a, b; } static class D { long a, b, c; }
    static class E { long a, b, c, d; } static class F { long a, b, c, d, e; } static class G { long a, b, c, d, e, f; }
    static class H { long a, b, c, d, e, f, g; } static class I { Object a; } static class J { Object a, b, c; }
    static class K { Object a, b, c, d, e; } static class L { int a; } static class M { int a, b, c; } static class N { byte a; }
    static class O { double a, b; Object c; } static class P { short a; long b; } static class Q { Object a; long b, c; }
    static class R { char a, b; Object c, d; } static class S { boolean a; int b; long c; } static class T { float a, b, c, d; }

    static final Maker[] MAKERS = {
        A::new, B::new, C::new, D::new, E::new, F::new, G::new, H::new, I::new, J::new,
        K::new, L::new, M::new, N::new, O::new, P::new, Q::new, R::new, S::new, T::new,
    };

    static final List<Object[]> kept = new ArrayList<>();

    static class Small { Small next; int number; }
    static Small chain;

    static void census() {
        StringBuilder said = new StringBuilder("census");
        for (int i = 0; i < MAKERS.length; i++) {
            // From 10,000 objects to a quarter of a million.
            int count = (int) (10_000 * Math.pow(25, i * 7 % 20 / 19.0));
            Object[] objects = new Object[count];
            for (int j = 0; j < count; j++) objects[j] = MAKERS[i].make();
            kept.add(objects);
            said.append(' ').append(objects[0].getClass().getName()).append('=').append(count);
        }
        System.out.println(said);
    }

    static void keep(int count) {
        for (int i = 0; i < count; i++) {
            Small small = new Small();
            small.next = chain;
            chain = small;
        }
        System.out.println("ok");
    }

    static long work(int seed) {
        StringBuilder text = new StringBuilder();
        long sum = 0;
        for (int i = 0; i < 2000; i++) {
            text.append(i * seed);
            if (text.length() > 500) { sum += text.toString().hashCode(); text = new StringBuilder(); }
        }
        return sum;
    }

    public static void main(String[] arguments) throws Exception {
        var threads = ManagementFactory.getThreadMXBean();
        java.util.Scanner in = new java.util.Scanner(System.in);
        System.out.println("ready");
        long sum = 0;
        while (in.hasNextLine()) {
            String[] words = in.nextLine().split(" ");
            switch (words[0]) {
                case "census" -> census();
                case "keep" -> keep(Integer.parseInt(words[1]));
                case "work" -> {
                    long end = System.nanoTime() + Long.parseLong(words[1]) * 1_000_000L;
                    long cpu = threads.getCurrentThreadCpuTime(), rounds = 0;
                    while (System.nanoTime() < end) { sum += work((int) rounds); rounds++; }
                    System.out.println("work " + rounds + " " + (threads.getCurrentThreadCpuTime() - cpu));
                }
                default -> System.out.println("sum " + sum);
            }
        }
    }
}
