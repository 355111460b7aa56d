import java.io.File;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Future;
import java.util.function.Function;
import org.openjdk.jmc.common.IMCThread;
import org.openjdk.jmc.common.item.IAccessorKey;
import org.openjdk.jmc.common.item.IAttribute;
import org.openjdk.jmc.common.item.IItem;
import org.openjdk.jmc.common.item.IItemCollection;
import org.openjdk.jmc.common.item.IItemIterable;
import org.openjdk.jmc.common.item.IMemberAccessor;
import org.openjdk.jmc.common.item.IType;
import org.openjdk.jmc.common.item.ItemFilters;
import org.openjdk.jmc.common.unit.IQuantity;
import org.openjdk.jmc.common.unit.UnitLookup;
import org.openjdk.jmc.flightrecorder.JfrAttributes;
import org.openjdk.jmc.flightrecorder.JfrLoaderToolkit;
import org.openjdk.jmc.flightrecorder.jdk.JdkAggregators;
import org.openjdk.jmc.flightrecorder.jdk.JdkAttributes;
import org.openjdk.jmc.flightrecorder.rules.IResult;
import org.openjdk.jmc.flightrecorder.rules.IRule;
import org.openjdk.jmc.flightrecorder.rules.ResultToolkit;
import org.openjdk.jmc.flightrecorder.rules.RuleRegistry;
import org.openjdk.jmc.flightrecorder.rules.util.RulesToolkit;

/**
 * What JDK Mission Control reads in a recording, as lines of fields with tabs between them: its own loader, attributes,
 * aggregators and rules, without its windows. {@code bench/jmc.py} compares it with what Tenure says.
 */
public class Jmc {
    static final String ALLOCATION = "jdk.ObjectAllocationSample", OLD = "jdk.OldObjectSample";
    static final String NATIVE = "tenure.NativeAllocation";

    public static void main(String[] files) throws Exception {
        IItemCollection items = JfrLoaderToolkit.loadEvents(new File(files[0]));
        types(items);
        IItemCollection allocated = items.apply(ItemFilters.type(ALLOCATION));
        IQuantity all = allocated.getAggregate(JdkAggregators.OBJ_ALLOC_TOTAL_SUM);
        say("allocated", "", all == null ? 0 : bytes(all));
        sums("class", allocated, JdkAttributes.ALLOCATION_CLASS, type -> type.getFullName(), JdkAttributes.SAMPLE_WEIGHT);
        sums("method", allocated, JdkAttributes.STACK_TRACE_TOP_METHOD, Jmc::method, JdkAttributes.SAMPLE_WEIGHT);
        sums("package", allocated, JdkAttributes.STACK_TRACE_TOP_PACKAGE, name -> name, JdkAttributes.SAMPLE_WEIGHT);
        sums("thread", allocated, JfrAttributes.EVENT_THREAD, IMCThread::getThreadName, JdkAttributes.SAMPLE_WEIGHT);
        IItemCollection old = items.apply(ItemFilters.type(OLD));
        fields("old_bytes", old, JdkAttributes.OLD_OBJECT_CLASS, "objectSize");
        fields("old_objects", old, JdkAttributes.OLD_OBJECT_CLASS, "objects");
        IItemCollection nativeBlocks = items.apply(ItemFilters.type(NATIVE));
        fields("native_allocated", nativeBlocks, null, "allocated");
        fields("native_remaining", nativeBlocks, null, "remaining");
        IItemCollection samples = items.apply(ItemFilters.type("jdk.ExecutionSample"));
        counts("samples", samples);
        IItemCollection waits = items.apply(ItemFilters.type("jdk.JavaMonitorEnter"));
        IQuantity blocked = waits.getAggregate(JdkAggregators.TOTAL_BLOCKED_TIME);
        say("blocked_us", "", blocked == null ? 0 : blocked.clampedLongValueIn(UnitLookup.MICROSECOND));
        times(items);
        rules(items);
    }

    static void say(String what, String name, long number) {
        System.out.println(what + "\t" + name + "\t" + number);
    }

    /** Events of each type, their label and their place in the tree of types. */
    static void types(IItemCollection items) {
        Map<String, Long> counts = new TreeMap<>();
        for (IItemIterable some : items) {
            IType<IItem> type = some.getType();
            counts.merge(type.getIdentifier() + " (" + type.getName() + ")", some.getItemCount(), Long::sum);
        }
        counts.forEach((type, count) -> say("type", type, count));
    }

    static String method(org.openjdk.jmc.common.IMCMethod method) {
        return method.getType().getFullName() + "." + method.getMethodName();
    }

    static <T> void sums(
        String what, IItemCollection items, IAttribute<T> by, Function<T, String> name, IAttribute<IQuantity> of) {
        Map<String, Long> sums = new TreeMap<>();
        for (IItemIterable some : items) {
            IMemberAccessor<T, IItem> key = by.getAccessor(some.getType());
            IMemberAccessor<IQuantity, IItem> value = of.getAccessor(some.getType());
            for (IItem item : some) {
                T found = key == null ? null : key.getMember(item);
                sums.merge(found == null ? "" : String.valueOf(name.apply(found)), bytes(value.getMember(item)), Long::sum);
            }
        }
        sums.forEach((key, sum) -> say(what, key, sum));
    }

    /** Sums of a field that has no attribute of JMC's own, found as its tables of properties find it. */
    static void fields(String what, IItemCollection items, IAttribute<? extends org.openjdk.jmc.common.IMCType> by, String field) {
        Map<String, Long> sums = new TreeMap<>();
        for (IItemIterable some : items) {
            IMemberAccessor<? extends org.openjdk.jmc.common.IMCType, IItem> key = by == null ? null : by.getAccessor(some.getType());
            IMemberAccessor<?, IItem> value = null;
            for (IAccessorKey<?> known : some.getType().getAccessorKeys().keySet()) {
                if (known.getIdentifier().equals(field)) value = some.getType().getAccessor(known);
            }
            for (IItem item : some) {
                String name = key == null ? "" : key.getMember(item).getFullName();
                sums.merge(name, ((Number) value.getMember(item)).longValue(), Long::sum);
            }
        }
        sums.forEach((key, sum) -> say(what, key, sum));
    }

    static void counts(String what, IItemCollection items) {
        Map<String, Long> sums = new TreeMap<>();
        for (IItemIterable some : items) {
            IMemberAccessor<org.openjdk.jmc.common.IMCMethod, IItem> key = JdkAttributes.STACK_TRACE_TOP_METHOD.getAccessor(some.getType());
            for (IItem item : some) sums.merge(method(key.getMember(item)), 1L, Long::sum);
        }
        sums.forEach((key, sum) -> say(what, key, sum));
    }

    /** When the first and the last event was, in milliseconds since 1970. */
    static void times(IItemCollection items) {
        long first = Long.MAX_VALUE, last = 0;
        for (IItemIterable some : items) {
            IMemberAccessor<IQuantity, IItem> at = JfrAttributes.START_TIME.getAccessor(some.getType());
            for (IItem item : some) {
                long time = at.getMember(item).clampedLongValueIn(UnitLookup.EPOCH_MS);
                first = Math.min(first, time);
                last = Math.max(last, time);
            }
        }
        say("time", "first", first);
        say("time", "last", last);
    }

    static void rules(IItemCollection items) throws Exception {
        Map<IRule, Future<IResult>> results = RulesToolkit.evaluateParallel(RuleRegistry.getRules(), items, null, 0);
        Map<String, Long> severities = new TreeMap<>();
        for (Map.Entry<IRule, Future<IResult>> one : results.entrySet()) {
            try {
                IResult result = one.getValue().get();
                String severity = result.getSeverity().name().toLowerCase(Locale.ROOT);
                severities.merge(severity, 1L, Long::sum);
                String summary = ResultToolkit.populateMessage(result, result.getSummary(), false);
                if (!severity.equals("na") && !severity.equals("ignore")) {
                    System.out.println("rule\t" + one.getKey().getId() + ": " + severity + ": " + summary + "\t1");
                } else if (summary != null && summary.contains("xception")) {
                    System.out.println("failed\t" + one.getKey().getId() + ": " + summary + "\t1");
                }
            } catch (Exception fault) {
                System.out.println("failed\t" + one.getKey().getId() + ": " + fault + "\t1");
            }
        }
        severities.forEach((severity, count) -> say("severity", severity, count));
    }

    static long bytes(IQuantity amount) {
        return amount.clampedLongValueIn(UnitLookup.BYTE);
    }
}
