//! Damaged class files: every result is a value, never a panic, and never a size
//! out of proportion.

use classfile::{Class, Instrument, LocalType, MethodEdit, Place, patch};
use proptest::prelude::*;

const SAMPLE: &[u8] = include_bytes!("data/Sample.class");

struct Busy;

impl Instrument for Busy {
    fn method(&mut self, _class: &Class<'_>, edit: &mut MethodEdit<'_>) {
        let local = edit.add_local(LocalType::Long);
        let [high, low] = local.to_be_bytes();
        edit.insert(0, Place::Entry, &[0x09, 0xc4, 0x37, high, low]);
        for instruction in edit.instructions().to_vec() {
            edit.insert(instruction.pc, Place::Before, &[0]);
        }
        edit.lengthen(100);
    }
}

#[test]
fn the_sample_itself_is_patched_completely() {
    let patched = patch(SAMPLE, &mut Busy).unwrap().expect("changed");
    assert_eq!(patched.skipped, []);
    assert!(patched.changed >= 5);
    // Patching what was patched works as well: nothing in it is out of place.
    let again = patch(&patched.bytes, &mut Busy).unwrap().expect("changed");
    assert_eq!((again.changed, again.skipped), (patched.changed, vec![]));
}

/// Makes every method longer than the format allows.
struct Endless;

impl Instrument for Endless {
    fn method(&mut self, _class: &Class<'_>, edit: &mut MethodEdit<'_>) {
        edit.insert(0, Place::Entry, &[0]);
        edit.lengthen(1 << 16);
    }
}

#[test]
fn methods_that_would_be_too_long_stay_as_they_are() {
    let patched = patch(SAMPLE, &mut Endless).unwrap().expect("skipped");
    assert_eq!((patched.bytes.as_slice(), patched.changed), (SAMPLE, 0));
    let errors = patched.skipped.iter().map(|(_, error)| error);
    assert!(errors.clone().count() >= 5);
    assert!(
        errors
            .clone()
            .all(|error| *error == classfile::Error::TooLarge)
    );
}

#[test]
fn every_prefix_is_an_error_not_a_panic() {
    for len in 0..SAMPLE.len() {
        assert!(patch(&SAMPLE[..len], &mut Busy).is_err(), "prefix of {len}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn flipped_bytes_do_not_panic(changes in prop::collection::vec((0..SAMPLE.len(), any::<u8>()), 1..6)) {
        let mut bytes = SAMPLE.to_vec();
        for (at, value) in changes {
            bytes[at] = value;
        }
        if let Ok(Some(patched)) = patch(&bytes, &mut Busy) {
            prop_assert!(patched.bytes.len() < 20 * bytes.len() + patched.changed * (300 << 10));
        }
    }
}
