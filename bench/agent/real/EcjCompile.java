import java.io.*;
import java.nio.file.*;
import java.util.stream.Stream;
import java.util.zip.*;
import org.eclipse.jdt.core.compiler.batch.BatchCompiler;

/** Eclipse's compiler compiles the sources of Lucene, which are on the class path. The argument says how often. */
public class EcjCompile {
    public static void main(String[] args) throws IOException {
        Path folder = Files.createTempDirectory("ecj");
        try (ZipInputStream sources = new ZipInputStream(EcjCompile.class.getResourceAsStream("/sources.jar"))) {
            for (ZipEntry entry = sources.getNextEntry(); entry != null; entry = sources.getNextEntry()) {
                if (!entry.getName().endsWith(".java") || entry.getName().equals("module-info.java")) continue;
                Path file = folder.resolve(entry.getName());
                Files.createDirectories(file.getParent());
                Files.copy(sources, file);
            }
        }
        StringWriter out = new StringWriter();
        for (int i = Integer.parseInt(args[0]); i > 0; i--) {
            String[] words = {"-d", "none", "-nowarn", "-proceedOnError", "-source", "11", "-target", "11", "-classpath", "", folder.toString()};
            BatchCompiler.compile(words, new PrintWriter(out), new PrintWriter(out), null);
        }
        System.out.println(out.toString().lines().count() + " lines");
        try (Stream<Path> files = Files.walk(folder)) {
            files.sorted((a, b) -> b.compareTo(a)).forEach(file -> file.toFile().delete());
        }
    }
}
