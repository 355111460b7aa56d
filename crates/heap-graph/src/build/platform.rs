//! Facts about classes of the platform that no dump states: fields that HotSpot adds to them (`ALL_INJECTED_FIELDS` in
//! its `javaClasses.hpp`), and fields with a cache line of their own.

use crate::ClassInfo;
use crate::layout::{SizeRules, up};
use hprof::BasicType;
use std::cmp::Reverse;

/// Bytes of padding before and after `@Contended` fields.
pub(super) const PADDING: u64 = 128;

/// The fields of a class in the heap.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) ordinary: Vec<BasicType>,
    /// Fields with a cache line of their own, after the others.
    pub(super) contended: Vec<BasicType>,
    /// Whether JDK 8 to 14 put references first and did not fill the gap after them.
    pub(super) references_first: bool,
}

impl Fields {
    /// As the dump lists them.
    pub(super) fn listed(class: &ClassInfo) -> Fields {
        Fields {
            ordinary: class.fields.iter().map(|f| f.kind).collect(),
            ..Fields::default()
        }
    }

    /// As HotSpot lays them out: since JDK 16 when `packs`; a pointer is as wide as an id.
    pub(super) fn of(class: &ClassInfo, packs: bool, id_bytes: u64) -> Fields {
        let mut fields = Fields {
            references_first: class.name == "java.lang.ClassLoader",
            ..Fields::default()
        };
        let apart = is_apart(&class.name);
        // Until JDK 18, which has no `holder`.
        let random = class.name == "java.lang.Thread" && !has(class, "holder");
        for field in &class.fields {
            if apart || random && field.name.starts_with("threadLocalRandom") {
                fields.contended.push(field.kind);
            } else {
                fields.ordinary.push(field.kind);
            }
        }
        let pointer = if id_bytes == 8 {
            BasicType::Long
        } else {
            BasicType::Int
        };
        let added = injected(class, packs, pointer);
        fields.ordinary.extend(added.into_iter().flatten());
        fields
    }

    /// The end of an object whose ordinary fields end at `end`: contended fields follow between two paddings, and no
    /// gap is filled.
    pub(super) fn contended_end(&self, end: u64, rules: &SizeRules) -> u64 {
        if self.contended.is_empty() {
            return end;
        }
        let mut sizes: Vec<u64> = self.contended.iter().map(|k| rules.field(*k)).collect();
        sizes.sort_unstable_by_key(|size| Reverse(*size));
        let place = |end, size| up(end, size) + size;
        sizes.into_iter().fold(end + PADDING, place) + PADDING
    }
}

/// The fields that HotSpot adds, as far as they are the same in all versions that can be distinguished
/// apart: the state of virtual threads since JDK 19, the dependent code of a call site since its
/// context is gone (JDK 25), the method of a resolved name and, where Java has no field for it, its class.
fn injected(class: &ClassInfo, packs: bool, pointer: BasicType) -> [Option<BasicType>; 4] {
    use BasicType::{Byte, Int, Long, Object, Short};
    match class.name.as_str() {
        "java.lang.ClassLoader" | "java.lang.Module" if class.dumped => {
            [Some(pointer), None, None, None]
        }
        "java.lang.Thread" if has(class, "holder") => {
            [Some(pointer), Some(Int), Some(Short), Some(Byte)]
        }
        "java.lang.invoke.ResolvedMethodName" if class.dumped => {
            let holder = (!has(class, "vmholder")).then_some(Object);
            [Some(pointer), holder, None, None]
        }
        "java.lang.InternalError" if packs => [Some(Byte), None, None, None],
        "java.lang.invoke.CallSite" if packs && !has(class, "context") => {
            [Some(pointer), Some(Long), None, None]
        }
        _ => [None; 4],
    }
}

fn has(class: &ClassInfo, field: &str) -> bool {
    class.fields.iter().any(|f| f.name == field)
}

/// Classes whose fields all have a cache line of their own, since JDK 8.
fn is_apart(name: &str) -> bool {
    const APART: [&str; 3] = [
        "java.util.concurrent.ConcurrentHashMap$CounterCell",
        "java.util.concurrent.Exchanger$Node",
        "java.util.concurrent.atomic.Striped64$Cell",
    ];
    APART.contains(&name)
}

/// The most bytes of fields that HotSpot adds to a class besides those of [`Fields::of`]. Other classes have none, but
/// older VMs leave a gap of up to eight bytes between the fields of a class and those of its superclass.
pub(super) fn most_injected(name: &str) -> u64 {
    match name {
        "java.lang.Class"
        | "java.lang.ClassLoader"
        | "java.lang.invoke.MemberName"
        | "java.lang.invoke.ResolvedMethodName"
        | "java.lang.StackFrameInfo"
        | "java.lang.Thread"
        | "java.lang.VirtualThread" => 72,
        _ => 8,
    }
}

/// Other classes of the platform with `@Contended` fields, which differ from version to version.
pub(super) fn may_be_contended(name: &str) -> bool {
    const CONTENDED: [&str; 5] = [
        "java.lang.Thread",
        "java.util.concurrent.ForkJoinPool",
        "java.util.concurrent.ForkJoinPool$WorkQueue",
        "java.util.concurrent.SubmissionPublisher$BufferedSubscription",
        "jdk.internal.misc.CarrierThread",
    ];
    CONTENDED.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use BasicType::{Boolean, Byte, Int, Long, Object, Short};

    fn class(name: &str, fields: &[(&str, BasicType)]) -> ClassInfo {
        let mut class = super::super::classes::blank(hprof::ObjectId(1), name.to_owned());
        class.dumped = true;
        class.fields = fields
            .iter()
            .map(|(name, kind)| crate::FieldInfo {
                name: (*name).to_owned(),
                kind: *kind,
            })
            .collect();
        class
    }

    #[test]
    fn a_thread_has_contended_fields_until_jdk_18_and_added_ones_since_19() {
        let random = [
            ("eetop", Long),
            ("threadLocalRandomSeed", Long),
            ("threadLocalRandomProbe", Int),
        ];
        let old = Fields::of(&class("java.lang.Thread", &random), true, 8);
        assert_eq!((old.ordinary, old.contended), (vec![Long], vec![Long, Int]));
        let mut fields = random.to_vec();
        fields.push(("holder", Object));
        let new = Fields::of(&class("java.lang.Thread", &fields), true, 8);
        let want = vec![Long, Long, Int, Object, Long, Int, Short, Byte];
        assert_eq!((new.ordinary, new.contended), (want, vec![]));
        let other = Fields::of(&class("mine.Thread", &random), true, 8);
        assert_eq!(other.ordinary, vec![Long, Long, Int]);
    }

    #[test]
    fn added_fields_depend_on_the_version_and_the_width_of_pointers() {
        let of = |class: &ClassInfo, packs, width| Fields::of(class, packs, width).ordinary;
        let loader = class("java.lang.ClassLoader", &[("b", Boolean)]);
        assert_eq!(of(&loader, false, 8), vec![Boolean, Long]);
        assert_eq!(of(&loader, false, 4), vec![Boolean, Int]);
        let error = class("java.lang.InternalError", &[]);
        assert_eq!(of(&error, false, 8), vec![]);
        assert_eq!(of(&error, true, 8), vec![Byte], "since JDK 14");
        let site = class("java.lang.invoke.CallSite", &[("context", Object)]);
        assert_eq!(of(&site, true, 8), vec![Object], "until JDK 24");
        let site = class("java.lang.invoke.CallSite", &[("target", Object)]);
        assert_eq!(of(&site, true, 8), vec![Object, Long, Long], "since JDK 25");
    }
}
