import java.util.ArrayList;
import java.util.List;

/** Objects of every field shape that a layout can get wrong, a thousand of each. */
public final class Shapes {
    static class Empty {}

    static class OneByte {
        byte a;
    }

    static class OneRef {
        Object a;
    }

    static class LongFirst {
        long a;
        int b;
    }

    static class Mixed {
        boolean a;
        Object b;
        double c;
        short d;
        Object e;
    }

    static class Below extends Mixed {
        byte f;
        long g;
    }

    static class TailGap extends OneByte {
        int b;
        Object c;
    }

    static final List<Object> ALL = new ArrayList<>();

    public static void main(String[] args) {
        for (int i = 0; i < 1000; i++) {
            ALL.add(new Empty());
            ALL.add(new OneByte());
            ALL.add(new OneRef());
            ALL.add(new LongFirst());
            ALL.add(new Mixed());
            ALL.add(new Below());
            ALL.add(new TailGap());
            ALL.add(new boolean[i % 9]);
            ALL.add(new char[i % 9][]);
            ALL.add(new double[i % 9]);
            ALL.add(new Empty[i % 5]);
        }
        System.out.println("held " + ALL.size());
    }
}
