//! Names. A symbol's address is its id in the dump, as in the dumps that the VM writes itself.

use crate::fault::Fault;
use crate::memory::Address;
use crate::vm::Vm;
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// Symbols that were read.
#[derive(Default)]
pub(crate) struct Symbols {
    length: u64,
    body: u64,
    texts: FxHashMap<Address, Vec<u8>>,
    /// Names that do not exist as symbols of the VM, with ids below every address.
    own: Vec<Cow<'static, [u8]>>,
}

impl Symbols {
    pub(crate) fn new(vm: &Vm<'_>) -> Result<Symbols, Fault> {
        Ok(Symbols {
            length: vm.tables.offset(&["Symbol._length"])?,
            body: vm.tables.offset(&["Symbol._body[0]", "Symbol._body"])?,
            texts: FxHashMap::default(),
            own: Vec::new(),
        })
    }

    /// The text of a symbol, which is modified UTF-8.
    pub(crate) fn text(&mut self, vm: &Vm<'_>, symbol: Address) -> Option<&[u8]> {
        if symbol == 0 {
            return None;
        }
        if !self.texts.contains_key(&symbol) {
            let len = vm.memory.u16(symbol.wrapping_add(self.length))?;
            let text = vm
                .memory
                .bytes(symbol.wrapping_add(self.body), len.into())?;
            self.texts.insert(symbol, text);
        }
        self.texts.get(&symbol).map(Vec::as_slice)
    }

    /// The text of a symbol that was read before.
    pub(crate) fn known(&self, symbol: Address) -> Option<&[u8]> {
        self.texts.get(&symbol).map(Vec::as_slice)
    }

    /// The id of an additional name.
    pub(crate) fn own(&mut self, name: &'static str) -> Address {
        let at = self.own.iter().position(|one| **one == *name.as_bytes());
        match at {
            Some(at) => at as Address + 1,
            None => self.add(Cow::Borrowed(name.as_bytes())),
        }
    }

    /// The id of one more name, in modified UTF-8.
    pub(crate) fn add(&mut self, name: Cow<'static, [u8]>) -> Address {
        self.own.push(name);
        self.own.len() as Address
    }

    /// All symbols that were read, by id.
    pub(crate) fn all(&self) -> Vec<(Address, &[u8])> {
        let own = self.own.iter().enumerate();
        let own = own.map(|(i, name)| (i as Address + 1, &**name));
        let read = self.texts.iter().map(|(id, text)| (*id, text.as_slice()));
        let mut all: Vec<_> = own.chain(read).collect();
        all.sort_unstable();
        all
    }
}
