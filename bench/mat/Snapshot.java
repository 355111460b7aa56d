import java.io.File;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

import org.eclipse.mat.parser.internal.SnapshotFactory;
import org.eclipse.mat.snapshot.ISnapshot;
import org.eclipse.mat.snapshot.SnapshotInfo;
import org.eclipse.mat.snapshot.model.IClass;
import org.eclipse.mat.snapshot.model.IObject;
import org.eclipse.mat.util.VoidProgressListener;

/**
 * What Eclipse MAT's own parser and snapshot say of a dump: a line for each aspect, with how many rows it has, the digest of the
 * sorted rows (FNV-1a, a line each) and its name. With a folder as the second argument the rows themselves are written there, to
 * find out where two tools differ. `bench/mat.py` gets the library, compiles and runs this.
 */
public final class Snapshot {
    final ISnapshot snapshot;
    final VoidProgressListener quiet = new VoidProgressListener();
    private final Path rows;
    private final PrintStream out;

    Snapshot(File dump, Path rows, PrintStream out) throws Exception {
        this.snapshot = new SnapshotFactory().openSnapshot(dump, new HashMap<>(), quiet);
        this.rows = rows;
        this.out = out;
    }

    public static void main(String[] args) throws Exception {
        Path rows = args.length > 2 ? Path.of(args[2]) : null;
        // The library prints what it thinks of the dump.
        PrintStream out = new PrintStream(System.out, true, "UTF-8");
        System.setOut(System.err);
        Snapshot snapshot = new Snapshot(new File(args[1]), rows, out);
        switch (args[0]) {
            case "aspects" -> snapshot.aspects();
            case "queries" -> new HelpQueries(snapshot).all();
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    /** Writes the line of an aspect. */
    void say(String name, List<String> lines) throws Exception {
        Collections.sort(lines);
        long digest = 0xcbf29ce484222325L;
        for (String line : lines) {
            for (byte b : (line + "\n").getBytes(StandardCharsets.UTF_8)) {
                digest = (digest ^ (b & 0xff)) * 0x100000001b3L;
            }
        }
        out.printf("%d\t%016x\t%s%n", lines.size(), digest, name);
        if (rows != null) {
            Files.createDirectories(rows);
            String file = name.replaceAll("[^A-Za-z0-9]+", " ").strip().replace(' ', '_');
            Files.write(rows.resolve(file.substring(0, Math.min(80, file.length()))), lines);
        }
    }

    String address(int object) throws Exception {
        return "0x" + Long.toHexString(snapshot.mapIdToAddress(object));
    }

    private void aspects() throws Exception {
        SnapshotInfo info = snapshot.getSnapshotInfo();
        List<String> objects = new ArrayList<>(), sizes = new ArrayList<>(), dominators = new ArrayList<>(), out = new ArrayList<>();
        List<String> in = new ArrayList<>(), paths = new ArrayList<>(), roots = new ArrayList<>();
        for (int id = 0; id < info.getNumberOfObjects(); id++) {
            if (madeUp(id)) {
                continue;
            }
            String here = address(id);
            objects.add(here + " " + snapshot.getClassOf(id).getName());
            sizes.add(here + " " + snapshot.getHeapSize(id) + " " + snapshot.getRetainedHeapSize(id));
            int dominator = snapshot.getImmediateDominatorId(id);
            dominators.add(here + " " + (dominator < 0 ? "none" : address(dominator)));
            out.add(here + " " + others(id, snapshot.getOutboundReferentIds(id)));
            in.add(here + " " + others(id, snapshot.getInboundRefererIds(id)));
            if (objects.size() % 101 == 0) {
                int[] path = snapshot.getPathsFromGCRoots(id, Map.of()).getNextShortestPath();
                paths.add(here + " " + (path == null ? "none" : "" + path.length));
            }
        }
        for (int root : snapshot.getGCRoots()) {
            if (!madeUp(root)) {
                roots.add(address(root));
            }
        }
        say("objects", objects);
        say("roots", roots);
        say("outbound", out);
        say("inbound", in);
        say("dominators", dominators);
        say("paths", paths);
        boolean sized = info.getIdentifierSize() == 4;
        if (sized) {
            say("sizes", sizes);
        }
        classes(sized);
    }

    /** With ids of 8 bytes this age of MAT knew no compressed references, and had another header for arrays: no sizes then. */
    private void classes(boolean sized) throws Exception {
        List<String> classes = new ArrayList<>(), fields = new ArrayList<>(), sizes = new ArrayList<>(), sets = new ArrayList<>();
        for (IClass type : snapshot.getClasses()) {
            int[] ids = Arrays.stream(type.getObjectIds()).filter(id -> !madeUp(id)).toArray();
            String here = address(type.getObjectId());
            String above = type.hasSuperClass() ? address(type.getSuperClassId()) : "none";
            String loader = Long.toHexString(type.getClassLoaderAddress());
            classes.add(here + " " + type.getName() + " " + ids.length + " " + above + " 0x" + loader);
            for (var field : type.getFieldDescriptors()) {
                fields.add(here + " " + field.getName());
            }
            for (var field : type.getStaticFields()) {
                fields.add(here + " static " + field.getName());
            }
            if (ids.length > 0) {
                sizes.add(here + " " + snapshot.getHeapSize(ids) + " " + snapshot.getMinRetainedSize(ids, quiet));
                if (type.getObjectAddress() / 8 % 16 == 0) {
                    int[] set = snapshot.getRetainedSet(ids, quiet);
                    sets.add(here + " " + Arrays.stream(set).filter(id -> !madeUp(id)).count());
                }
            }
        }
        say("classes", classes);
        say("fields", fields);
        say("retained sets of some classes", sets);
        if (sized) {
            say("sizes of classes", sizes);
        }
    }

    /** The loader that MAT makes up for the classes of the boot loader; its address is 0. */
    boolean madeUp(int id) {
        try {
            return snapshot.mapIdToAddress(id) == 0;
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private String others(int self, int[] ids) throws Exception {
        Set<String> addresses = new TreeSet<>();
        for (int id : ids) {
            if (id != self && !madeUp(id)) {
                addresses.add(address(id));
            }
        }
        return String.join(",", addresses);
    }

    List<IObject> objects(int... ids) throws Exception {
        List<IObject> found = new ArrayList<>();
        for (int id : ids) {
            found.add(snapshot.getObject(id));
        }
        return found;
    }

    static int[] ints(List<Integer> list) {
        return list.stream().mapToInt(Integer::intValue).toArray();
    }

    static int[] joined(Iterable<IClass> classes) throws Exception {
        int[] all = {};
        for (IClass type : classes) {
            int[] more = type.getObjectIds();
            int[] both = Arrays.copyOf(all, all.length + more.length);
            System.arraycopy(more, 0, both, all.length, more.length);
            all = both;
        }
        return all;
    }
}
