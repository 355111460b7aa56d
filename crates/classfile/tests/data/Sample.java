import java.lang.annotation.*;

/** Every shape of code the patcher moves, in one small class. */
public class Sample {
    @Retention(RetentionPolicy.RUNTIME) @Target({ElementType.TYPE_USE}) @interface A { String[] value() default {}; }
    static int choose(int n) {
        switch (n) { case 1: return 1; case 2: return 4; case 3: return 9; case 1000: return 5; default: }
        switch (n) { case -100000: return 7; case 5: return 25; case 100000: return 3; }
        return 0;
    }
    static Object make(int n, long wide, double d) {
        @A({"x", "y"}) Object made = null;
        for (int i = 0; i < n; i++) {
            try { made = new @A int[i][2][]; Object[] more = new String[i]; made = more.length > wide ? more : made; }
            catch (NegativeArraySizeException | ClassCastException e) { made = (@A Object) e; }
            finally { d += i; }
        }
        return d > 0 ? made : new Sample();
    }
    synchronized void lambda(Runnable r) { Runnable s = () -> r.run(); s.run(); }
}
