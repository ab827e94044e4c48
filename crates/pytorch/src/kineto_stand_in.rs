//! A stand-in for results of torch's collector, made of our own objects, for tests.

#![expect(
    unsafe_code,
    reason = "accessors take addresses of events, as torch's do"
)]

use std::ffi::c_void;

use crate::kineto::{KinetoEvents, KinetoLayout, ResultInMemory};
use crate::kineto_symbols::{Array, KinetoSymbols, Text};

/// An event that the accessors below read.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct StandInEvent {
    pub(crate) start_ns: u64,
    pub(crate) name: &'static str,
    pub(crate) dims: Array,
    pub(crate) types: Array,
    pub(crate) values: Array,
    pub(crate) nested_dims: Array,
    pub(crate) nested_strides: Array,
}

impl StandInEvent {
    /// Returns an event without inputs.
    pub(crate) const fn new(start_ns: u64, name: &'static str) -> Self {
        Self {
            start_ns,
            name,
            dims: Array::EMPTY,
            types: Array::EMPTY,
            values: Array::EMPTY,
            nested_dims: Array::EMPTY,
            nested_strides: Array::EMPTY,
        }
    }
}

/// A result: its start time, and the begin and end of its events.
#[repr(C)]
pub(crate) struct StandInResult<'a> {
    start_ns: u64,
    bounds: [*const StandInEvent; 3],
    events: &'a [StandInEvent],
}

impl<'a> StandInResult<'a> {
    pub(crate) fn new(start_ns: u64, events: &'a [StandInEvent]) -> Self {
        let bounds = events.as_ptr_range();
        Self {
            start_ns,
            bounds: [bounds.start, bounds.end, bounds.end],
            events,
        }
    }

    pub(crate) fn address(&self) -> u64 {
        std::ptr::from_ref(self) as u64
    }

    /// Returns its place in memory.
    pub(crate) fn place(&self) -> ResultInMemory<'_> {
        ResultInMemory::new(self.address(), self.start_ns, self)
    }

    /// Opens it as a result of torch's.
    pub(crate) fn open(&self) -> KinetoEvents<'_> {
        let count = self.events.len() as u64;
        let layout = KinetoLayout::find_with(symbols(), self.place(), count);
        let opened = layout.and_then(|layout| layout.open(self.place()));
        opened.expect("it has the layout of torch's results")
    }
}

/// Returns the accessors of such events.
pub(crate) fn symbols() -> KinetoSymbols {
    KinetoSymbols {
        start_ns,
        end_ns: start_ns,
        start_thread: number,
        end_thread: number,
        forward_thread: number,
        scope: small,
        sequence: signed,
        device_type: small,
        device_index: index,
        resource: signed,
        correlation: start_ns,
        linked: number,
        external: Some(signed),
        activity: small,
        is_async: small,
        is_hidden: None,
        is_python: small,
        bytes: signed,
        stack: nothing,
        dims,
        types,
        values,
        has_keywords: small,
        nested_dims: Some(nested_dims),
        nested_strides: Some(nested_strides),
        name,
        // The name serves as metadata, which makes a test of either a test of both.
        metadata: Some(name),
        delete,
    }
}

/// # Safety
/// The address is that of a live event.
unsafe fn event<'a>(event: *const c_void) -> &'a StandInEvent {
    // SAFETY: the caller guarantees a live event.
    unsafe { &*event.cast() }
}

macro_rules! accessors {
    ($($field:ident: $kind:ty),*) => {$(
        unsafe extern "C" fn $field(address: *const c_void) -> $kind {
            // SAFETY: accessors are called only with events.
            unsafe { event(address) }.$field
        }
    )*};
}

accessors!(start_ns: u64, dims: Array, types: Array, values: Array);
accessors!(nested_dims: Array, nested_strides: Array);

unsafe extern "C" fn number(_event: *const c_void) -> u64 {
    0
}

unsafe extern "C" fn signed(_event: *const c_void) -> i64 {
    1
}

unsafe extern "C" fn small(_event: *const c_void) -> u8 {
    0
}

unsafe extern "C" fn index(_event: *const c_void) -> i32 {
    0
}

unsafe extern "C" fn nothing(_event: *const c_void) -> Array {
    Array::EMPTY
}

/// Writes a string whose bytes are allocated, as those of long names are.
unsafe extern "C" fn name(text: *mut Text, address: *const c_void) -> *mut Text {
    // SAFETY: accessors are called only with events, and `text` is the caller's return slot.
    unsafe {
        let name = event(address).name;
        let bytes = libc::malloc(name.len().max(1)).cast::<u8>();
        bytes.copy_from_nonoverlapping(name.as_ptr(), name.len());
        text.write(Text::new(bytes, name.len()));
    }
    text
}

unsafe extern "C" fn delete(bytes: *mut c_void) {
    // SAFETY: `name` has allocated the bytes.
    unsafe { libc::free(bytes) };
}
