//! What collections hold against what Java itself iterates over, in fresh dumps of several JDKs, and collections of a
//! user's table.

use crate::program::{open, open_with};
use heap_analysis::collections::contents::contents;
use heap_analysis::collections::held::{Form, held, size};
use heap_analysis::collections::stats::{CollectionOptions, collections};
use heap_analysis::collections::table::CollectionTable;
use heap_analysis::objects::describe::value_of;
use heap_analysis::objects::fields::{class_named, elements, static_ref};
use heap_analysis::pace::Pace;
use heap_analysis::waste::{WasteOptions, waste};
use heap_graph::{Control, Heap, ObjIdx, Options};
use hprof::BasicType;
use testkit::dump::{Heap as Builder, IdSize, Root, Type, Value};

const PROGRAM: &str = r#"
import java.lang.reflect.*; import java.util.*; import java.util.concurrent.*;
public class Held {
    enum Planet { MERCURY, VENUS, EARTH, MARS }
    static Object[] collections;
    static final List<Object> ALL = new ArrayList<>();
    /** One of a newer JDK, if this is one. */
    static void add(Class<?> of, String method, Class<?> type, Object argument) throws Exception {
        Method found;
        try { found = of.getMethod(method, type); } catch (NoSuchMethodException e) { return; }
        ALL.add(found.invoke(null, argument));
    }
    public static void main(String[] args) throws Exception {
        List<String> none = new ArrayList<>(), one = Arrays.asList("x"), ten = new ArrayList<>();
        for (int i = 0; i < 10; i++) ten.add("e" + i);
        for (List<String> from : Arrays.asList(none, one, ten)) {
            Map<String, String> map = new HashMap<>();
            for (String key : from) map.put(key, "of " + key);
            ALL.add(new ArrayList<>(from)); ALL.add(new LinkedList<>(from)); ALL.add(new Vector<>(from)); ALL.add(new Stack<String>() {{ addAll(from); }});
            ALL.add(Arrays.asList(from.toArray())); ALL.add(new CopyOnWriteArrayList<>(from)); ALL.add(new CopyOnWriteArraySet<>(from));
            ALL.add(new HashSet<>(from)); ALL.add(new LinkedHashSet<>(from)); ALL.add(new TreeSet<>(from)); ALL.add(new ConcurrentSkipListSet<>(from));
            Set<String> keys = ConcurrentHashMap.newKeySet(); keys.addAll(from); ALL.add(keys);
            Set<String> same = Collections.newSetFromMap(new IdentityHashMap<>()); same.addAll(from); ALL.add(same);
            ALL.add(new ArrayDeque<>(from)); ALL.add(new PriorityQueue<>(from)); ALL.add(new PriorityBlockingQueue<>(Math.max(1, from.size()), null)); ((Collection<String>) ALL.get(ALL.size() - 1)).addAll(from);
            ALL.add(new LinkedBlockingQueue<>(from)); ALL.add(new LinkedBlockingDeque<>(from)); ALL.add(new ConcurrentLinkedQueue<>(from)); ALL.add(new ConcurrentLinkedDeque<>(from)); ALL.add(new LinkedTransferQueue<>(from));
            ArrayBlockingQueue<String> ring = new ArrayBlockingQueue<>(11); for (int i = 0; i < 7; i++) { ring.add("y"); ring.remove(); } ring.addAll(from); ALL.add(ring);
            ArrayDeque<String> turned = new ArrayDeque<>(); for (int i = 0; i < 13; i++) { turned.add("y"); turned.remove(); } turned.addAll(from); ALL.add(turned);
            ALL.add(new HashMap<>(map)); ALL.add(new LinkedHashMap<>(map)); ALL.add(new TreeMap<>(map)); ALL.add(new ConcurrentHashMap<>(map)); ALL.add(new ConcurrentSkipListMap<>(map));
            ALL.add(new WeakHashMap<>(map)); ALL.add(new IdentityHashMap<>(map)); ALL.add(new Hashtable<>(map));
            Properties properties = new Properties(); properties.putAll(map); ALL.add(properties);
            Map<Planet, String> planets = new EnumMap<>(Planet.class); Set<Planet> some = EnumSet.noneOf(Planet.class);
            for (int i = 0; i < from.size() && i < 3; i++) { planets.put(Planet.values()[i + 1], "p" + i); some.add(Planet.values()[i + 1]); }
            ALL.add(planets); ALL.add(some);
            ALL.add(Collections.unmodifiableList(new ArrayList<>(from))); ALL.add(Collections.unmodifiableSet(new TreeSet<>(from))); ALL.add(Collections.synchronizedList(new LinkedList<>(from)));
            ALL.add(Collections.unmodifiableMap(new TreeMap<>(map))); ALL.add(Collections.synchronizedMap(new HashMap<>(map))); ALL.add(Collections.checkedMap(new HashMap<>(map), String.class, String.class));
            add(List.class, "copyOf", Collection.class, from); add(Set.class, "copyOf", Collection.class, from); add(Map.class, "copyOf", Map.class, map);
        }
        add(List.class, "of", Object[].class, new Object[] { "a", "b" }); add(Set.class, "of", Object[].class, new Object[] { "a", "b" });
        collections = ALL.toArray();
        for (Object each : collections) {
            List<String> held = new ArrayList<>();
            if (each instanceof Map) for (Map.Entry<?, ?> entry : ((Map<?, ?>) each).entrySet()) held.add(entry.getKey() + "=" + entry.getValue());
            else for (Object element : (Collection<?>) each) held.add(String.valueOf(element));
            String form = each instanceof Map ? "Map" : each instanceof Set ? "Set" : "List";
            System.out.println("C " + form + " " + String.join(",", held));
        }
    }
}
"#;

#[test]
fn collections_hold_what_java_iterates_over() {
    if testkit::jvm::newest_compiler().is_none() {
        let (what, why) = ("what collections hold", "there is no JDK");
        return testkit::skip(what, testkit::Need::Jdk, why);
    }
    for jdk in testkit::jvm::tested() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let source = folder.path().join("Held.java");
        std::fs::write(&source, PROGRAM).expect("written");
        let dump = jdk.dump(&source, &[], &[]).expect("a dump");
        let options = Options {
            no_index: true,
            ..Options::default()
        };
        let heap = Heap::open(&dump.path, &options, &Control::quiet()).expect("a heap");
        let class = class_named(&heap, "Held").expect("the class");
        let found = static_ref(&heap, class, "collections").expect("the array");
        let found = elements(&heap, found);
        let want = dump.stdout.lines().filter_map(|l| l.strip_prefix("C "));
        let want: Vec<&str> = want.collect();
        assert_eq!(found.len(), want.len(), "{}", jdk.full_version);
        for (object, want) in found.iter().zip(&want) {
            check(&heap, *object, want, &jdk.full_version);
        }
        check_queues(&heap, &found, &want);
    }
}

/// The row of a class has the elements of all its queues. The JDK has queues of its own.
fn check_queues(heap: &Heap, found: &[ObjIdx], want: &[&str]) {
    let class = "java.util.concurrent.LinkedBlockingQueue";
    let is_one = |object: &ObjIdx| heap.class(heap.class_of(*object)).name == class;
    let ours = found.iter().zip(want).filter(|(object, _)| is_one(object));
    let texts = ours.flat_map(|(_, text)| text["List ".len()..].split(','));
    let elements = texts.filter(|text| !text.is_empty()).count() as u64;
    let control = Control::quiet();
    let options = CollectionOptions::default();
    let all = collections(heap, &options, &control);
    let rows = all.expect("rows").rows;
    let row = rows.iter().find(|row| row.class == class).expect("a row");
    assert!(
        row.objects >= 3 && row.elements >= elements && row.elements <= elements + 10,
        "{row:?}"
    );
}

fn check(heap: &Heap, object: ObjIdx, want: &str, jdk: &str) {
    let class = &heap.class(heap.class_of(object)).name;
    let (form, want) = want.split_once(' ').expect("a form");
    let mut want: Vec<&str> = want.split(',').filter(|each| !each.is_empty()).collect();
    let quiet = Control::quiet();
    let mut pace = Pace::new(&quiet, "test", heap.len());
    let count = size(heap, object, &mut pace).expect("a size");
    assert_eq!(count, Some(want.len() as u64), "{class} on {jdk}");
    // A short description has the size, too, unless nodes would have to be followed.
    let usual = [
        "HashSet",
        "ArrayDeque",
        "ArrayList",
        "TreeMap",
        "ConcurrentHashMap",
    ];
    match value_of(heap, object).filter(|value| value.starts_with("size ")) {
        Some(value) => assert_eq!(value, format!("size {}", want.len()), "{class} on {jdk}"),
        None => assert!(
            !usual
                .iter()
                .any(|name| class.ends_with(&format!(".{name}"))),
            "{class} on {jdk}"
        ),
    }
    let text = |o: Option<ObjIdx>| o.and_then(|o| value_of(heap, o)).unwrap_or_default();
    let read = |limit: usize, pace: &mut Pace<'_>| held(heap, object, limit, pace).expect("read");
    let all = read(1000, &mut pace);
    assert_eq!(format!("{:?}", all.form), form, "{class} on {jdk}");
    let is_map = all.form == Form::Map;
    let rows = all.rows().into_iter().map(|(key, value)| match is_map {
        true => format!("{}={}", text(key), text(value)),
        false => text(value),
    });
    let mut got: Vec<String> = rows.collect();
    // Lists and queues of a list are in their order; a priority queue is sorted only as it is emptied.
    if form != "List" {
        got.sort();
        want.sort_unstable();
    }
    assert_eq!(got, want, "{class} on {jdk}");
    let limited = read(3, &mut pace).rows().len();
    assert_eq!(limited, want.len().min(3), "{class} on {jdk}");
    let entries = read(1000, &mut pace).entries().len();
    assert!(!is_map || entries == want.len(), "{class} on {jdk}");
}

#[test]
fn a_users_table_adds_a_collection_to_every_answer() {
    let mut b = Builder::new(IdSize::Eight);
    let object = b.java_lang_object();
    let fields = [("used", Type::Int), ("slots", Type::Object)];
    let ring = b.class("app/Ring", object, &fields);
    let below = b.class("app/OwnRing", ring, &[]);
    let refs = b.object_array_class();
    let text = b.string("first");
    let slots = b.object_array(refs, &[&[text, object, object][..], &[0; 97]].concat());
    let ring = b.instance(below, &[Value::Int(3), Value::Object(slots)]);
    b.root(Root::Unknown, ring);
    let own = "[[collection]]\nclass='app.Ring'\nkind='list'\nsize='used'\narray='slots'\n";
    let table = CollectionTable::extended("own.toml".as_ref(), own).expect("sound");
    let mut options = Options::default();
    table.attach(&mut options);
    let heap = open_with(&b, options);
    let quiet = Control::quiet();
    let got = waste(&heap, &WasteOptions::default(), &quiet).expect("an answer");
    let row = &got.collections.rows[0];
    assert_eq!((row.class.as_str(), row.elements), ("app.OwnRing", 3));
    let array = |len| heap.array_bytes(BasicType::Object, len).0;
    assert_eq!(row.unused.0, array(100) - array(3));
    assert_eq!(row.fill, [1, 0, 0, 0, 0]);
    let alone = collections(&heap, &CollectionOptions::default(), &quiet).expect("an answer");
    assert_eq!(alone.rows, got.collections.rows);
    let object = heap.find(hprof::ObjectId(ring)).expect("the object");
    assert_eq!(value_of(&heap, object).as_deref(), Some("size 3"));
    let inside = contents(&heap, object, 10, &quiet).expect("an answer");
    assert_eq!((inside.form, inside.rows.len()), ("list", 3));
    // Without the table it is an object as any other.
    let plain = open(&b);
    assert_eq!(value_of(&plain, object), None);
    let inside = contents(&plain, object, 10, &quiet).expect("an answer");
    assert_eq!((inside.form, inside.rows.len()), ("other", 0));
}
