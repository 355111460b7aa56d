import java.nio.file.*;
import java.util.stream.Stream;
import org.jetbrains.kotlin.cli.jvm.K2JVMCompiler;

/** Kotlin's compiler compiles generated classes, lambdas and when-expressions. The argument says how many files. */
public class KotlinCompile {
    public static void main(String[] args) throws Exception {
        Path folder = Files.createTempDirectory("kotlin");
        int files = Integer.parseInt(args[0]);
        for (int i = 0; i < files; i++) {
            String text = "package p" + i + "\n"
                + "sealed interface Shape { val name: String }\n"
                + "data class Circle(val r: Double, override val name: String = \"circle\") : Shape\n"
                + "data class Box(val w: Double, val h: Double, override val name: String = \"box\") : Shape\n"
                + "fun area(s: Shape) = when (s) { is Circle -> s.r * s.r * 3.14159; is Box -> s.w * s.h }\n"
                + "class Store<T : Comparable<T>>(private val items: MutableList<T> = mutableListOf()) {\n"
                + "  fun add(item: T) = apply { items += item }\n"
                + "  fun top(n: Int) = items.sortedDescending().take(n).mapIndexed { i, it -> \"$i: $it\" }\n"
                + "  inline fun <R> each(f: (T) -> R): List<R> = all().map { f(it) }\n"
                + "  fun all() = items.toList()\n}\n"
                + "fun run" + i + "(n: Int): Map<String, List<Double>> = (1..n).map { if (it % 2 == 0) Circle(it.toDouble()) else Box(it.toDouble(), 2.0) }\n"
                + "  .groupBy({ it.name }, { area(it) }).mapValues { (_, v) -> v.filter { it > 1.0 } }\n"
                + "fun main() { println(run" + i + "(10)); println(Store<Int>().add(3).add(4).top(1).joinToString { it.uppercase() }) }\n";
            Files.writeString(folder.resolve("File" + i + ".kt"), text);
        }
        Path out = folder.resolve("out");
        // The library is where the class path has it.
        String[] words = {"-no-reflect", "-nowarn", "-no-stdlib", "-classpath", System.getProperty("java.class.path"), "-d", out.toString(), folder.toString()};
        System.out.println(new K2JVMCompiler().exec(System.err, words));
        try (Stream<Path> all = Files.walk(folder)) {
            all.sorted((a, b) -> b.compareTo(a)).forEach(file -> file.toFile().delete());
        }
    }
}
