import java.util.ArrayList;
import java.util.List;

/** Objects of every field shape that a layout can get wrong: a thousand of each, or three. */
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

    static class Byte1 {
        byte a;
    }

    static class Byte2 extends Byte1 {
        short b;
        Object c;
    }

    static class Byte3 extends Byte2 {
        double d;
        char e;
        float f;
    }

    static class Byte4 extends Byte3 {
        boolean g;
        Object h;
        int i;
    }

    static class Long1 {
        long a;
        boolean b;
    }

    static class Long2 extends Long1 {
        Object c;
        byte d;
    }

    static class Long3 extends Long2 {
        int e;
    }

    static class Long4 extends Long3 {
        short f;
        long g;
    }

    static class Ref1 {
        Object a;
    }

    static class Ref2 extends Ref1 {
        long b;
    }

    static class Ref3 extends Ref2 {
        int c;
    }

    static class Ref4 extends Ref3 {
        char e;
        long f;
        boolean g;
    }

    /** Below contended fields, until JDK 18. */
    static class Thread1 extends Thread {
        boolean a;
    }

    static class Thread2 extends Thread1 {
        int b;
        long c;
    }

    static class Thread3 extends Thread2 {
        short d;
        Object e;
    }

    static class Thread4 extends Thread {
        long a;
        int b;
    }

    /** Below fields that the VM adds. */
    static class Loader1 extends ClassLoader {
        byte a;
    }

    static class Error1 extends InternalError {
        byte a;
    }

    static class Error2 extends Error1 {
        int b;
        long c;
    }

    static final Class<?>[] THREE = {
        Byte1.class, Byte2.class, Byte3.class, Byte4.class, Long1.class, Long2.class, Long3.class,
        Long4.class, Ref1.class, Ref2.class, Ref3.class, Ref4.class, Thread1.class, Thread2.class,
        Thread3.class, Thread4.class, Loader1.class, Error1.class, Error2.class,
    };

    static final List<Object> ALL = new ArrayList<>();

    public static void main(String[] args) throws ReflectiveOperationException {
        for (int i = 0; i < 3; i++) {
            for (Class<?> c : THREE) {
                ALL.add(c.getDeclaredConstructor().newInstance());
                ALL.add(new byte[i * 5]);
            }
        }
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
