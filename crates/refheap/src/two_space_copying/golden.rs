//! The sequence of events, as the document prescribes it.

use crate::golden::{SMALL, events};
use crate::{Config, Gc};

#[test]
fn a_small_script_issues_the_prescribed_sequence() {
    insta::assert_snapshot!(events(Config::new(Gc::TwoSpaceCopying), SMALL));
}
