import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.lang.invoke.MethodHandles;
import java.util.concurrent.Callable;

/**
 * Defines many classes, calls each once and lets go of them. Arguments: hidden N; loaders N (each
 * with 100 classes of the same names); kept N (the same, let go of all at once, and then threads
 * come and go); methods N (as many methods, of classes with other names).
 */
public class ManyClasses {
    static final class Loader extends ClassLoader {
        Loader() {
            super(ManyClasses.class.getClassLoader());
        }

        Class<?> define(byte[] template, int number) {
            byte[] bytes = named(template, number);
            return defineClass(String.format("Generated%04d", number), bytes, 0, bytes.length);
        }
    }

    static volatile Object last;

    static byte[] template() throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (InputStream in = ManyClasses.class.getResourceAsStream("Generated0000.class")) {
            for (int b; (b = in.read()) >= 0; ) {
                bytes.write(b);
            }
        }
        return bytes.toByteArray();
    }

    /** The class under another name. */
    static byte[] named(byte[] template, int number) {
        byte[] bytes = template.clone();
        String old = "Generated0000";
        for (int at = 0; at + old.length() <= bytes.length; at++) {
            boolean same = true;
            for (int i = 0; same && i < old.length(); i++) {
                same = bytes[at + i] == old.charAt(i);
            }
            for (int digit = 3, rest = number; same && digit >= 0; digit--, rest /= 10) {
                bytes[at + 9 + digit] = (byte) ('0' + rest % 10);
            }
        }
        return bytes;
    }

    static void call(Class<?> type) throws Exception {
        last = ((Callable<?>) type.getDeclaredConstructor().newInstance()).call();
    }

    /** MethodHandles.Lookup.defineHiddenClass, which is there from JDK 15 on. */
    static Class<?> hidden(byte[] bytes) throws Exception {
        Class<?> options = Class.forName("[Ljava.lang.invoke.MethodHandles$Lookup$ClassOption;");
        Object none = java.lang.reflect.Array.newInstance(options.getComponentType(), 0);
        Object made = MethodHandles.Lookup.class
            .getMethod("defineHiddenClass", byte[].class, boolean.class, options)
            .invoke(MethodHandles.lookup(), bytes, true, none);
        return ((MethodHandles.Lookup) made).lookupClass();
    }

    public static void main(String[] args) throws Exception {
        int count = Integer.parseInt(args[1]);
        byte[] template = template();
        int called = 0;
        switch (args[0]) {
            case "hidden":
                for (; called < count; called++) {
                    call(hidden(template));
                }
                break;
            case "loaders":
                for (int i = 0; i < count; i++) {
                    Loader loader = new Loader();
                    for (int k = 0; k < 100; k++, called++) {
                        call(loader.define(template, k));
                    }
                }
                break;
            case "kept":
                Loader[] kept = new Loader[count];
                for (int i = 0; i < count; i++) {
                    kept[i] = new Loader();
                    for (int k = 0; k < 100; k++, called++) {
                        call(kept[i].define(template, k));
                    }
                }
                kept = null;
                last = null;
                System.gc();
                for (int i = 0; i < 100; i++) {
                    Thread thread = new Thread(() -> last = new byte[16]);
                    thread.start();
                    thread.join();
                }
                break;
            default:
                Loader loader = new Loader();
                for (; called < count / 10; called++) {
                    call(loader.define(template, called));
                }
        }
        last = null;
        System.gc();
        Runtime runtime = Runtime.getRuntime();
        System.out.println("heap " + (runtime.totalMemory() - runtime.freeMemory() >> 10));
        System.out.println("called " + called);
    }
}
