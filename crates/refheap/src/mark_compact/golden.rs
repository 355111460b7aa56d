//! The sequence of events, as the document prescribes it.

use crate::golden::{SMALL, events};
use crate::{Config, Gc};

#[test]
fn a_small_script_issues_the_prescribed_sequence() {
    insta::assert_snapshot!(events(Config::new(Gc::MarkCompact), SMALL));
}

/// Two live objects of different size that must exchange their positions.
const SWAP: &str = "
class Small 1
class Large 1 40
a = new Small
b = new Large
gc
";

#[test]
fn an_object_in_the_way_moves_twice() {
    let config = Config {
        order: crate::Order::Arbitrary,
        ..Config::new(Gc::MarkCompact)
    };
    insta::assert_snapshot!(events(config, SWAP));
}

/// A tree whose objects were allocated in another order than that of their links.
const TREE: &str = "
class Node 2
c = new Node
b = new Node
a = new Node
a[0] = b
a[1] = c
$root = a
a = null
b = null
c = null
gc
";

#[test]
fn linearizing_puts_what_is_referred_to_behind() {
    let config = Config {
        order: crate::Order::Linearizing,
        ..Config::new(Gc::MarkCompact)
    };
    insta::assert_snapshot!(events(config, TREE));
}
