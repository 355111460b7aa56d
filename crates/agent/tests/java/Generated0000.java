/** Defined under many names by ManyClasses, which replaces the digits. */
public class Generated0000 implements java.util.concurrent.Callable<Object> {
    /** Makes one array here and one in each of ten methods. */
    public Object call() {
        return new Object[] {m0(), m1(), m2(), m3(), m4(), m5(), m6(), m7(), m8(), m9()};
    }

    static Object m0() { return new short[1]; }
    static Object m1() { return new short[1]; }
    static Object m2() { return new short[1]; }
    static Object m3() { return new short[1]; }
    static Object m4() { return new short[1]; }
    static Object m5() { return new short[1]; }
    static Object m6() { return new short[1]; }
    static Object m7() { return new short[1]; }
    static Object m8() { return new short[1]; }
    static Object m9() { return new short[1]; }
}
