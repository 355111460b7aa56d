import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Predicate;
import java.util.regex.Pattern;

import org.eclipse.mat.snapshot.ISnapshot;
import org.eclipse.mat.snapshot.model.IArray;
import org.eclipse.mat.snapshot.model.IClass;
import org.eclipse.mat.snapshot.model.IObject;
import org.eclipse.mat.snapshot.model.IObjectArray;
import org.eclipse.mat.snapshot.model.IPrimitiveArray;

/**
 * The queries of MAT's help on OQL, each by hand as calls of MAT's snapshot. The loader that MAT makes up for the classes of the
 * boot loader is left out; it is object 0, so the numbers of all others are one more than without it.
 */
final class HelpQueries {
    private interface Cells {
        Object[] of(IObject object) throws Exception;
    }

    private interface Test {
        boolean of(IObject object) throws Exception;
    }

    private final Snapshot host;
    private final ISnapshot snapshot;

    HelpQueries(Snapshot host) {
        this.host = host;
        this.snapshot = host.snapshot;
    }

    void all() throws Exception {
        sources();
        columns();
        conditions();
        elements();
    }

    private void sources() throws Exception {
        List<IObject> strings = named("java.lang.String");
        Collection<IClass> references = snapshot.getClassesByName("java.lang.ref.Reference", true);
        say("SELECT * FROM java.lang.String", strings);
        say("SELECT * FROM \"java\\.lang\\..*\"", of(snapshot.getClassesByName(Pattern.compile("java\\.lang\\..*"), false)));
        List<IClass> classes = new ArrayList<>();
        for (IObject object : named("java.lang.Class")) {
            if (object instanceof IClass type) {
                classes.add(type);
            }
        }
        say("SELECT * FROM ( SELECT * FROM java.lang.Class c WHERE c implements org.eclipse.mat.snapshot.model.IClass )", of(classes));
        say("SELECT * FROM ${snapshot}.getClasses()", of(snapshot.getClasses()));
        say("SELECT * FROM INSTANCEOF java.lang.ref.Reference", of(references));
        say("SELECT * FROM ${snapshot}.getClassesByName(\"java.lang.ref.Reference\", true)", of(references));
        say("SELECT * FROM OBJECTS java.lang.String", host.objects(snapshot.getClassesByName("java.lang.String", false).iterator().next().getObjectId()));
        say("SELECT AS RETAINED SET * FROM java.lang.String", host.objects(snapshot.getRetainedSet(ids(strings), host.quiet)));
        say("SELECT DISTINCT * FROM OBJECTS 0,1,1,2", host.objects(1, 2, 3));
        say("SELECT DISTINCT OBJECTS classof(s) FROM java.lang.String s", List.of((IObject) strings.get(0).getClazz()));
        say("SELECT * FROM java.lang.Class c WHERE c IMPLEMENTS org.eclipse.mat.snapshot.model.IClass", new ArrayList<IObject>(classes));
        List<IObject> both = new ArrayList<>(strings);
        both.addAll(named("java.lang.StringBuilder"));
        say("select * from java.lang.String union (select * from java.lang.StringBuilder)", both);
    }

    private void columns() throws Exception {
        List<IObject> strings = named("java.lang.String");
        say("SELECT toString(s), s.count, s.value FROM java.lang.String s", strings,
            s -> new Object[] {text(s), s.resolveValue("count"), s.resolveValue("value")});
        Cells sizes = s -> new Object[] {text(s), s.getUsedHeapSize(), s.getRetainedHeapSize()};
        say("SELECT toString(s), s.@usedHeapSize, s.@retainedHeapSize FROM java.lang.String s", strings, sizes);
        say("SELECT toString(s) AS Value, s.@usedHeapSize AS \"Shallow Size\", s.@retainedHeapSize AS \"Retained Size\" FROM java.lang.String s",
            strings, sizes);
        List<IObject> dominated = new ArrayList<>();
        for (IObject s : strings) {
            dominated.addAll(host.objects(snapshot.getImmediateDominatedIds(s.getObjectId())));
        }
        say("SELECT OBJECTS dominators(s) FROM java.lang.String s", dominated);
        say("SELECT s.@objectId, s.@objectId * 2, \"The object ID is \"+@objectId FROM OBJECTS 0,1,1,2 s", host.objects(1, 2, 2, 3),
            s -> new Object[] {s.getObjectId() - 1, (s.getObjectId() - 1) * 2, "The object ID is " + (s.getObjectId() - 1)});
        List<String> rows = rows(strings, s -> new Object[] {s, s.resolveValue("value"), s.resolveValue("hash")});
        rows.addAll(rows(named("java.lang.StringBuilder"), b -> new Object[] {b, b.resolveValue("value"), "dummy"}));
        host.say("SELECT s, s.value, s.hash FROM java.lang.String s UNION (SELECT b, b.value, \"dummy\" FROM java.lang.StringBuilder b )", rows);
    }

    private void conditions() throws Exception {
        where("s.count >= 100", s -> count(s) >= 100);
        where("toString(s) LIKE \".*day\"", s -> text(s).matches(".*day"));
        where("s.value NOT IN dominators(s)", s -> s.resolveValue("value") instanceof IObject value
            && Arrays.stream(snapshot.getImmediateDominatedIds(s.getObjectId())).noneMatch(id -> id == value.getObjectId()));
        where("toString(s) = \"monday\"", s -> text(s).equals("monday"));
        where("s.count > 100 AND s.@retainedHeapSize > s.@usedHeapSize", s -> count(s) > 100 && s.getRetainedHeapSize() > s.getUsedHeapSize());
        // Unguarded, as it stands in the help, it fails on the string without characters that the sample has.
        where("s.count > 1000 OR s.value != null AND s.value.@length > 1000",
            s -> count(s) > 1000 || s.resolveValue("value") instanceof IArray value && value.getLength() > 1000);
        where("( s.count > 1000 ) = true", s -> count(s) > 1000);
        where("dominators(s).size() = 0", s -> snapshot.getImmediateDominatedIds(s.getObjectId()).length == 0);
        where("s.@retainedHeapSize > 1024L", s -> s.getRetainedHeapSize() > 1024);
        where("s.value != null AND s.value.@valueArray.@length >= 1 AND s.value.@valueArray.get(0) = 'j'",
            s -> s.resolveValue("value") instanceof IPrimitiveArray a && a.getLength() >= 1 && a.getValueAt(0).equals('j'));
        where("s.@GCRootInfo != null", s -> s.getGCRootInfo() != null);
    }

    private void elements() throws Exception {
        Predicate<IObject> longer = a -> ((IArray) a).getLength() > 2;
        List<IObject> ints = named("int[]").stream().filter(longer).toList();
        List<IObject> arrays = named("java.lang.Object[]").stream().filter(longer).toList();
        say("SELECT s.getValueAt(2) FROM int[] s WHERE (s.@length > 2)", ints, a -> new Object[] {((IPrimitiveArray) a).getValueAt(2)});
        List<IObject> third = new ArrayList<>();
        Set<Long> known = new HashSet<>();
        for (int id = 0; id < snapshot.getSnapshotInfo().getNumberOfObjects(); id++) {
            known.add(snapshot.mapIdToAddress(id));
        }
        for (IObject a : arrays) {
            long address = ((IObjectArray) a).getReferenceArray(2, 1)[0];
            // Some arrays name what is not in the dump.
            if (address != 0 && known.contains(address)) {
                third.add(snapshot.getObject(snapshot.mapAddressToId(address)));
            }
        }
        say("SELECT OBJECTS s.@referenceArray.get(2) FROM java.lang.Object[] s WHERE (s.@length > 2)", third);
        say("SELECT OBJECTS s.getReferenceArray(2,1) FROM java.lang.Object[] s WHERE (s.@length > 2)", third);
    }

    private void where(String condition, Test test) throws Exception {
        List<IObject> found = new ArrayList<>();
        for (IObject object : named("java.lang.String")) {
            if (test.of(object)) {
                found.add(object);
            }
        }
        say("SELECT * FROM java.lang.String s WHERE " + condition, found);
    }

    private List<IObject> named(String name) throws Exception {
        return of(snapshot.getClassesByName(name, false));
    }

    private List<IObject> of(Collection<IClass> classes) throws Exception {
        return host.objects(Arrays.stream(Snapshot.joined(classes)).filter(id -> !host.madeUp(id)).toArray());
    }

    private static int[] ids(List<IObject> objects) {
        return objects.stream().mapToInt(IObject::getObjectId).toArray();
    }

    private static int count(IObject string) throws Exception {
        return (Integer) string.resolveValue("count");
    }

    /** As OQL's toString. */
    private static String text(IObject object) {
        String name = object.getClassSpecificName();
        return name == null ? "" : name;
    }

    private void say(String query, List<IObject> objects) throws Exception {
        say(query, objects, o -> new Object[] {o});
    }

    private void say(String query, List<IObject> objects, Cells cells) throws Exception {
        host.say(query, rows(objects, cells));
    }

    private List<String> rows(List<IObject> objects, Cells cells) throws Exception {
        List<String> rows = new ArrayList<>();
        for (IObject object : objects) {
            List<String> row = new ArrayList<>();
            for (Object cell : cells.of(object)) {
                row.add(cell instanceof IObject o ? host.address(o.getObjectId()) : cell == null ? "null" : cell.toString());
            }
            rows.add(String.join(" | ", row));
        }
        return rows;
    }
}
