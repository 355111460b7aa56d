import org.python.util.PythonInterpreter;

/** Jython runs a script with numbers, dictionaries, classes and sorting. The argument says how many rounds. */
public class JythonRun {
    private static final String SCRIPT = String.join("\n",
        "class Body(object):",
        "    def __init__(self, x, v, m):",
        "        self.x, self.v, self.m = x, v, m",
        "    def step(self, others, dt):",
        "        for o in others:",
        "            if o is not self:",
        "                d = o.x - self.x",
        "                self.v += dt * o.m * d / (abs(d) ** 3 + 0.01)",
        "        self.x += self.v * dt",
        "def bodies(n):",
        "    all = [Body(float(i), 0.1 * i, 1.0 + i % 3) for i in range(12)]",
        "    for i in range(n):",
        "        for b in all: b.step(all, 0.001)",
        "    return sum(b.x for b in all)",
        "def words(n):",
        "    counts = {}",
        "    for i in range(n):",
        "        w = 'w%d' % (i * i % 977)",
        "        counts[w] = counts.get(w, 0) + 1",
        "    return sorted(counts.items(), key=lambda p: (-p[1], p[0]))[:5]",
        "for r in range(rounds):",
        "    bodies(150)",
        "    words(20000)",
        "print(words(1000)[0])");

    public static void main(String[] args) {
        try (PythonInterpreter python = new PythonInterpreter()) {
            python.set("rounds", Integer.parseInt(args[0]));
            python.exec(SCRIPT);
        }
    }
}
