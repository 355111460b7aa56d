//! Readable values against what Java itself prints, in a fresh dump.

use heap_analysis::collections::contents::contents;
use heap_analysis::objects::describe::value_of;
use heap_analysis::objects::fields::{class_named, elements, static_ref};
use heap_graph::{Control, Heap, Options};
use testkit::dump::{Heap as Builder, IdSize, Root, Type, Value};

const PROGRAM: &str = r#"
import java.math.*; import java.time.*; import java.util.*; import java.util.concurrent.*; import java.util.concurrent.atomic.*; import java.util.regex.*;
public class Readable {
    static Object[] values; static Object[] collections;
    public static void main(String[] args) throws Exception {
        StringBuilder wide = new StringBuilder("caf\u00e9 \u6f22");
        values = new Object[] {
            "text", 42, -7L, 2.5, true, Thread.State.WAITING, new java.net.URL("https://example.org/a?b"), java.net.URI.create("x:y"), new java.io.File("/tmp/f"),
            Instant.ofEpochSecond(1763713105L, 25000), Instant.ofEpochSecond(-1), LocalDate.of(2024, 2, 29), LocalTime.of(7, 5), LocalTime.of(7, 5, 9, 120000000),
            LocalDateTime.of(1999, 12, 31, 23, 59, 58), OffsetDateTime.of(2020, 1, 2, 3, 4, 0, 0, ZoneOffset.ofHours(2)), ZonedDateTime.of(2020, 1, 2, 3, 4, 5, 0, ZoneId.of("Europe/Paris")),
            new BigInteger("-123456789012345678901234567890"), BigInteger.ZERO, new BigDecimal("12345.678"), new BigDecimal("-0.05"), new BigDecimal("123456789012345678901234567890.12"),
            UUID.fromString("01234567-89ab-cdef-0123-456789abcdef"), new StringBuilder("built"), wide, Pattern.compile("a+b"), Currency.getInstance("EUR"),
            java.nio.file.Paths.get("/etc/hosts"), new AtomicReference<>("inside") };
        List<Object> three = Arrays.asList("a", "b", "c");
        Map<String, String> map = new TreeMap<>(); map.put("k1", "v1"); map.put("k2", "v2");
        collections = new Object[] { new ArrayList<>(three), new LinkedList<>(three), new ArrayDeque<>(three), new CopyOnWriteArrayList<>(three), three, new LinkedHashSet<>(three), new TreeSet<Object>(three),
            map, new HashMap<>(map), new LinkedHashMap<>(map), new ConcurrentHashMap<>(map), new Hashtable<>(map), new Vector<>(three), new ConcurrentLinkedQueue<>(three) };
        for (Object o : values) System.out.println("V " + o);
        for (Object o : collections) System.out.println("C " + o);
    }
}
"#;

#[test]
fn values_are_what_java_prints() {
    let Some(jdk) = testkit::jvm::newest_compiler() else {
        testkit::skip(
            "values_are_what_java_prints",
            testkit::Need::Jdk,
            "there is no JDK",
        );
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("Readable.java");
    std::fs::write(&source, PROGRAM).unwrap();
    let dump = jdk
        .dump(
            &source,
            &["-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8"],
            &[],
        )
        .unwrap();
    let options = Options {
        no_index: true,
        ..Options::default()
    };
    let heap = Heap::open(&dump.path, &options, &Control::quiet()).unwrap();
    let class = class_named(&heap, "Readable").unwrap();
    let printed = |mark: &str| -> Vec<String> {
        let lines = dump.stdout.lines().filter_map(|l| l.strip_prefix(mark));
        lines.map(str::to_owned).collect()
    };
    let values = elements(&heap, static_ref(&heap, class, "values").unwrap());
    let want = printed("V ");
    assert_eq!(values.len(), want.len());
    for (object, want) in values.into_iter().zip(want) {
        assert_eq!(value_of(&heap, object), Some(want));
    }
    let collections = elements(&heap, static_ref(&heap, class, "collections").unwrap());
    let want = printed("C ");
    assert_eq!(collections.len(), want.len());
    for (object, want) in collections.into_iter().zip(want) {
        let found =
            contents(&heap, object, 100, &heap_graph::Control::quiet()).expect("what it holds");
        let text = |o: &Option<heap_analysis::objects::describe::ObjectRef>| {
            o.as_ref().and_then(|o| o.value.clone()).unwrap_or_default()
        };
        let rows: Vec<String> = found
            .rows
            .iter()
            .map(|r| match &r.key {
                Some(_) => format!("{}={}", text(&r.key), text(&r.value)),
                None => text(&r.value),
            })
            .collect();
        let (mut got, mut want): (Vec<String>, Vec<String>) = (
            rows,
            want.trim_matches(['[', ']', '{', '}'])
                .split(", ")
                .map(str::to_owned)
                .collect(),
        );
        // Hash tables print in an order of their own.
        got.sort();
        want.sort();
        assert_eq!(got, want, "{}", found.object.class);
    }
}

/// A damaged or made-up dump; each of these ended the process.
#[test]
fn values_with_wrong_parts_are_none() {
    let mut b = Builder::new(IdSize::Eight);
    let object = b.java_lang_object();
    let fields = [("date", Type::Object), ("time", Type::Object)];
    let local = b.class("java/time/LocalDateTime", object, &fields);
    let fields = [
        ("intCompact", Type::Long),
        ("intVal", Type::Object),
        ("scale", Type::Int),
    ];
    let decimal = b.class("java/math/BigDecimal", object, &fields);
    let optional = b.class("java/util/Optional", object, &[("value", Type::Object)]);
    let none = Value::Object(0);
    let own = b.instance(local, &[none, none]);
    b.set_field(own, "date", Value::Object(own));
    let number = b.instance(decimal, &[Value::Long(i64::MIN), none, Value::Int(2)]);
    b.set_field(number, "intVal", Value::Object(number));
    let text = b.string("A\u{fffd}B");
    let of_text = b.instance(
        decimal,
        &[Value::Long(i64::MIN), Value::Object(text), Value::Int(2)],
    );
    let held = b.instance(local, &[none, none]);
    let holder = b.instance(optional, &[Value::Object(held)]);
    b.set_field(held, "date", Value::Object(holder));
    let file = tempfile::NamedTempFile::new().unwrap();
    let all = [own, number, of_text, held, holder];
    for id in all {
        b.root(Root::JniGlobal { reference: 1 }, id);
    }
    std::fs::write(file.path(), b.bytes()).unwrap();
    let options = Options {
        no_index: true,
        ..Options::default()
    };
    let heap = Heap::open(file.path(), &options, &Control::quiet()).unwrap();
    for id in all {
        let object = heap.find(hprof::ObjectId(id)).unwrap();
        assert_eq!(value_of(&heap, object), None);
    }
}
