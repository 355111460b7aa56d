//! Joins of references with the objects at their ends.

use crate::common::{corpus_heap, rows, session_of, show};
use heap_graph::LayoutModel;
use heap_query::{Cell, Limits, Session, Sink};
use testkit::dump::{ClassDump, Dump, IdSize, Root, Segment, Version};

#[test]
fn a_join_finds_what_the_references_name_at_both_ends() {
    let Some(session) = corpus_heap("both_ends", "zoo-jdk17-g1.hprof") else {
        return;
    };
    let named = "select count(*), sum(r.from_class = f.class), sum(r.to_class = t.class), \
                        sum(f.address = r.from_address), sum(t.address = r.to_address)";
    let joins = [
        "join objects f on f.id = r.from_id join objects t on t.id = r.to_id",
        "join objects f on f.address = r.from_address join objects t on t.address = r.to_address",
    ];
    let all = rows(&session, "select count(*) from \"references\"");
    for join in joins {
        let found = rows(&session, &format!("{named} from \"references\" r {join}"));
        assert!(found[0].iter().all(|cell| *cell == all[0][0]), "{found:?}");
    }
}

#[test]
fn a_join_with_the_objects_of_each_class_counts_as_the_classes_do() {
    let Some(session) = corpus_heap("of_classes", "zoo-jdk17-g1.hprof") else {
        return;
    };
    let by_id = "left join objects o on o.class_id = c.id where c.id is not null";
    let by_name =
        "left join objects o on o.class = c.name and o.class_id = c.id where c.id is not null";
    let by_number = "left join objects o on o.class_number = c.number where c.id is not null";
    let counted = "select c.number, count(o.id), c.objects from classes c";
    let all = rows(
        &session,
        "select count(*) from classes where id is not null",
    );
    for join in [by_id, by_name, by_number] {
        let query = format!("{counted} {join} group by c.number");
        let found = rows(&session, &query);
        assert_eq!(Cell::Int(found.len() as i64), all[0][0], "{join}");
        let wrong: Vec<_> = found.iter().filter(|row| row[1] != row[2]).collect();
        assert!(wrong.is_empty(), "{join}: {wrong:?}");
    }
}

#[test]
fn an_id_and_an_address_of_one_end_both_hold() {
    let Some(session) = corpus_heap("id_and_address", "zoo-jdk17-g1.hprof") else {
        return;
    };
    for end in ["from", "to"] {
        let ends =
            format!("(select {end}_id id, {end}_address address from \"references\" limit 1)");
        let count = |address: &str| {
            let query = format!(
                "select count(*) from {ends} x join \"references\" r \
                 on r.{end}_id = x.id and r.{end}_address = {address}"
            );
            show(&rows(&session, &query)[0], &[])
        };
        assert_ne!(count("x.address"), "0", "{end}");
        assert_eq!(count("x.address + 8"), "0", "{end}");
    }
}

#[test]
fn an_id_means_the_object_of_the_heap_that_is_asked() {
    // Both heaps have an object 0x2010 that an array refers to; it has another number and class in each.
    let heap = |names: &[&[u8]], objects: &[(u64, u64)]| {
        let mut dump = Dump::new(Version::V102, IdSize::Eight);
        let mut segment = Segment::new(IdSize::Eight);
        for (n, name) in (1..).zip(names) {
            let id = 0x1000 * u64::from(n);
            dump.utf8(id, name).load_class(n, id, 0, id);
            segment.class_dump(&ClassDump {
                id,
                ..ClassDump::default()
            });
        }
        for (id, class) in objects {
            segment.instance_bytes(*id, 0, *class, &[]);
        }
        segment.object_array(0x9000, 0, 0x1000, &[0x2010]);
        segment.root(Root::Unknown, 0x9000);
        dump.segment(segment);
        session_of(&dump.into_bytes(), LayoutModel::Plain)
    };
    let first = heap(&[b"A"], &[(0x2010, 0x1000)]);
    let second = heap(&[b"A", b"B"], &[(0x2008, 0x1000), (0x2010, 0x2000)]);
    let joined = "select o.class from \"references\" r join objects o on o.id = r.to_id";
    let alone = "select class from objects where id = '0x2010'";
    for (session, class) in [(&first, "A"), (&second, "B"), (&first, "A")] {
        for query in [alone, joined] {
            assert_eq!(show(&rows(session, query)[0], &[]), class, "{query}");
        }
    }
    // The first heap is queried while rows of the second one come.
    let twice =
        "select o.class from (select 1 union all select 2) cross join objects o on o.id = '0x2010'";
    let mut found = Between(&first, joined, Vec::new());
    let done = second.each(twice, None, &Limits::default(), &mut found);
    done.expect("an answer");
    assert_eq!(found.2, ["B", "B"]);
}

/// Queries another heap at each row.
struct Between<'a>(&'a Session, &'a str, Vec<String>);

impl Sink for Between<'_> {
    fn columns(&mut self, _: &[String]) {}

    fn row(&mut self, cells: Vec<Cell>) -> bool {
        rows(self.0, self.1);
        self.2.push(show(&cells, &[]));
        true
    }
}
