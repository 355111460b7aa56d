/** Classes are loaded and initialized, and lambdas linked, with no call between them. */
public class Upcalls {
    static int ticks;
    static Object last;

    static void tick() {
        ticks++;
    }

    static Object made(Object what) {
        last = new Made();
        return what;
    }

    static class Made {}

    static class New0 { static final Object KEPT = made("new"); static int used() { return 1; } }
    static class Static0 { static int number = made("static").hashCode(); }
    static class New1 { static final Object KEPT = made("new"); static int used() { return 1; } }
    static class Static1 { static int number = made("static").hashCode(); }
    static class New2 { static final Object KEPT = made("new"); static int used() { return 1; } }
    static class Static2 { static int number = made("static").hashCode(); }
    static class New3 { static final Object KEPT = made("new"); static int used() { return 1; } }
    static class Static3 { static int number = made("static").hashCode(); }
    static class New4 { static final Object KEPT = made("new"); static int used() { return 1; } }
    static class Static4 { static int number = made("static").hashCode(); }
    static class New5 { static final Object KEPT = made("new"); static int used() { return 1; } }
    static class Static5 { static int number = made("static").hashCode(); }
    static class New6 { static final Object KEPT = made("new"); static int used() { return 1; } }
    static class Static6 { static int number = made("static").hashCode(); }
    static class New7 { static final Object KEPT = made("new"); static int used() { return 1; } }
    static class Static7 { static int number = made("static").hashCode(); }
    static class New8 { static final Object KEPT = made("new"); static int used() { return 1; } }
    static class Static8 { static int number = made("static").hashCode(); }
    static class New9 { static final Object KEPT = made("new"); static int used() { return 1; } }
    static class Static9 { static int number = made("static").hashCode(); }
    static class New10 { static final Object KEPT = made("new"); static int used() { return 1; } }
    static class Static10 { static int number = made("static").hashCode(); }
    static class New11 { static final Object KEPT = made("new"); static int used() { return 1; } }
    static class Static11 { static int number = made("static").hashCode(); }

    static void load() {
        tick();
        new New0();
        new New1();
        new New2();
        new New3();
        new New4();
        new New5();
        new New6();
        new New7();
        new New8();
        new New9();
        new New10();
        new New11();
        tick();
        ticks += Static0.number & 1;
        ticks += Static1.number & 1;
        ticks += Static2.number & 1;
        ticks += Static3.number & 1;
        ticks += Static4.number & 1;
        ticks += Static5.number & 1;
        ticks += Static6.number & 1;
        ticks += Static7.number & 1;
        ticks += Static8.number & 1;
        ticks += Static9.number & 1;
        ticks += Static10.number & 1;
        ticks += Static11.number & 1;
        Runnable run;
        run = () -> ticks += 0;
        run = () -> ticks += 1;
        run = () -> ticks += 2;
        run = () -> ticks += 3;
        // Loaded and linked by the call itself, which has the context that it left.
        for (int i = 0; i < 3; i++) {
            call();
        }
    }

    static class Late {
        static final Object KEPT = made("late");

        static Object call() {
            return made(new Made());
        }
    }

    static void call() {
        Late.call();
    }

    /** As deep arrays need as many calls to be counted, which are no part of the stack. */
    static Object deep() {
        return new short[2][2][2][2][2][2][2];
    }

    static void deeper() {
        last = deep();
    }

    public static void main(String[] args) {
        load();
        deeper();
        System.out.println("done");
    }
}
