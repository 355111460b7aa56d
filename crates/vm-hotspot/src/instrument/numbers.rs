//! Numbers for inserted code: of methods, by name, and of the call sites of each class.
//!
//! Methods with the same names have the same number, whichever loader their class has. A class that is changed again
//! keeps its sites. Names of methods are charged to the budget.

use std::sync::Arc;

use locks::{Mutex, MutexGuard, Rank};
use rustc_hash::{FxHashMap, FxHashSet};
use vmpi::{ClassId, Memory, Worth};

use crate::vm::costs;

/// Low bits of a site's number, which count sites.
pub(crate) const SITE_BITS: u32 = 28;

/// A method that was given a number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NumberedMethod {
    /// Class name with slashes.
    pub class: String,
    /// Method name.
    pub name: String,
    /// Method descriptor.
    pub descriptor: String,
}

/// Numbers handed out while classes are instrumented; one for the process.
#[derive(Debug)]
pub struct Numbers(Mutex<NumbersInner>);

impl Default for Numbers {
    fn default() -> Self {
        Self(Mutex::new(Rank::Numbers, NumbersInner::default()))
    }
}

#[derive(Debug, Default)]
struct NumbersInner {
    memory: Arc<Memory>,
    /// How much of it the methods take.
    charged: u64,
    /// Methods without memory since the last report.
    nameless: u64,
    methods: Vec<Arc<NumberedMethod>>,
    by_method: FxHashMap<Arc<NumberedMethod>, u32>,
    /// Upper bound of the number of sites of all classes.
    sites: u64,
    /// Sites of classes that were changed after they were loaded.
    sites_of: FxHashMap<ClassId, Sites>,
    /// Sites in constructors that make objects of their own class: descriptors of the constructors.
    own: FxHashMap<i64, Box<[u8]>>,
    refused: Refused,
    /// The first names that were ever in `refused`, at most [`MOST_REFUSED`].
    ever_refused: FxHashSet<String>,
}

/// Classes and methods that could not be instrumented since the last report.
#[derive(Debug, Default)]
pub(crate) struct Refused {
    /// How many.
    pub(crate) count: u64,
    /// The first of them, with the reason.
    pub(crate) named: Vec<String>,
}

/// How many are named between two reports.
const NAMED: usize = 16;
/// Names of refused classes and methods that are remembered. Others count each time that they are refused.
const MOST_REFUSED: usize = 4096;

impl Numbers {
    fn lock(&self) -> MutexGuard<'_, NumbersInner> {
        self.0.lock()
    }

    /// The number of a method, from 1; the same number for the same names. 0 if there is no memory: its calls are then
    /// counted for a method without a name.
    pub(super) fn method(&self, method: NumberedMethod) -> u32 {
        let mut inner = self.lock();
        if let Some(number) = inner.by_method.get(&method) {
            return *number;
        }
        let names = method.class.len() + method.name.len() + method.descriptor.len();
        let cost = costs::numbered_method(names);
        if !inner.memory.native.take(Worth::Names, cost) {
            inner.nameless += 1;
            return 0;
        }
        inner.charged += cost;
        let method = Arc::new(method);
        inner.methods.push(Arc::clone(&method));
        let number = inner.methods.len() as u32;
        inner.by_method.insert(method, number);
        number
    }

    /// Records that a class or method cannot be instrumented, and why; it is reported once.
    pub(crate) fn refuse(&self, what: &str, why: &str) {
        let mut inner = self.lock();
        let is_new = match inner.ever_refused.len() < MOST_REFUSED {
            true => inner.ever_refused.insert(what.to_owned()),
            false => !inner.ever_refused.contains(what),
        };
        if is_new {
            inner.refused.count += 1;
            if inner.refused.named.len() < NAMED {
                inner.refused.named.push(format!("{what}: {why}"));
            }
        }
    }

    /// A recording begins with this memory budget; classes get other numbers from now on.
    pub(crate) fn begin(&self, memory: &Arc<Memory>) {
        let mut inner = self.lock();
        memory.native.charge(inner.charged);
        inner.memory = Arc::clone(memory);
        inner.sites_of.clear();
        inner.own.clear();
        inner.ever_refused.clear();
        inner.refused = Refused::default();
    }

    /// Methods without memory since the last call.
    pub(crate) fn take_nameless(&self) -> u64 {
        std::mem::take(&mut self.lock().nameless)
    }

    /// The constructor with this descriptor makes objects of its own class at this site.
    pub(crate) fn note_own(&self, site: i64, descriptor: &[u8]) {
        self.lock().own.insert(site, descriptor.into());
    }

    /// The descriptor of the constructor with this site, if that is of the class of its objects.
    pub(crate) fn own(&self, site: i64) -> Option<Box<[u8]>> {
        self.lock().own.get(&site).cloned()
    }

    /// What could not be instrumented since the last call.
    pub(crate) fn take_refused(&self) -> Refused {
        std::mem::take(&mut self.lock().refused)
    }

    /// A method by its number.
    #[must_use]
    pub fn method_name(&self, number: u32) -> Option<Arc<NumberedMethod>> {
        self.lock()
            .methods
            .get((number as usize).checked_sub(1)?)
            .cloned()
    }

    /// The call sites of a class with this many bytes that is about to be changed. They are those of the previous
    /// change unless the class has grown: the VM never removes a constant from a class, so other sites would add a
    /// constant each time.
    pub(crate) fn sites_of(&self, class: Option<ClassId>, bytes: usize) -> Sites {
        // Each site is an instruction of at least two bytes.
        let most = bytes as u64 / 2;
        let mut inner = self.lock();
        let known = class.and_then(|class| inner.sites_of.get(&class).copied());
        known.filter(|sites| sites.most >= most).unwrap_or_else(|| {
            let first = inner.sites;
            inner.sites += most;
            Sites { first, most }
        })
    }

    /// Forgets the call sites of a class that was unloaded.
    pub(crate) fn forget_class(&self, class: ClassId) {
        self.lock().sites_of.remove(&class);
    }

    /// Remembers the call sites that a class has now.
    pub(crate) fn keep_sites(&self, class: ClassId, sites: Sites) {
        self.lock().sites_of.insert(class, sites);
    }
}

/// The range of numbers of one class's call sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sites {
    pub(super) first: u64,
    pub(super) most: u64,
}

impl Sites {
    /// The number of the class, to which the tracker adds the number of the site in its class. The low bits count
    /// sites, so contexts that differ in one site differ. The other bits of both numbers are a hash, so that different
    /// sums of sites rarely collide.
    pub(super) fn of_class(self) -> i64 {
        let mut noise = self.first.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        noise ^= noise >> 30;
        noise = noise.wrapping_mul(0xBF58_476D_1CE4_E5B9);
        noise ^= noise >> 27;
        (noise << SITE_BITS | (self.first & ((1 << SITE_BITS) - 1))).cast_signed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_stable_and_sites_differ() {
        let numbers = Numbers::default();
        let method = |name: &str| NumberedMethod {
            class: "A".into(),
            name: name.into(),
            descriptor: "()V".into(),
        };
        assert_eq!(numbers.method(method("a")), 1);
        assert_eq!(numbers.method(method("b")), 2);
        assert_eq!(numbers.method(method("a")), 1);
        assert_eq!(numbers.method_name(2).as_deref(), Some(&method("b")));
        assert_eq!(numbers.method_name(0), None);
        let classes = [2000, 10, 600].map(|bytes| numbers.sites_of(None, bytes));
        let low = classes.map(|sites| sites.of_class() & ((1 << SITE_BITS) - 1));
        // The tracker adds a number below half of a class's bytes.
        assert_eq!(
            low,
            [0, 1000, 1005],
            "the oldest site of a context stays distinct"
        );
    }

    #[test]
    fn names_of_refused_classes_have_a_bound_and_sites_go_with_their_class() {
        let numbers = Numbers::default();
        for n in 0..2 * MOST_REFUSED {
            numbers.refuse(&format!("C{n}"), "too long");
        }
        numbers.refuse("C0", "too long");
        let refused = numbers.take_refused();
        assert_eq!(refused.count, 2 * MOST_REFUSED as u64);
        assert_eq!(refused.named.len(), NAMED);
        assert_eq!(numbers.lock().ever_refused.len(), MOST_REFUSED);
        let sites = numbers.sites_of(None, 100);
        numbers.keep_sites(ClassId(7), sites);
        numbers.forget_class(ClassId(7));
        assert!(numbers.lock().sites_of.is_empty());
    }

    #[test]
    fn a_class_that_is_changed_again_has_the_sites_it_had() {
        let numbers = Numbers::default();
        let take = |class: u32, bytes: usize| {
            let sites = numbers.sites_of(Some(ClassId(class)), bytes);
            numbers.keep_sites(ClassId(class), sites);
            sites
        };
        let first = take(1, 300);
        let other = take(2, 200);
        assert_eq!([take(1, 300), take(2, 150)], [first, other]);
        // Another agent has added so much code that there may be more sites.
        let longer = take(1, 400);
        assert_eq!((longer.first, longer.most), (250, 200));
        assert_eq!(take(1, 400), longer);
    }
}
