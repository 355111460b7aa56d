//! The limits of a query for bytes of memory, bytes of temporary files and time.

use crate::common::{known, rows};
use heap_graph::{Control, Heap, Options};
use heap_query::{Cell, Cut, Lang, Limits, Session, Sink};
use proptest::prelude::*;
use std::sync::Arc;
use std::time::Duration;
use testkit::dump::{Heap as Builder, IdSize};

/// The first numbers, as a table `n` with a column `i`.
const NUMBERS: &str =
    "with recursive n(i) as (select 1 union all select i + 1 from n limit 200000)";

fn fails(session: &Session, text: &str, limits: &Limits, message: &str) {
    let lang = match text.starts_with("Array") {
        true => Lang::Jhat,
        false => Lang::Sql,
    };
    let result = session.run(text, Some(lang), limits);
    let printed = result.expect_err(text).to_string();
    assert!(printed.contains(message), "{text}: {printed}");
}

struct Any;

impl Sink for Any {
    fn columns(&mut self, _: &[String]) {}

    fn row(&mut self, _: Vec<Cell>) -> bool {
        true
    }
}

#[test]
fn the_bytes_of_values_and_rows_are_limited() {
    let (session, _) = known();
    let too_long = "a text or blob exceeds the limit for its length, 64 MiB";
    for text in [
        "select hex(zeroblob(40000000)) from objects limit 20",
        "select length(randomblob(70000000))",
        "select length(printf('%*d', 70000000, 1))",
        "select length(replace(hex(zeroblob(1000000)), '0', '0123456789012345678901234567890123456789'))",
    ] {
        fails(&session, text, &Limits::default(), too_long);
    }
    let grouped = format!("{NUMBERS} select length(group_concat(hex(zeroblob(1000)))) from n");
    fails(&session, &grouped, &Limits::default(), too_long);
    let limits = Limits {
        memory: 4 << 20,
        ..Limits::default()
    };
    let too_many = "the rows exceed the memory limit of a query, 4 MiB";
    let long = format!("{NUMBERS} select hex(zeroblob(i)) from n");
    fails(&session, &long, &limits, too_many);
    let wide = "select x, x, x, x, x from (select zeroblob(1000000) as x)";
    fails(&session, wide, &limits, too_many);
    fails(
        &session,
        "Array(1000).fill('a'.repeat(10000))",
        &limits,
        too_many,
    );
    fails(
        &session,
        "Array(9).fill(0).map(() => Array(99).fill('a'.repeat(99999)))",
        &limits,
        too_many,
    );
    let values = "the values of JavaScript exceed the memory limit of a query, 4 MiB";
    fails(&session, "Array(1e7).fill({})", &limits, values);
    let error = session.run(wide, None, &limits).expect_err("a limit");
    assert!(!error.to_string().contains("taken for"), "{error}");
    // Rows that are passed on take no memory, apart from each alone.
    let done = session.each(&format!("{long} limit 4000"), None, &limits, &mut Any);
    assert_eq!(done.expect("rows"), (Lang::Sql, None));
    let done = session.each(wide, None, &limits, &mut Any);
    assert!(done.expect_err("a long row").to_string().contains(too_many));
}

#[test]
fn the_objects_of_a_set_of_a_query_are_limited() {
    let (session, _) = known();
    let set = format!("sql:({NUMBERS} select o.id from n, objects o)");
    let limits = Limits {
        memory: 1 << 20,
        ..Limits::default()
    };
    let result = session.resolve(&set.parse().expect("a set"), &limits);
    let printed = result.expect_err("too many").to_string();
    assert!(
        printed.contains("the memory limit of a query, 1 MiB"),
        "{printed}"
    );
}

#[test]
fn temporary_files_are_in_the_folder_of_the_heap_and_limited() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = folder.path().join("cache");
    let file = folder.path().join("small.hprof");
    let mut dump = Builder::new(IdSize::Eight);
    dump.java_lang_object();
    std::fs::write(&file, dump.bytes()).expect("writing the dump");
    let options = Options {
        cache_dir: Some(cache.clone()),
        no_index: true,
        threads: 1,
        ..Options::default()
    };
    let heap = Heap::open(&file, &options, &Control::quiet()).expect("a readable dump");
    let session = Session::open(Arc::new(heap));
    for (sorting, sum) in [
        (
            format!(
                "{NUMBERS} select sum(s) from (select i, sum(i) over (order by -i rows 1 preceding) as s, hex(zeroblob(50)) from n)"
            ),
            "40000199999",
        ),
        (
            format!(
                "{NUMBERS} select sum(i) from (select i, x from (select i, hex(zeroblob(50)) as x from n) order by i % 1000, x limit 200000)"
            ),
            "20000100000",
        ),
        (
            format!("{NUMBERS} select count(*) from (select distinct i, hex(zeroblob(50)) from n)"),
            "200000",
        ),
    ] {
        std::fs::remove_dir_all(&cache).expect("the empty folder");
        let found = rows(&session, &sorting);
        assert_eq!(found[0][0].to_string(), sum, "{sorting}");
        assert!(cache.is_dir(), "{sorting}: a temporary file was made there");
        let limits = Limits {
            temporary: 1 << 20,
            ..Limits::default()
        };
        fails(
            &session,
            &sorting,
            &limits,
            "the temporary files of the query exceed their limit, 1 MiB",
        );
    }
}

/// Each of these runs for hours if the work is the product of both lengths and the clock is not read.
#[test]
fn a_search_in_a_long_text_ends() {
    let (session, _) = known();
    let searches = [
        "select instr(zeroblob(60000000), zeroblob(30000000) || x'01')",
        "select instr(hex(zeroblob(30000000)), hex(zeroblob(15000000)) || '1')",
        "select length(replace(hex(zeroblob(30000000)), hex(zeroblob(15000000)) || '1', '')) - 60000000",
    ];
    for text in searches {
        assert_eq!(rows(&session, text), [[Cell::Int(0)]], "{text}");
    }
    let late = Limits {
        time: Some(Duration::ZERO),
        ..Limits::default()
    };
    for text in [
        "select hex(zeroblob(9000000)) like '%' || hex(zeroblob(24000)) || '1'",
        "select hex(zeroblob(9000000)) glob '*' || hex(zeroblob(24000)) || '1'",
    ] {
        let table = session.run(text, Some(Lang::Sql), &late);
        let cut = table.map(|table| table.cut);
        assert!(matches!(cut, Ok(Some(Cut::Time))), "{text}: {cut:?}");
    }
    for name in ["trim", "ltrim", "rtrim", "unhex"] {
        let text = format!("select {name}(hex(zeroblob(9000000)), hex(randomblob(4000000)))");
        let message =
            format!("{name} of a text of 18000000 bytes with one of 8000000 exceeds the limit");
        fails(&session, &text, &Limits::default(), &message);
    }
    let text = "select 'a' like '%' || hex(zeroblob(30000))";
    fails(
        &session,
        text,
        &Limits::default(),
        "LIKE or GLOB pattern too complex",
    );
    let denied = "select json_patch('{}', '{}')";
    fails(
        &session,
        denied,
        &Limits::default(),
        "not authorized to use function: json_patch",
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn replaced_functions_have_the_results_of_sqlite(
        text in "[aAbé]{0,6}", pattern in "[aAbé%_*?\\[\\]^-]{0,6}", part in "[aé]{0,2}",
    ) {
        let (session, _) = known();
        let sqlite = rusqlite::Connection::open_in_memory().expect("a database");
        let sql = format!(
            "select '{text}' like '{pattern}', '{text}' like '{pattern}' escape '_', '{text}' glob '{pattern}', \
             instr('{text}', '{part}'), instr(cast('{text}' as blob), cast('{part}' as blob)), \
             instr('{text}', cast('{part}' as blob)), replace('{text}', '{part}', 'xy'), \
             trim('{text}', '{part}'), ltrim('{text}', '{part}'), rtrim('{text}', '{part}'), \
             '{text}' like null, instr(null, 1), replace(1.5, 5, '{part}'), instr(1e100, '+'), 1.5 like '_.5'"
        );
        let want = sqlite.query_row(&sql, [], |row| {
            let cells = (0..15).map(|n| {
                Ok(match row.get_ref(n)? {
                    rusqlite::types::ValueRef::Null => Cell::Null,
                    rusqlite::types::ValueRef::Integer(n) => Cell::Int(n),
                    other => Cell::Text(other.as_str().expect("a text").to_owned()),
                })
            });
            cells.collect::<Result<Vec<_>, rusqlite::Error>>()
        });
        prop_assert_eq!(&rows(&session, &sql)[0], &want.expect("a row"), "{}", sql);
    }
}
