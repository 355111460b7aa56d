//! The origins of classes. If several loaders have loaded classes of the same name, each class has its own id in
//! [`Names`], so that every table distinguishes them.

use crate::names::{NameId, Names};
use rustc_hash::FxHashMap;

/// Loader and module of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Place {
    /// The loader; the empty name for the boot loader.
    pub loader: NameId,
    /// The named module; the empty name if it is in none.
    pub module: NameId,
}

/// The origins of classes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    of: FxHashMap<NameId, Place>,
    known: FxHashMap<(NameId, Place), NameId>,
}

impl Places {
    /// Adds the origin of a class with this name; returns the id for it.
    pub(crate) fn add(&mut self, names: &mut Names, class: NameId, place: Place) -> NameId {
        match self.of.get(&class) {
            Some(known) if *known == place => class,
            None => {
                self.of.insert(class, place);
                class
            }
            Some(_) => {
                let other = self.known.entry((class, place)).or_insert_with(|| {
                    let text = names.get(class).to_owned();
                    names.another(&text)
                });
                self.of.insert(*other, place);
                *other
            }
        }
    }

    /// The origin of a class; `None` if it was not reported.
    pub fn get(&self, class: NameId) -> Option<Place> {
        self.of.get(&class).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_one_name_are_distinguished_by_their_place() {
        let mut names = Names::default();
        let class = names.intern("a.Plugin");
        let [one, two] = ["one", "two"].map(|loader| Place {
            loader: names.intern(loader),
            module: NameId::default(),
        });
        let mut places = Places::default();
        assert_eq!(places.add(&mut names, class, one), class);
        let other = places.add(&mut names, class, two);
        assert_ne!(other, class);
        assert_eq!(places.add(&mut names, class, two), other);
        assert_eq!(places.add(&mut names, class, one), class);
        assert_eq!(
            (places.get(class), places.get(other)),
            (Some(one), Some(two))
        );
        assert_eq!(names.get(other), "a.Plugin");
        assert_eq!(names.intern("a.Plugin"), class);
        let again = Names::from(Vec::<String>::from(names.clone()));
        assert!(names.iter().eq(again.iter()), "ids survive being written");
    }
}
