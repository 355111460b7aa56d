import com.sun.source.tree.CompilationUnitTree;
import com.sun.source.util.JavacTask;
import java.io.Writer;
import java.nio.file.*;
import java.util.*;
import java.util.zip.*;
import javax.lang.model.element.Element;
import javax.tools.*;

/**
 * The heap of a compiler at work: javac in this process parses and attributes the sources of one module
 * (java.base unless told otherwise) and keeps every tree, symbol and type alive; then the VM dumps it.
 * Hundreds of node classes, about four references per object, deep and heavily shared.
 *
 * Usage: java JavacHeap SRC.zip OUT.hprof [module]
 */
public class JavacHeap {
    static List<CompilationUnitTree> trees = new ArrayList<>();
    static List<Element> symbols = new ArrayList<>();
    static JavacTask task;

    public static void main(String[] args) throws Exception {
        String module = args.length > 2 ? args[2] : "java.base";
        Path root = Files.createTempDirectory("javac-heap");
        List<Path> files;
        try {
            files = unpack(Path.of(args[0]), module, root);
            JavaCompiler javac = ToolProvider.getSystemJavaCompiler();
            StandardJavaFileManager fm = javac.getStandardFileManager(null, null, null);
            int[] errors = {0};
            Files.createDirectories(root.resolve("out"));
            task = (JavacTask) javac.getTask(Writer.nullWriter(), fm, d -> { if (d.getKind() == Diagnostic.Kind.ERROR && errors[0]++ == 0) System.out.println(d); },
                List.of("--module-source-path", root.toString(), "-d", root.resolve("out").toString(), "-proc:none", "-nowarn"), null,
                fm.getJavaFileObjectsFromPaths(files));
            task.parse().forEach(trees::add);
            task.analyze().forEach(symbols::add);
            System.out.printf("%d files, %d top-level and nested types, %d errors%n", trees.size(), symbols.size(), errors[0]);
            Dump.dump(args[1]);
        } finally {
            try (var all = Files.walk(root)) { all.sorted(Comparator.reverseOrder()).forEach(p -> p.toFile().delete()); }
        }
    }

    /** Every Java file of the module, in the order of their names: the same heap shape on every run. */
    static List<Path> unpack(Path zip, String module, Path root) throws Exception {
        List<Path> files = new ArrayList<>();
        try (ZipFile z = new ZipFile(zip.toFile())) {
            for (ZipEntry e : Collections.list(z.entries())) {
                if (!e.getName().startsWith(module + "/") || !e.getName().endsWith(".java")) continue;
                Path to = root.resolve(e.getName());
                Files.createDirectories(to.getParent());
                Files.copy(z.getInputStream(e), to);
                files.add(to);
            }
        }
        Collections.sort(files);
        return files;
    }
}
