//! New names for application classes, their fields and methods; with a map in the format of ProGuard and R8, which
//! `--mapping` reads.

use super::shapes::Shape;
use super::texts::Texts;
use crate::compare::identity::matches_any;
use hprof::{BasicType, ObjectId, readable_class_name};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::fmt::Write;

/// New names by text id, and the map.
#[derive(Clone, Debug, Default)]
pub struct Names {
    new: FxHashMap<u64, Vec<u8>>,
    /// By readable name.
    classes: BTreeMap<String, Renamed>,
}

/// A class with a new name.
#[derive(Clone, Debug, Default)]
struct Renamed {
    new: String,
    /// Type, name, new name.
    fields: Vec<[String; 3]>,
    /// The methods on stacks: name, new name.
    methods: BTreeMap<String, String>,
    source: Option<String>,
}

/// Words are numbered in the order in which they occur.
#[derive(Default)]
struct Words(FxHashMap<String, String>);

impl Words {
    fn get(&mut self, prefix: char, word: &str) -> String {
        let next = self.0.len() + 1;
        let new = self.0.entry(word.to_owned());
        new.or_insert_with(|| format!("{prefix}{next}")).clone()
    }
}

/// Renames `shop.Order$Line` to `p1.C1$C2`: the same word always has the same new word.
struct ClassNames<'a> {
    packages: Words,
    classes: Words,
    hidden: FxHashMap<String, usize>,
    except: &'a [String],
}

impl ClassNames<'_> {
    /// A readable name; arrays are renamed by their element.
    fn rename(&mut self, name: &str) -> String {
        let base = name.trim_end_matches("[]");
        let primitive = BasicType::ALL.iter().any(|k| k.name() == base);
        if primitive || matches_any(self.except, base) {
            return name.to_owned();
        }
        let dims = &name[base.len()..];
        let (package, class) = base.rsplit_once('.').unwrap_or(("", base));
        let mut new = String::new();
        for word in package.split('.').filter(|w| !w.is_empty()) {
            new.push_str(&self.packages.get('p', word));
            new.push('.');
        }
        for (n, word) in class.split('$').enumerate() {
            if n > 0 {
                new.push('$');
            }
            // Numbers of anonymous classes and words of the JVM reveal nothing.
            let (word, hidden) = match word.split_once('+') {
                Some((word, address)) => (word, Some(address)),
                None => (word, None),
            };
            if word.is_empty() || word == "Lambda" || word.bytes().all(|b| b.is_ascii_digit()) {
                new.push_str(word);
            } else {
                new.push_str(&self.classes.get('C', word));
            }
            // The addresses of hidden classes distinguish classes of the same name.
            if let Some(address) = hidden {
                let next = self.hidden.len() + 1;
                let number = *self.hidden.entry(address.to_owned()).or_insert(next);
                let _ = write!(new, "+0x{number:x}");
            }
        }
        new + dims
    }
}

/// A name as the file spells it, renamed: `[Lshop/Order;`, `shop/Order`, `shop.Order`.
fn respell(raw: &str, names: &mut ClassNames<'_>) -> String {
    let dims = raw.bytes().take_while(|b| *b == b'[').count();
    let body = &raw[dims..];
    if dims > 0 {
        return match body.strip_prefix('L').and_then(|b| b.strip_suffix(';')) {
            Some(class) => format!("{}L{};", &raw[..dims], respell(class, names)),
            None => raw.to_owned(),
        };
    }
    let readable = readable_class_name(raw);
    let renamed = names.rename(&readable);
    if renamed == readable {
        raw.to_owned()
    } else if raw.contains('/') {
        renamed.replace('.', "/")
    } else {
        renamed
    }
}

/// The classes in a method signature, renamed.
fn resign(signature: &str, names: &mut ClassNames<'_>) -> String {
    let mut out = String::new();
    let mut rest = signature;
    while let Some(at) = rest.find('L') {
        out.push_str(&rest[..=at]);
        rest = &rest[at + 1..];
        let Some(end) = rest.find(';') else { break };
        out.push_str(&respell(&rest[..end], names));
        rest = &rest[end..];
    }
    out + rest
}

impl Names {
    pub(super) fn plan(
        texts: &Texts<'_>,
        shapes: &FxHashMap<u64, Shape>,
        except: &[String],
    ) -> Names {
        let mut spell = ClassNames {
            packages: Words::default(),
            classes: Words::default(),
            hidden: FxHashMap::default(),
            except,
        };
        let is_public = |class: u64| {
            let name = shapes.get(&class).map_or("", |s| s.name.as_str());
            name.is_empty() || matches_any(except, name.trim_end_matches("[]"))
        };
        let mut names = Names::default();
        // Names that a class of the platform uses stay: the text is shared.
        let mut shared: FxHashSet<u64> = FxHashSet::default();
        let mut members: Words = Words::default();
        let mut loaded = texts.loaded.clone();
        loaded.sort_by_key(|(_, name)| texts.text(*name));
        for (class, shape) in shapes {
            if is_public(*class) {
                shared.extend(shape.members().map(|(name, _)| name));
            }
        }
        for (serial, [method, _, source]) in &texts.frames {
            if texts.serials.get(serial).is_none_or(|c| is_public(*c)) {
                shared.extend([method, source]);
            }
        }
        for (class, name) in &loaded {
            let raw = texts.text(*name);
            let new = respell(&raw, &mut spell);
            if new == raw {
                shared.insert(*name);
                continue;
            }
            let readable = readable_class_name(&raw);
            let renamed = readable_class_name(&new);
            names.new.insert(*name, new.into_bytes());
            let entry = names.classes.entry(readable).or_default();
            entry.new = renamed;
            let Some(shape) = shapes.get(class) else {
                continue;
            };
            for (field, kind) in shape.members().filter(|f| !shared.contains(&f.0)) {
                let old = texts.text(field);
                // What the VM adds, such as `<resolved_references>`.
                if old.starts_with('<') || old.is_empty() {
                    continue;
                }
                let new = members.get('m', &old);
                names.new.insert(field, new.clone().into_bytes());
                let row = [kind.name().to_owned(), old, new];
                if !entry.fields.contains(&row) {
                    entry.fields.push(row);
                }
            }
        }
        for (serial, [method, signature, source]) in &texts.frames {
            let old = texts.text(*signature);
            let new = resign(&old, &mut spell);
            if new != old {
                names.new.insert(*signature, new.into_bytes());
            }
            let Some(class) = texts.serials.get(serial).filter(|c| !is_public(**c)) else {
                continue;
            };
            let class = shapes.get(class).map_or("", |shape| shape.name.as_str());
            let mut entry = names.classes.get_mut(class);
            for (id, prefix) in [(method, 'm'), (source, 's')] {
                let old = texts.text(*id);
                if !shared.contains(id) && !old.starts_with('<') && !old.is_empty() {
                    let new = members.get(prefix, &old);
                    names.new.insert(*id, new.clone().into_bytes());
                    match &mut entry {
                        Some(class) if id == method => drop(class.methods.insert(old, new)),
                        Some(class) => class.source = Some(old),
                        None => {}
                    }
                }
            }
        }
        names
    }

    pub(super) fn new_text(&self, id: ObjectId) -> Option<&[u8]> {
        self.new.get(&id.0).map(Vec::as_slice)
    }

    /// The map, old to new, as ProGuard and R8 write it. Methods have no types: all that have a name have the same new
    /// name.
    pub fn mapping(&self) -> String {
        let mut out =
            String::from("# tenure redact: old names -> new names. Keep this file secret.\n");
        for (old, class) in &self.classes {
            if old.ends_with("[]") {
                continue;
            }
            let _ = writeln!(out, "{old} -> {}:", class.new);
            if let Some(source) = &class.source {
                // Quoted, so that a name from a hostile dump adds no line.
                let _ = writeln!(out, "# {{\"id\":\"sourceFile\",\"fileName\":{source:?}}}");
            }
            for [kind, old, new] in &class.fields {
                let _ = writeln!(out, "    {kind} {old} -> {new}");
            }
            for (old, new) in &class.methods {
                let _ = writeln!(out, "    void {old}() -> {new}");
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_classes_of_one_name_stay_apart() {
        let mut names = ClassNames {
            packages: Words::default(),
            classes: Words::default(),
            hidden: FxHashMap::default(),
            except: &[],
        };
        let old = ["Shop$Hid+0x7c1", "Shop$Hid+0x7c2", "Shop$$Lambda+0x7c1"];
        let new = old.map(|name| names.rename(name));
        assert_eq!(new, ["C1$C2+0x1", "C1$C2+0x2", "C1$$Lambda+0x1"]);
        assert_eq!(names.rename("Shop$Hid+0x7c2[]"), "C1$C2+0x2[]");
    }
}
