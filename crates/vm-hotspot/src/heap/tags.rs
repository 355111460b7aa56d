//! The tags of one walk: that of a class is its number; tracked and other objects are numbered as they get theirs.
//!
//! They are in a separate JVMTI environment and removed with it, so that the collector has no more work afterwards.

use jvmti::{Capability, Env, JavaVm, Live, Object};
use vmpi::ClassId;

/// Marks tags of objects that are not tracked.
const PASSING: i64 = 1 << 40;
/// Marks tags of tracked objects.
const TRACKED: i64 = 1 << 41;

/// What has a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tagged {
    Class(ClassId),
    /// A tracked object, by the number of tracked objects that got a tag before.
    Tracked(usize),
    /// Another object, by the number of those that got a tag before.
    Passing(u64),
}

impl Tagged {
    /// What has this tag; `None` for tag 0.
    pub(crate) fn of(tag: i64) -> Option<Self> {
        let number = (tag & !(PASSING | TRACKED)).cast_unsigned();
        Some(match tag {
            0 => return None,
            _ if tag & PASSING != 0 => Self::Passing(number),
            _ if tag & TRACKED != 0 => Self::Tracked(number as usize),
            _ => Self::Class(ClassId(u32::try_from(number).unwrap_or(0))),
        })
    }

    /// A small number that nothing else has.
    pub(crate) fn place(self) -> usize {
        match self {
            Self::Class(class) => 3 * class.0 as usize,
            Self::Passing(number) => 3 * number as usize + 1,
            Self::Tracked(number) => 3 * number + 2,
        }
    }
}

/// The environment of a walk, and how many objects have got a tag in it.
pub(crate) struct Tags {
    pub(crate) env: Env<Live>,
    tracked: usize,
    pub(crate) passing: u64,
}

impl Tags {
    pub(crate) fn new(java: JavaVm) -> jvmti::Result<Self> {
        let tags = Self {
            env: Env::create(java)?.attached_live(),
            tracked: 0,
            passing: 0,
        };
        tags.env.add_capabilities(&[Capability::TagObjects])?;
        Ok(tags)
    }

    /// The tag for an object that is not tracked and has none.
    pub(crate) fn pass(&mut self) -> i64 {
        self.passing += 1;
        PASSING | (self.passing - 1).cast_signed()
    }

    /// The tag of an object, which gets one if it has none; and whether it got one now.
    pub(crate) fn of(&mut self, object: Object) -> (i64, bool) {
        match self.env.tag(object) {
            Ok(0) => {
                let tag = self.pass();
                let _ = self.env.set_tag(object, tag);
                (tag, true)
            }
            Ok(tag) => (tag, false),
            Err(_) => (0, false),
        }
    }

    /// Tags a tracked object; returns whether it had no tag. The object of a class keeps the class's tag.
    pub(crate) fn track(&mut self, object: Object) -> bool {
        let is_new = self.env.tag(object) == Ok(0)
            && self
                .env
                .set_tag(object, TRACKED | self.tracked as i64)
                .is_ok();
        self.tracked += usize::from(is_new);
        is_new
    }
}

impl Drop for Tags {
    fn drop(&mut self) {
        let _ = self.env.dispose();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_names_one_thing_and_has_a_place_of_its_own() {
        let check = |tag, expected: Tagged, place| {
            let tagged = Tagged::of(tag).expect("a tag");
            assert_eq!((tagged, tagged.place()), (expected, place));
        };
        check(7, Tagged::Class(ClassId(7)), 21);
        check(PASSING | 7, Tagged::Passing(7), 22);
        check(TRACKED | 7, Tagged::Tracked(7), 23);
        check(TRACKED, Tagged::Tracked(0), 2);
        assert_eq!(Tagged::of(0), None);
    }
}
