package java.lang;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;

/**
 * Runs code of the program for the agent, on a thread of the agent's own: what the program's
 * options factory says of a class. Nothing that is thrown there leaves this class; it becomes text.
 *
 * Compiled to Java 8 and kept as HprofAsk.class next to this file; a test compares the two. It is
 * defined in the boot loader when it is first needed.
 */
final class HprofAsk {
    private HprofAsk() {
    }

    /** What getOptions(module, name) of a class says: "off", "FLAGS RATIO", or "!" and what went wrong. */
    static String options(String factory, String module, String name) {
        try {
            Class<?> type = Class.forName(factory, true, ClassLoader.getSystemClassLoader());
            Method get = type.getMethod("getOptions", String.class, String.class);
            get.setAccessible(true);
            Object options = get.invoke(null, module, name);
            if (options == null) {
                return "off";
            }
            Object flags = call(options, "getFlags");
            Object ratio = call(options, "getSampleRatio");
            return ((Number) flags).intValue() + " " + ((Number) ratio).doubleValue();
        } catch (InvocationTargetException e) {
            return "!" + name(e.getCause());
        } catch (Throwable e) {
            return "!" + name(e);
        }
    }

    private static Object call(Object object, String name) throws Exception {
        Method method = object.getClass().getMethod(name);
        method.setAccessible(true);
        return method.invoke(object);
    }

    /** What was thrown, in one line. */
    private static String name(Throwable thrown) {
        if (thrown == null) {
            return "nothing";
        }
        String name = thrown.getClass().getName();
        try {
            String message = thrown.getMessage();
            return message == null ? name : name + ": " + message;
        } catch (Throwable e) {
            return name;
        }
    }
}
