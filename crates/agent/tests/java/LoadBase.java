import java.net.URI;
import java.nio.file.*;
import java.util.*;

/** Loads and links all classes of java.base; prints failures and how many there were. */
public class LoadBase {
    public static void main(String[] args) throws Exception {
        Path root = FileSystems.getFileSystem(URI.create("jrt:/")).getPath("/modules/java.base");
        List<String> names = new ArrayList<>();
        try (java.util.stream.Stream<Path> files = Files.walk(root)) {
            files.map(p -> root.relativize(p).toString()).filter(n -> n.endsWith(".class") && !n.equals("module-info.class"))
                .forEach(n -> names.add(n.substring(0, n.length() - 6).replace('/', '.')));
        }
        int bad = 0;
        for (String name : names) {
            try { Class.forName(name, false, null).getDeclaredMethods(); }
            catch (NoClassDefFoundError | ClassNotFoundException e) { /* another module is not there */ }
            catch (LinkageError e) { System.out.println(name + ": " + e); bad++; }
        }
        System.out.println(names.size() + " classes, failed " + bad);
    }
}
