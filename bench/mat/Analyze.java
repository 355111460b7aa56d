import java.io.File;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

import org.eclipse.mat.parser.internal.SnapshotFactory;
import org.eclipse.mat.snapshot.ISnapshot;
import org.eclipse.mat.snapshot.model.IClass;
import org.eclipse.mat.snapshot.model.IObject;
import org.eclipse.mat.util.VoidProgressListener;

/**
 * The first analysis of Eclipse MAT: parses a dump, writes the indexes beside it (with the dominator tree and retained sizes), or
 * opens those that are there, and prints the largest classes and the largest objects at the top of the dominator tree. This is less
 * than a report of leak suspects. `bench/mat.py --peer` makes a program of it for `bench/run.py`.
 */
public final class Analyze {
    private static final int ROWS = 20;

    public static void main(String[] args) throws Exception {
        VoidProgressListener quiet = new VoidProgressListener();
        ISnapshot snapshot = new SnapshotFactory().openSnapshot(new File(args[0]), new HashMap<>(), quiet);
        System.out.printf("%,d objects, %,d bytes%n", snapshot.getSnapshotInfo().getNumberOfObjects(), snapshot.getSnapshotInfo().getUsedHeapSize());
        Map<IClass, Long> bytes = new HashMap<>();
        for (IClass type : snapshot.getClasses()) {
            bytes.put(type, snapshot.getHeapSize(type.getObjectIds()));
        }
        bytes.entrySet().stream().sorted(Map.Entry.<IClass, Long>comparingByValue().reversed()).limit(ROWS).forEach(row ->
            System.out.printf("%,14d %,16d %s%n", row.getKey().getNumberOfObjects(), row.getValue(), row.getKey().getName()));
        // MAT keeps the children of the virtual root sorted by retained size, the largest first.
        for (int id : Arrays.copyOf(snapshot.getImmediateDominatedIds(-1), ROWS)) {
            IObject object = snapshot.getObject(id);
            System.out.printf("%,16d %s%n", snapshot.getRetainedHeapSize(id), object.getTechnicalName());
        }
        snapshot.dispose();
    }
}
