//! Heap walks: the VM calls one visitor while all threads are stopped.
//!
//! The visitor may not use JNI and almost no JVMTI. Tags are read and written in place.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use crate::env::{Env, Live, check};
use crate::error::Result;
use crate::jni::Object;
use crate::sys::{
    HeapCallbacks, RawObject, ReferenceInfo, StackReferenceInfo, Value, jvmti_slot as slot,
    table_call,
};

/// Whether to continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    /// Continue, also into the object.
    On,
    /// Continue, but not into this object.
    Around,
    /// Stop the walk.
    Stop,
}

impl Walk {
    fn code(self) -> i32 {
        match self {
            Self::On => 0x100,
            Self::Around => 0,
            Self::Stop => 0x8000,
        }
    }
}

/// One reference or root as JVMTI reports it.
#[derive(Debug)]
pub struct Reference<'a> {
    /// `jvmtiHeapReferenceKind`.
    pub kind: i32,
    /// Index of the field, element or constant, -1 where it has none.
    pub index: i32,
    /// For stack and JNI locals: (thread tag, thread id, depth).
    pub stack: Option<(i64, i64, i32)>,
    /// Tag of the referee's class.
    pub class_tag: i64,
    /// Tag of the referrer's class, 0 for roots.
    pub referrer_class_tag: i64,
    /// Bytes of the referee.
    pub size: i64,
    /// Tag of the referee; writing it changes the tag.
    pub tag: &'a mut i64,
    /// Tag of the referrer, `None` for roots; for a self reference, the value of `tag` before the call.
    pub referrer: Option<i64>,
    /// Length of the referee if it is an array, else -1.
    pub length: i32,
}

/// A primitive field value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Primitive {
    /// Field index, as for references.
    pub index: i32,
    /// Whether it is a static field of a class object.
    pub is_static: bool,
    /// `Z B C S I J F D`.
    pub kind: u8,
    /// The bits, zero-extended.
    pub bits: u64,
}

/// Callbacks of a walk. Methods that are not overridden request no events.
pub trait HeapWalk {
    /// A reference, during [`Env::follow_references`].
    fn reference(&mut self, _reference: Reference<'_>) -> Walk {
        Walk::On
    }
    /// A primitive field of the object with tag `tag`.
    fn primitive(&mut self, _class_tag: i64, _tag: i64, _value: Primitive) -> Walk {
        Walk::On
    }
    /// The elements of a primitive array: `kind` is `Z B C S I J F D`.
    fn array(
        &mut self,
        _class_tag: i64,
        _size: i64,
        _tag: i64,
        _kind: u8,
        _len: i32,
        _bytes: &[u8],
    ) -> Walk {
        Walk::On
    }
}

/// State of a walk: the visitor, and whether it panicked.
struct Context<'a> {
    visitor: &'a mut dyn HeapWalk,
    panicked: bool,
}

/// Runs one callback and catches panics.
///
/// # Safety
/// `user` is the context of the walk under way.
unsafe fn step(user: *mut c_void, call: impl FnOnce(&mut dyn HeapWalk) -> Walk) -> i32 {
    // SAFETY: the caller's promise; walks are single-threaded.
    let context = unsafe { &mut *user.cast::<Context<'_>>() };
    let visitor = &mut *context.visitor;
    match catch_unwind(AssertUnwindSafe(|| call(visitor))) {
        Ok(walk) => walk.code(),
        Err(_) => {
            context.panicked = true;
            Walk::Stop.code()
        }
    }
}

extern "system" fn on_reference(
    kind: i32,
    info: *const ReferenceInfo,
    class_tag: i64,
    referrer_class_tag: i64,
    size: i64,
    tag: *mut i64,
    referrer_tag: *mut i64,
    length: i32,
    user: *mut c_void,
) -> i32 {
    const STACK_LOCAL: i32 = 24;
    const JNI_LOCAL: i32 = 25;
    let (mut index, mut stack) = (-1, None);
    if !info.is_null() {
        // SAFETY: the union's member follows from `kind`; fields read are in the
        // common prefix of stack and JNI locals.
        unsafe {
            if kind == STACK_LOCAL || kind == JNI_LOCAL {
                let local = info.cast::<StackReferenceInfo>();
                stack = Some(((*local).thread_tag, (*local).thread_id, (*local).depth));
            } else {
                index = (*info).index;
            }
        }
    }
    // SAFETY: `referrer_tag` is null for roots; it may be the same slot as `tag`,
    // so it is read before the mutable borrow.
    let referrer = unsafe { referrer_tag.as_ref() }.copied();
    // SAFETY: the VM passes a valid tag slot and our context.
    unsafe {
        step(user, |v| {
            let tag = &mut *tag;
            v.reference(Reference {
                kind,
                index,
                stack,
                class_tag,
                referrer_class_tag,
                size,
                tag,
                referrer,
                length,
            })
        })
    }
}

extern "system" fn on_primitive(
    kind: i32,
    info: *const ReferenceInfo,
    class_tag: i64,
    tag: *mut i64,
    value: Value,
    value_type: i32,
    user: *mut c_void,
) -> i32 {
    // SAFETY: the VM sets the union member that `value_type` names.
    let bits = unsafe {
        match value_type as u8 {
            b'Z' | b'B' => u64::from(value.z),
            b'C' | b'S' => u64::from(value.c),
            b'I' | b'F' => u64::from(value.i as u32),
            _ => value.j as u64,
        }
    };
    // SAFETY: field callbacks always come with a field index.
    let index = if info.is_null() {
        -1
    } else {
        // SAFETY: not null, and field callbacks always come with a field index.
        unsafe { (*info).index }
    };
    let value = Primitive {
        index,
        is_static: kind == 8,
        kind: value_type as u8,
        bits,
    };
    // SAFETY: the VM passes a valid tag slot and our context.
    unsafe { step(user, |v| v.primitive(class_tag, *tag, value)) }
}

extern "system" fn on_array(
    class_tag: i64,
    size: i64,
    tag: *mut i64,
    count: i32,
    element: i32,
    elements: *const c_void,
    user: *mut c_void,
) -> i32 {
    let width = match element as u8 {
        b'Z' | b'B' => 1,
        b'C' | b'S' => 2,
        b'I' | b'F' => 4,
        _ => 8,
    };
    let len = usize::try_from(count).unwrap_or(0) * width;
    let bytes = if elements.is_null() || len == 0 {
        &[]
    } else {
        // SAFETY: the VM passes `count` elements, which do not move meanwhile.
        unsafe { std::slice::from_raw_parts(elements.cast::<u8>(), len) }
    };
    // SAFETY: the VM passes a valid tag slot and our context.
    unsafe {
        step(user, |v| {
            v.array(class_tag, size, *tag, element as u8, count, bytes)
        })
    }
}

impl Env<Live> {
    /// Follows references from the roots (or from `start`), with primitive values.
    pub fn follow_references(
        self,
        start: Option<Object>,
        visitor: &mut dyn HeapWalk,
    ) -> Result<()> {
        let callbacks = HeapCallbacks {
            iteration: None,
            reference: Some(on_reference),
            primitive_field: Some(on_primitive),
            array_primitive: Some(on_array),
            string: ptr::null(),
            reserved: [ptr::null(); 11],
        };
        let mut context = Context {
            visitor,
            panicked: false,
        };
        let start = start.map_or(ptr::null_mut(), Object::raw);
        // SAFETY: slot 115 is (filter, class, start, callbacks, user).
        let code = unsafe {
            table_call!(self.raw, 1, slot::FollowReferences, (0 => i32, ptr::null_mut() => RawObject, start => RawObject, &raw const callbacks => *const HeapCallbacks, (&raw mut context).cast() => *mut c_void) -> i32)
        };
        check("FollowReferences", code)?;
        if context.panicked {
            check("heap callback", 113)
        } else {
            Ok(())
        }
    }
}
