import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/** A second of CPU time in calls of methods that do little else, direct ones and of an interface. */
public class Calls {
    interface Shape { int area(int x); }
    static class A implements Shape { public int area(int x) { return x + 1; } }
    static class B implements Shape { public int area(int x) { return x * 3; } }
    static class C implements Shape { public int area(int x) { return x ^ 5; } }

    static int step5(int x) { return x + 1; }
    static int step4(int x) { return step5(x) + step5(x + 1); }
    static int step3(int x) { return step4(x) + step4(x + 2); }
    static int step2(int x) { return step3(x) + step3(x + 3); }
    static int step1(int x) { return step2(x) + step2(x + 4); }

    static int walk(int sum) {
        for (int i = 0; i < 1000; i++) sum += step1(sum);
        return sum;
    }

    static int areas(Shape[] shapes, int sum) {
        for (int i = 0; i < 30000; i++) sum += shapes[(i & 0xffff) % 3].area(i);
        return sum;
    }

    public static void main(String[] args) {
        Shape[] shapes = {new A(), new B(), new C()};
        ThreadMXBean clock = ManagementFactory.getThreadMXBean();
        int sum = 0;
        for (long end = clock.getCurrentThreadCpuTime() + 1_000_000_000L; clock.getCurrentThreadCpuTime() < end;)
            for (int i = 0; i < 10; i++) sum = areas(shapes, walk(sum));
        System.out.println(sum);
    }
}
