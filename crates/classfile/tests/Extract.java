import java.net.URI;
import java.nio.file.*;

/** Copies the class files of one module of this JDK into a folder. */
public class Extract {
    public static void main(String[] a) throws Exception {
        Path root = FileSystems.getFileSystem(URI.create("jrt:/")).getPath("/modules", a[0]);
        Path to = Paths.get(a[1]);
        try (var files = Files.walk(root)) {
            for (Path p : (Iterable<Path>) files::iterator) {
                if (!p.toString().endsWith(".class")) continue;
                Path out = to.resolve(root.relativize(p).toString());
                Files.createDirectories(out.getParent());
                Files.write(out, Files.readAllBytes(p));
            }
        }
    }
}
