import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;

/**
 * As many stacks as there are numbers of so many bits, and objects at the end of each, which are kept.
 * Arguments: bits, objects at each. Prints how many there are, and what the process has.
 */
public class ManyPaths {
    static final class Made {
    }

    static final List<Object[]> kept = new ArrayList<>();

    static void left(int path, int more, int objects) {
        step(path, more, objects);
    }

    static void right(int path, int more, int objects) {
        step(path, more, objects);
    }

    static void step(int path, int more, int objects) {
        if (more == 0) {
            end(objects);
        } else if ((path >> more - 1 & 1) == 0) {
            left(path, more - 1, objects);
        } else {
            right(path, more - 1, objects);
        }
    }

    static void end(int objects) {
        Object[] all = new Object[objects];
        for (int i = 0; i < objects; i++) {
            all[i] = new Made();
        }
        kept.add(all);
    }

    public static void main(String[] args) throws Exception {
        int bits = Integer.parseInt(args[0]);
        int objects = Integer.parseInt(args[1]);
        for (int path = 0; path < 1 << bits; path++) {
            step(path, bits, objects);
        }
        System.out.println("made " + kept.size() * objects);
        for (String line : Files.readAllLines(Paths.get("/proc/self/status"))) {
            if (line.startsWith("VmHWM:")) {
                System.out.println("resident " + line.replaceAll("[^0-9]", ""));
            }
        }
    }
}
