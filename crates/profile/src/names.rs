//! Interned names: classes, methods, files, threads.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// A name in [`Names`]. 0 is the empty name.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct NameId(pub u32);

/// Interned names. Only classes of one name from several loaders have more than one id.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "Vec<String>", into = "Vec<String>")]
pub struct Names {
    texts: Vec<Box<str>>,
    ids: FxHashMap<Box<str>, NameId>,
    /// Ids of removed names, which the next names get.
    free: Vec<NameId>,
}

impl Default for Names {
    fn default() -> Names {
        let mut names = Names {
            texts: Vec::new(),
            ids: FxHashMap::default(),
            free: Vec::new(),
        };
        names.intern("");
        names
    }
}

impl Names {
    /// The id of a name, which is added if it is new.
    pub fn intern(&mut self, name: &str) -> NameId {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let id = self.free.pop().unwrap_or_else(|| self.another(""));
        if let Some(text) = self.texts.get_mut(id.0 as usize) {
            *text = name.into();
        }
        self.ids.insert(name.into(), id);
        id
    }

    /// Removes a name that nothing has any more. Its id is that of another name later.
    pub(crate) fn remove(&mut self, id: NameId) {
        if let Some(text) = self.texts.get_mut(id.0 as usize) {
            let text = std::mem::take(text);
            self.ids.remove(&text);
            self.free.push(id);
        }
    }

    /// A new id for an existing name: two classes may have the same name.
    pub fn another(&mut self, name: &str) -> NameId {
        let id = NameId(u32::try_from(self.texts.len()).unwrap_or(u32::MAX));
        self.texts.push(name.into());
        id
    }

    /// The name of an id; empty if the id is unknown.
    pub fn get(&self, id: NameId) -> &str {
        self.texts.get(id.0 as usize).map_or("", |text| text)
    }

    /// The id of an existing name.
    pub fn find(&self, name: &str) -> Option<NameId> {
        self.ids.get(name).copied()
    }

    /// Number of names, including the empty one.
    pub fn len(&self) -> usize {
        self.texts.len() - self.free.len()
    }

    /// Always false, because the empty name always exists.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// All names in order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(|text| &**text)
    }
}

impl From<Vec<String>> for Names {
    fn from(texts: Vec<String>) -> Names {
        let mut names = Names::default();
        // The first one is the empty name. A name that occurs twice has two ids.
        for text in texts.iter().skip(1) {
            match names.find(text) {
                Some(_) => names.another(text),
                None => names.intern(text),
            };
        }
        names
    }
}

impl From<Names> for Vec<String> {
    fn from(names: Names) -> Vec<String> {
        names.texts.into_iter().map(String::from).collect()
    }
}
