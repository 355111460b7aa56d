//! Facts about each object that the second pass finds besides references. They are not read before the search has
//! begun, so those of a large heap go to unlinked temporary files. Facts about objects with successive numbers are
//! written and read in one call. (Pages of a mapping would count as memory of this process until the kernel has written
//! them.)

use crate::raw::{BigVec, Budget, Plain, Shareable, SharedSlice, bytes_of, bytes_of_mut};
use hprof::source::{read_exact_at, write_all_at};
use std::fs::File;
use std::io;

/// Objects whose facts are read in one call, and the most that a worker collects.
pub(crate) const BLOCK: usize = 1 << 14;
/// Fewer elements than this are stored through the mapping of the file, without a system call.
const FEW: usize = 64;

/// An array with an element per object: in memory, or in a file that is also mapped.
pub(crate) struct Facts<'b, T: Plain> {
    array: BigVec<'b, T>,
    file: Option<File>,
}

impl<'b, T: Shareable + Default> Facts<'b, T> {
    /// `len` zeros.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub(crate) fn zeroed(len: usize, budget: &'b Budget) -> io::Result<Facts<'b, T>> {
        let (array, file) = BigVec::for_later(len, budget)?;
        Ok(Facts { array, file })
    }

    /// Whether there are no elements at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.array.is_empty()
    }

    /// For the workers of a pass.
    pub(crate) fn share(&mut self) -> SharedFacts<'_, T> {
        SharedFacts {
            len: self.array.len(),
            array: SharedSlice::new(&mut self.array),
            file: self.file.as_ref(),
        }
    }

    /// The elements of at most [`BLOCK`] objects from number `first` on.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn read(&self, first: usize, out: &mut Vec<T>) -> io::Result<()> {
        let end = self.array.len().min(first + BLOCK);
        match &self.file {
            None => {
                out.clear();
                out.extend_from_slice(self.array.get(first..end).unwrap_or_default());
                Ok(())
            }
            Some(file) => {
                out.resize(end.saturating_sub(first), T::default());
                read_exact_at(file, bytes_of_mut(out), (first * size_of::<T>()) as u64)
            }
        }
    }
}

/// Facts while several threads write them.
pub(crate) struct SharedFacts<'a, T> {
    array: SharedSlice<'a, T>,
    len: usize,
    file: Option<&'a File>,
}

impl<T: Shareable> SharedFacts<'_, T> {
    /// Stores the facts of the objects from number `first` on. An array without elements takes none.
    fn store(&self, first: u64, values: &[T]) -> io::Result<()> {
        let fits = first as usize + values.len() <= self.len;
        match self.file.filter(|_| fits && values.len() >= FEW) {
            Some(file) => write_all_at(file, bytes_of(values), first * size_of::<T>() as u64),
            None => {
                let mut numbers = first..;
                values
                    .iter()
                    .for_each(|value| self.array.set(numbers.next().unwrap_or(u64::MAX), *value));
                Ok(())
            }
        }
    }
}

/// The facts about all objects. An array is empty if all its elements would be zero or equal.
pub(crate) struct ObjectFacts<'b> {
    /// Class of each object, low and high bits.
    class_low: Facts<'b, u16>,
    class_high: Facts<'b, u8>,
    /// Size of each array in units of the alignment, 0 for other objects, [`LARGE`] for those in `large`.
    units: Facts<'b, u16>,
    traces: Facts<'b, u32>,
    /// Number and size in units of large arrays, by number.
    pub(crate) large: Vec<(u64, u64)>,
    /// Number and file offset, by number.
    pub(crate) anchors: Vec<(u64, u64)>,
}

/// Marks an array whose size does not fit.
pub(crate) const LARGE: u16 = u16::MAX;

impl<'b> ObjectFacts<'b> {
    /// For `n` objects of this many classes.
    ///
    /// # Errors
    /// When a file cannot be created.
    pub(crate) fn new(
        n: usize,
        classes: usize,
        traces: bool,
        budget: &'b Budget,
    ) -> io::Result<ObjectFacts<'b>> {
        let if_so = |wanted: bool| if wanted { n } else { 0 };
        Ok(ObjectFacts {
            class_low: Facts::zeroed(n, budget)?,
            class_high: Facts::zeroed(if_so(classes > 1 << 16), budget)?,
            units: Facts::zeroed(n, budget)?,
            traces: Facts::zeroed(if_so(traces), budget)?,
            large: Vec::new(),
            anchors: Vec::new(),
        })
    }

    /// Whether objects have different trace serials.
    pub(crate) fn has_traces(&self) -> bool {
        !self.traces.is_empty()
    }

    /// For the workers of a pass.
    pub(crate) fn share(&mut self) -> SharedObjectFacts<'_> {
        SharedObjectFacts {
            class_low: self.class_low.share(),
            class_high: self.class_high.share(),
            units: self.units.share(),
            traces: self.traces.share(),
        }
    }

    /// Calls `each` with the number, class and array size in units of every object, in order.
    ///
    /// # Errors
    /// When a file cannot be read, and those of `each`.
    pub(crate) fn each(
        &self,
        mut each: impl FnMut(u64, u32, u16) -> io::Result<()>,
    ) -> io::Result<()> {
        let (mut low, mut high, mut units) = (Vec::new(), Vec::new(), Vec::new());
        for first in (0..self.class_low.array.len()).step_by(BLOCK) {
            self.class_low.read(first, &mut low)?;
            self.class_high.read(first, &mut high)?;
            self.units.read(first, &mut units)?;
            for (k, (low, units)) in low.iter().zip(&units).enumerate() {
                let high = high.get(k).copied().unwrap_or(0);
                let class = u32::from(*low) | u32::from(high) << 16;
                each((first + k) as u64, class, *units)?;
            }
        }
        Ok(())
    }

    /// Calls `each` with the trace serial of every object, in order, if they differ.
    ///
    /// # Errors
    /// As for [`each`](Self::each).
    pub(crate) fn each_trace(&self, mut each: impl FnMut(u32) -> io::Result<()>) -> io::Result<()> {
        let mut traces = Vec::new();
        for first in (0..self.traces.array.len()).step_by(BLOCK) {
            self.traces.read(first, &mut traces)?;
            traces.iter().try_for_each(|trace| each(*trace))?;
        }
        Ok(())
    }
}

/// The facts about all objects while several threads write them.
pub(crate) struct SharedObjectFacts<'a> {
    class_low: SharedFacts<'a, u16>,
    class_high: SharedFacts<'a, u8>,
    units: SharedFacts<'a, u16>,
    traces: SharedFacts<'a, u32>,
}

/// Facts of one worker about objects with successive numbers.
#[derive(Default)]
pub(crate) struct Run {
    first: u64,
    class_low: Vec<u16>,
    class_high: Vec<u8>,
    units: Vec<u16>,
    traces: Vec<u32>,
}

impl Run {
    /// Adds an object. If it does not follow the collected ones, these are stored first.
    ///
    /// # Errors
    /// When a file cannot be written.
    #[inline(always)]
    pub(crate) fn push(
        &mut self,
        all: &SharedObjectFacts<'_>,
        object: u64,
        class: u32,
        units: u16,
        trace: u32,
    ) -> io::Result<()> {
        let mut stored = Ok(());
        if object != self.first + self.class_low.len() as u64 || self.class_low.len() == BLOCK {
            stored = self.store(all);
            self.first = object;
        }
        self.class_low.push(class as u16);
        if all.class_high.len > 0 {
            self.class_high.push((class >> 16) as u8);
        }
        self.units.push(units);
        if all.traces.len > 0 {
            self.traces.push(trace);
        }
        stored
    }

    /// Stores the collected facts.
    ///
    /// # Errors
    /// When a file cannot be written.
    #[inline(never)]
    pub(crate) fn store(&mut self, all: &SharedObjectFacts<'_>) -> io::Result<()> {
        let stored = all.class_low.store(self.first, &self.class_low);
        let stored = stored.and(all.class_high.store(self.first, &self.class_high));
        let stored = stored.and(all.units.store(self.first, &self.units));
        let stored = stored.and(all.traces.store(self.first, &self.traces));
        self.class_low.clear();
        self.class_high.clear();
        self.units.clear();
        self.traces.clear();
        stored
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_come_back_from_memory_and_from_files_whatever_the_order() {
        let dir = std::env::temp_dir();
        let n = 100_000;
        for in_file in [100_001, 100_000] {
            let budget = Budget::for_test(&dir, in_file);
            let mut facts = ObjectFacts::new(n, 1 << 17, true, &budget).unwrap();
            assert_eq!(facts.units.file.is_some(), in_file == 100_000);
            let class = |object: u64| (object * 7 % (1 << 17)) as u32;
            let all = facts.share();
            let mut run = Run::default();
            // A long run, then every third object alone; the last one is at the end of the arrays.
            let alone = (50_000..n as u64).rev().step_by(3);
            for object in (0..40_000).chain(alone.clone()) {
                let (units, trace) = (object as u16, object as u32 * 3);
                run.push(&all, object, class(object), units, trace).unwrap();
            }
            run.store(&all).unwrap();
            let known = |object: u64| {
                object < 40_000 || object >= 50_000 && (n as u64 - 1 - object).is_multiple_of(3)
            };
            let mut count = 0u64;
            let check = |object, found, units| {
                let want = if known(object) {
                    (class(object), object as u16)
                } else {
                    (0, 0)
                };
                assert_eq!((found, units), want, "{object}");
                assert_eq!(object, count);
                count += 1;
                Ok(())
            };
            facts.each(check).unwrap();
            assert_eq!(count, n as u64);
            let mut object = 0;
            let trace = |trace| {
                assert_eq!(trace, if known(object) { object as u32 * 3 } else { 0 });
                object += 1;
                Ok(())
            };
            facts.each_trace(trace).unwrap();
            assert_eq!(object, n as u64);
        }
    }
}
