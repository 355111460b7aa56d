//! SQL against answers that come from elsewhere.

mod common;

use common::{corpus_heap};
use heap_query::Limits;

#[test]
fn x() {
    let Some(s) = corpus_heap("x", "zoo-jdk17-g1.hprof.gz") else { return };
    for q in ["select class, count(*), sum(shallow) from objects group by class order by 3 desc limit 5",
      "explain query plan select class, count(*), sum(shallow) from objects group by class",
      "select * from objects order by retained desc limit 3",
      "select * from classes order by shallow desc limit 3",
      "select count(*) from references", "select * from java.util.HashMap limit 2",
      "select * from threads limit 3", "select * from frames limit 2", "select * from locals limit 2", "select * from roots limit 2",
      "select * from sites limit 2", "select * from strings limit 2", "select * from arrays limit 2", "select * from fields limit 2", "select * from field_values limit 3",
      "select * from heap_graph_dominator_tree limit 2", "select * from heap_graph_object limit 2", "select * from heap_graph_class limit 2", "select * from heap_graph_reference limit 2",
      "select o.id, r.field, r.class from objects o, outbound(o.id) r where o.class='java.util.HashMap' limit 3",
      "select toString(file) f, count(*) from java.net.URL group by 1", "select * from path_to_root((select id from strings limit 1))",
      "select frm from objects", "attach 'x' as y", "select 1; select 2"] {
        match s.run(q, None, &Limits::rows(20)) {
            Ok(t) => { println!("{q}\n  {:?}", t.columns); for r in t.rows { println!("   {}", r.iter().map(|c| c.to_string()).collect::<Vec<_>>().join(" | ")); } }
            Err(e) => println!("{q}\n ERR {e}"),
        }
    }
}
