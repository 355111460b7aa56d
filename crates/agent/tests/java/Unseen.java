import java.io.*;
import java.lang.invoke.*;
import java.lang.reflect.*;

/** Objects that the original agent did not see being made, so many of each. */
public class Unseen {
    static class Raw { int value; }
    static class Built { int value = 1; }
    static class Reflected { Reflected() { } }
    static class Handled { Handled() { } }
    static class Unborn { Unborn() { throw new Error("never run"); } }
    static class Sent implements Serializable { int value = 3; }
    static class Cloned implements Cloneable { Object twin() throws Exception { return clone(); } }
    static class Planned extends RuntimeException { }
    abstract static class Abstract { }

    static native void allocate(Class<?> of, int count);
    static native void construct(Class<?> of, int count);
    static native void arrays(int count);
    static native void strings(int count);
    static native boolean refused(Class<?> of);

    static void clones() throws Exception {
        Cloned one = new Cloned();
        for (int i = 0; i < 30; i++) one.twin();
        long[] array = new long[9];
        String[][] nested = new String[2][3];
        for (int i = 0; i < 31; i++) { array = array.clone(); nested = nested.clone(); }
    }

    static void nested() {
        for (int i = 0; i < 12; i++) {
            Object made = new short[2][3][4];
            made = Array.newInstance(float.class, 2, 5);
            made = Array.newInstance(Raw.class, 7);
        }
    }

    static void reflected() throws Exception {
        Constructor<?> constructor = Reflected.class.getDeclaredConstructor();
        for (int i = 0; i < 50; i++) constructor.newInstance();
    }

    static void handled() throws Throwable {
        MethodType none = MethodType.methodType(void.class);
        MethodHandle handle = MethodHandles.lookup().findConstructor(Handled.class, none);
        for (int i = 0; i < 40; i++) { Handled one = (Handled) handle.invokeExact(); }
    }

    static void unborn() throws Exception {
        Class<?> unsafe = Class.forName("sun.misc.Unsafe");
        Field one = unsafe.getDeclaredField("theUnsafe");
        one.setAccessible(true);
        Method make = unsafe.getMethod("allocateInstance", Class.class);
        for (int i = 0; i < 25; i++) make.invoke(one.get(null), Unborn.class);
    }

    static void sent() throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) { out.writeObject(new Sent()); }
        for (int i = 0; i < 20; i++) new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray())).readObject();
    }

    /** Exceptions that the VM itself makes. */
    static int thrown(int zero) {
        int count = 0;
        for (int i = 0; i < 15; i++) try { count += 1 / zero; } catch (ArithmeticException e) { count++; }
        return count;
    }

    public static void main(String[] args) throws Throwable {
        System.load(args[0]);
        clones();
        nested();
        reflected();
        handled();
        unborn();
        sent();
        allocate(Raw.class, 100);
        construct(Built.class, 90);
        arrays(80);
        strings(70);
        System.out.println("thrown " + thrown(0) + " refused " + refused(Abstract.class));
    }
}
