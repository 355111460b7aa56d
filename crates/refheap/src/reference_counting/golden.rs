//! The sequence of events, as the document prescribes it.

use crate::golden::{SMALL, events};
use crate::{Config, Gc};

#[test]
fn a_small_script_issues_the_prescribed_sequence() {
    insta::assert_snapshot!(events(Config::new(Gc::ReferenceCounting), SMALL));
}

/// Two objects that refer to each other and that nothing else refers to.
const CYCLE: &str = "
class Node 1
a = new Node
b = new Node
a[0] = b
b[0] = a
a = null
b = null
gc
";

#[test]
fn a_cycle_leaks_without_the_detector() {
    insta::assert_snapshot!(events(Config::new(Gc::ReferenceCounting), CYCLE));
}

#[test]
fn the_detector_frees_a_cycle_in_a_collection() {
    let config = Config {
        cycle_detector: true,
        ..Config::new(Gc::ReferenceCounting)
    };
    insta::assert_snapshot!(events(config, CYCLE));
}
