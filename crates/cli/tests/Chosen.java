import java.util.ArrayList;
import java.util.List;
import java.util.Scanner;
import java.util.function.BiFunction;

/** Makes known numbers of objects of classes whose options change; commands come on standard input. */
public class Chosen {
    static class A {
        int number;
    }

    static class B {
        int number;
    }

    static class K0 {
    }

    static class K1 {
    }

    static class K2 {
    }

    static class K3 {
    }

    static class K4 {
    }

    static class K5 {
    }

    static class K6 {
    }

    static class K7 {
    }

    static class K8 {
    }

    static class K9 {
    }

    /** Makes so many of each K, and keeps so many of them; loaded anew for each round. */
    static class Maker implements BiFunction<int[], int[], Object> {
        static Object make(int kind) {
            switch (kind) {
                case 0: return new K0();
                case 1: return new K1();
                case 2: return new K2();
                case 3: return new K3();
                case 4: return new K4();
                case 5: return new K5();
                case 6: return new K6();
                case 7: return new K7();
                case 8: return new K8();
                default: return new K9();
            }
        }

        public Object apply(int[] made, int[] kept) {
            List<Object> all = new ArrayList<>();
            for (int kind = 0; kind < made.length; kind++) {
                for (int i = 0; i < made[kind]; i++) {
                    Object one = make(kind);
                    // Those that are kept lie among those that are not.
                    if ((long) i * kept[kind] / made[kind] != (long) (i + 1) * kept[kind] / made[kind]) all.add(one);
                }
            }
            return all;
        }
    }

    static final int[] MADE = {60, 100, 160, 240, 320, 400, 500, 600, 800, 1000};
    static final int[] KEPT = {20, 50, 80, 60, 160, 100, 250, 150, 400, 250};
    static final List<Object> kept = new ArrayList<>();

    @SuppressWarnings("unchecked")
    static void rounds(int count) throws Exception {
        java.net.URL[] here = {Chosen.class.getProtectionDomain().getCodeSource().getLocation()};
        for (int i = 0; i < count; i++) {
            ClassLoader loader = new java.net.URLClassLoader(here, null);
            java.lang.reflect.Constructor<?> maker = loader.loadClass("Chosen$Maker").getDeclaredConstructor();
            maker.setAccessible(true);
            kept.add(((BiFunction<int[], int[], Object>) maker.newInstance()).apply(MADE, KEPT));
        }
    }

    /** As the options of the Cougaar memory profiler. */
    public static final class Options {
        private final int flags;
        private final double ratio;

        Options(int flags, double ratio) {
            this.flags = flags;
            this.ratio = ratio;
        }

        public int getFlags() {
            return flags;
        }

        public double getSampleRatio() {
            return ratio;
        }
    }

    /** A factory of options: nothing of A, who makes B, and no idea of K. */
    public static final class Config {
        public static final Options getOptions(String module, String name) {
            if (name.equals("Chosen$A")) return null;
            if (name.equals("Chosen$B")) return new Options(16, 1.0);
            if (name.startsWith("Chosen$K")) throw new IllegalStateException("no idea");
            return new Options(31, 1.0);
        }
    }

    /** A factory that never answers. */
    public static final class Sleepy {
        public static final Options getOptions(String module, String name) throws InterruptedException {
            while (true) Thread.sleep(1000);
        }
    }

    static void makeK(int count) {
        for (int i = 0; i < count; i++) kept.add(new K0());
    }

    /** Two virtual threads without a name, one after the other. */
    static void virtual(int count) throws Exception {
        java.lang.reflect.Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        for (int i = 0; i < 2; i++) ((Thread) start.invoke(null, (Runnable) () -> makeA(count))).join();
    }

    static void makeA(int count) {
        for (int i = 0; i < count; i++) kept.add(new A());
    }

    static void makeB(int count) {
        for (int i = 0; i < count; i++) kept.add(new B());
    }

    static int other(int count) {
        int sum = 0;
        for (int i = 0; i < count; i++) sum += new Object().hashCode();
        return sum;
    }

    static void on(String name, Runnable work) throws Exception {
        Thread thread = new Thread(new ThreadGroup("makers"), work, name);
        thread.start();
        thread.join();
    }

    public static void main(String[] arguments) throws Exception {
        Scanner in = new Scanner(System.in);
        System.out.println("ready");
        while (in.hasNextLine()) {
            String[] words = in.nextLine().split(" ");
            int count = words.length > 1 ? Integer.parseInt(words[1]) : 0;
            switch (words[0]) {
                case "a": makeA(count); break;
                case "b": makeB(count); break;
                case "thread": on(words[2], () -> makeA(count)); break;
                case "k": makeK(count); break;
                case "virtual": virtual(count); break;
                case "rounds": rounds(count); break;
                case "other": other(count); break;
                default: break;
            }
            System.out.println("ok");
        }
    }
}
