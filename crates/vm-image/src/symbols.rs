//! Names. A symbol's address is its id in the dump, as in the dumps that the VM writes itself.

use crate::fault::Fault;
use crate::memory::Address;
use crate::vm::Vm;
use rustc_hash::FxHashMap;

/// Symbols that were read.
pub(crate) struct Symbols {
    length: u64,
    body: u64,
    texts: FxHashMap<Address, Vec<u8>>,
    /// Names that the VM does not have as symbols of its own, by ids below every address.
    own: Vec<&'static str>,
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

    /// The id of a name of ours.
    pub(crate) fn own(&mut self, name: &'static str) -> Address {
        let at = self.own.iter().position(|one| *one == name);
        let at = at.unwrap_or_else(|| {
            self.own.push(name);
            self.own.len() - 1
        });
        at as Address + 1
    }

    /// All that were read, by id.
    pub(crate) fn all(&self) -> Vec<(Address, &[u8])> {
        let own = self.own.iter().enumerate();
        let own = own.map(|(i, name)| (i as Address + 1, name.as_bytes()));
        let read = self.texts.iter().map(|(id, text)| (*id, text.as_slice()));
        let mut all: Vec<_> = own.chain(read).collect();
        all.sort_unstable();
        all
    }
}
