//! The sequence of events, as the document prescribes it.

use crate::golden::{SMALL, events};
use crate::{Config, Gc};

#[test]
fn a_small_script_issues_the_prescribed_sequence() {
    insta::assert_snapshot!(events(Config::new(Gc::Generational), SMALL));
}

/// An old object has the only reference to a young one.
const BARRIER: &str = "
class Node 1
$old = new Node
gc young
n = new Node
$old[0] = n
n = null
gc young
gc
";

#[test]
fn a_remembered_object_keeps_a_young_one_alive() {
    insta::assert_snapshot!(events(Config::new(Gc::Generational), BARRIER));
}

#[test]
fn with_a_promotion_age_objects_wait_in_survivor_arenas() {
    let config = Config {
        promotion_age: 2,
        ..Config::new(Gc::Generational)
    };
    insta::assert_snapshot!(events(
        config,
        "class Node 1\na = new Node\ngc young\ngc young"
    ));
}

#[test]
fn three_generations_promote_step_by_step() {
    let config = Config {
        generations: 3,
        ..Config::new(Gc::Generational)
    };
    insta::assert_snapshot!(events(
        config,
        "class Node 1\na = new Node\ngc young\ngc\na = null\ngc"
    ));
}
