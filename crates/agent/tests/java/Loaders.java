import java.lang.ref.WeakReference;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.List;

/** Twenty class loaders that each load a class, use it and are dropped: all can go. */
public class Loaders {
    /** What each loader defines for itself; the program's own loader never does. */
    public static class Plugin {
        static final List<Object> MADE = new ArrayList<>();
        public static int use() {
            for (int i = 0; i < 500; i++) MADE.add(new Plugin());
            return MADE.size();
        }
    }

    static WeakReference<ClassLoader> one(URL here) throws Exception {
        try (URLClassLoader loader = new URLClassLoader(new URL[] {here}, null)) {
            Object made = Class.forName("Loaders$Plugin", true, loader).getMethod("use").invoke(null);
            if (!made.equals(500)) throw new AssertionError(made);
            return new WeakReference<>(loader);
        }
    }

    public static void main(String[] args) throws Exception {
        URL here = Loaders.class.getProtectionDomain().getCodeSource().getLocation();
        List<WeakReference<ClassLoader>> loaders = new ArrayList<>();
        for (int i = 0; i < 20; i++) loaders.add(one(here));
        int gone = 0;
        for (int i = 0; i < 100 && gone < 20; i++) {
            System.gc();
            Thread.sleep(20);
            gone = 0;
            for (WeakReference<ClassLoader> loader : loaders) if (loader.get() == null) gone++;
        }
        System.out.println("gone " + gone);
    }
}
