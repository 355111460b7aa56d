//! The native and kernel frames of a sample: taken in the signal handler, named by the thread that counts samples.

use std::ffi::c_void;
use std::fs;
use std::sync::Arc;

use vmpi::Memory;

use crate::cpu::kernel_events::{self, MOST_KERNEL};
use crate::cpu::native_walk::Walker;
use crate::cpu::registers::Registers;
use crate::cpu::slots::Slot;
use crate::cpu::unwind_tables;
use crate::native::symbols::{self, Place, readable};
use crate::vm::config::NativeStacks;
use crate::vm::hotspot::HotSpot;

/// How native frames are taken.
#[derive(Debug)]
pub(super) struct NativeFrames {
    walker: Walker,
    has_kernel: bool,
}

impl NativeFrames {
    /// Prepares the requested kinds of frames, and reports what is not available. Not for signal handlers.
    pub(super) fn prepare(hotspot: &HotSpot) -> Option<Self> {
        let wanted = hotspot.config.native_stacks;
        if wanted == NativeStacks::None {
            return None;
        }
        let walker = Walker::new().map_err(|error| {
            hotspot.degrade(&format!(
                "samples have no native frames: the memory of the process cannot be read ({error})"
            ));
        });
        let walker = walker.ok()?;
        unwind_tables::follow_libraries(&hotspot.memory);
        let is_sampled = hotspot.config.samples.is_some();
        let why_not = (wanted == NativeStacks::Kernel && is_sampled).then(kernel_events::why_not);
        if let Some(Some(why)) = &why_not {
            hotspot.degrade(&format!("CPU samples have no kernel frames: {why}"));
        }
        Some(Self {
            walker,
            has_kernel: why_not == Some(None),
        })
    }

    /// For samples at safepoints, which have no such frames; reports this if the options request some.
    pub(super) fn none_at_safepoints(hotspot: &HotSpot) -> Option<Self> {
        if hotspot.config.native_stacks != NativeStacks::None {
            hotspot.degrade("samples that are taken at safepoints have no native frames");
        }
        None
    }

    pub(super) fn has_kernel(&self) -> bool {
        self.has_kernel
    }

    /// In the handler: writes the frames of the interrupted thread into its slot. Returns the number of periods that
    /// its event stands for, and the registers where the VM's own code has called native code.
    ///
    /// # Safety
    /// `context` is what the system has given to a signal handler, and the caller is the slot's only user.
    pub(super) unsafe fn take(
        &self,
        slot: &Slot,
        context: *const c_void,
        event: Option<i32>,
    ) -> (u32, Option<Registers>) {
        // SAFETY: the caller's promise.
        let addresses = unsafe { &mut *slot.addresses.get() };
        let (kernel, records) = match event {
            Some(file) => kernel_events::take_last(file, &mut addresses[..MOST_KERNEL]),
            None => (0, 1),
        };
        // SAFETY: the caller's promise.
        let native = unsafe { self.walker.walk(context, &mut addresses[kernel..]) };
        slot.native.set([kernel as u16, native.count as u16]);
        (records, native.caller)
    }

    /// Updates the list of libraries, which may have been loaded or unloaded.
    pub(super) fn follow_libraries(&self, memory: &Arc<Memory>) {
        if symbols::all().follow_libraries(memory) {
            unwind_tables::follow_libraries(memory);
        }
    }

    /// The functions of the frames of a slot, innermost first. The caller is its only user.
    pub(super) fn places(
        &self,
        slot: &Slot,
        names: &mut KernelNames,
        memory: &Arc<Memory>,
    ) -> Vec<Place> {
        let [kernel, native] = slot.native.get().map(usize::from);
        if kernel + native == 0 {
            return Vec::new();
        }
        // SAFETY: the caller's promise.
        let addresses = unsafe { &*slot.addresses.get() };
        let (of_kernel, others) = addresses.split_at(kernel);
        let mut places: Vec<Place> = of_kernel.iter().map(|pc| names.place(*pc as u64)).collect();
        // Frames without a name are not distinguished.
        places.dedup();
        let mut symbols = symbols::all();
        // What is in no library is code of the VM, or the chain had ended before.
        let others = others[..native].iter();
        places.extend(others.map_while(|pc| symbols.place_in_function(*pc, memory)));
        places
    }
}

/// The name of the kernel in place of a library's name.
const KERNEL: &str = "kernel";
/// An address farther than this behind the start of a function belongs to another one, which is not in the list.
const MOST_BEHIND: u64 = 1 << 20;

/// Names of the kernel's functions, read when the first is looked up.
#[derive(Debug, Default)]
pub(super) struct KernelNames(Option<KernelFunctions>);

/// The kernel's functions, by address.
#[derive(Debug, Default)]
struct KernelFunctions {
    begins: Vec<u64>,
    /// The end of each name in `text`.
    ends: Vec<u32>,
    text: String,
}

impl KernelNames {
    fn place(&mut self, address: u64) -> Place {
        let functions = self.0.get_or_insert_with(|| {
            let list = fs::read_to_string("/proc/kallsyms");
            KernelFunctions::of(&list.unwrap_or_default())
        });
        let name = functions.name(address);
        Place {
            library: Arc::from(KERNEL),
            function: name.map_or_else(|| symbols::NO_NAME.to_owned(), readable),
        }
    }
}

impl KernelFunctions {
    /// Reads the kernel's list: in each line an address, a letter for the kind, and a name. Without permission to see
    /// addresses they are all zero.
    fn of(list: &str) -> Self {
        let mut all: Vec<(u64, &str)> = list.lines().filter_map(Self::function).collect();
        all.sort_by_key(|(begin, _)| *begin);
        all.dedup_by_key(|(begin, _)| *begin);
        let mut functions = Self::default();
        for (begin, name) in all {
            functions.text.push_str(name);
            functions.begins.push(begin);
            functions.ends.push(functions.text.len() as u32);
        }
        functions.text.shrink_to_fit();
        functions
    }

    fn function(line: &str) -> Option<(u64, &str)> {
        let mut words = line.split_ascii_whitespace();
        let begin = u64::from_str_radix(words.next()?, 16).ok()?;
        let is_code = "tTwW".contains(words.next()?);
        (is_code && begin != 0).then_some((begin, words.next()?))
    }

    fn name(&self, address: u64) -> Option<&str> {
        let after = self.begins.partition_point(|begin| *begin <= address);
        let at = after.checked_sub(1)?;
        let is_near = address - self.begins[at] < MOST_BEHIND;
        let from = at.checked_sub(1).map_or(0, |at| self.ends[at]);
        is_near.then(|| &self.text[from as usize..self.ends[at] as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_of_the_kernel_is_the_last_that_begins_before_the_address() {
        let list = "ffffffff81000100 T second.isra.0\nffffffff81000000 t first\nffffffff81000050 D data\n\
                    ffffffffc0000000 t read_it\t[module]\nbad\n";
        let mut names = KernelNames(Some(KernelFunctions::of(list)));
        for (address, name) in [
            (0xffff_ffff_8100_0000, "first"),
            (0xffff_ffff_8100_00ff, "first"),
            (0xffff_ffff_8100_0180, "second"),
            (0xffff_ffff_c000_0001, "read_it"),
            (0xffff_ffff_8000_0000, symbols::NO_NAME),
            (0xffff_ffff_a000_0000, symbols::NO_NAME),
        ] {
            let place = names.place(address);
            assert_eq!((&*place.library, &*place.function), (KERNEL, name));
        }
    }

    #[test]
    fn hidden_addresses_have_no_names() {
        let list = "0000000000000000 T first\n0000000000000000 T second\n";
        let mut names = KernelNames(Some(KernelFunctions::of(list)));
        assert_eq!(
            names.place(0xffff_ffff_8100_0000).function,
            symbols::NO_NAME
        );
    }
}
