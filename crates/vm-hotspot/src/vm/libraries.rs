//! Native functions as methods, and their libraries as classes: one table for native allocations and for the
//! native frames of samples.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use vmpi::{ClassId, Frame, Location, MethodId, MethodInfo};

use crate::native::symbols::Place;
use crate::vm::registry::Registry;

/// The numbers of libraries and functions that have one.
#[derive(Default)]
pub(crate) struct Libraries {
    classes: FxHashMap<Arc<str>, ClassId>,
    functions: FxHashMap<(ClassId, String), MethodId>,
}

impl Registry {
    /// A library as a class, which has no objects and does not exist in the VM.
    pub(crate) fn library(&mut self, name: &Arc<str>) -> ClassId {
        if let Some(id) = self.libraries.classes.get(name) {
            return *id;
        }
        let id = self.add_class(&format!("L{name};"));
        self.libraries.classes.insert(Arc::clone(name), id);
        id
    }

    /// A native frame.
    pub(crate) fn native_frame(&mut self, place: &Place) -> Frame {
        Frame {
            method: self.native_function(&place.library, &place.function),
            location: Location::Native,
        }
    }

    /// A function of a library as a method; 0 when there is no memory for another name.
    fn native_function(&mut self, library: &Arc<str>, function: &str) -> MethodId {
        let class = self.library(library);
        let key = (class, function.to_owned());
        if let Some(id) = self.libraries.functions.get(&key) {
            return *id;
        }
        let info = MethodInfo {
            class,
            name: key.1.clone(),
            descriptor: String::new(),
            is_native: true,
        };
        let Some(id) = self.add_named(info) else {
            return MethodId(0);
        };
        self.libraries.functions.insert(key, id);
        id
    }
}
