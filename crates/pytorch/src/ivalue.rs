//! One value of torch's, and the lists that values may be.

#![expect(
    unsafe_code,
    reason = "values are read where torch has them, by a layout that was probed"
)]

use std::ffi::c_void;

use crate::layout::Layout;

/// torch's `IValue`: a payload, and a tag that says what it is. The payload of a tensor is the
/// tensor itself.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Value {
    pub(crate) payload: u64,
    pub(crate) tag: u32,
    _padding: u32,
}

impl Value {
    pub(crate) const fn new(payload: u64, tag: u32) -> Self {
        Self {
            payload,
            tag,
            _padding: 0,
        }
    }

    /// Returns the values of a list, and the type that it says its elements are of.
    ///
    /// # Safety
    /// The value is a list, and lives as long as what is returned.
    #[inline]
    pub(crate) unsafe fn list<'a>(&self, layout: &Layout) -> (&'a [Self], u64) {
        let list = self.payload as *const c_void;
        // SAFETY: by the caller's word there is a list, in which its type lies by the layout.
        unsafe {
            let element_type = list.byte_add(layout.list_type).cast::<u64>().read();
            (self.list_values(layout.list_values), element_type)
        }
    }

    /// Returns the values of a list, whose begin and end lie at an offset in it.
    ///
    /// # Safety
    /// As of [`Value::list`], and the offset is right.
    #[inline]
    pub(crate) unsafe fn list_values<'a>(&self, offset: usize) -> &'a [Self] {
        let list = self.payload as *const c_void;
        // SAFETY: by the caller's word these words lie there.
        unsafe {
            let [begin, end] = list.byte_add(offset).cast::<[usize; 2]>().read();
            slice(begin as *const Self, (end - begin) / size_of::<Self>())
        }
    }

    /// Returns the real and the imaginary part of a complex number, which lie at an offset.
    ///
    /// # Safety
    /// The value is a complex number, and the offset is right.
    pub(crate) unsafe fn complex(&self, offset: usize) -> [f64; 2] {
        let number = self.payload as *const c_void;
        // SAFETY: by the caller's word both parts lie there.
        unsafe { number.byte_add(offset).cast::<[f64; 2]>().read() }
    }

    /// Returns the tensor that the value is, as torch's C interface takes it.
    #[inline]
    pub(crate) fn tensor(&self) -> *const c_void {
        (&raw const self.payload).cast()
    }
}

/// As [`std::slice::from_raw_parts`], also for no values at no address.
///
/// # Safety
/// So many values lie at the address, for as long as what is returned lives.
#[inline]
pub(crate) unsafe fn slice<'a, T>(begin: *const T, len: usize) -> &'a [T] {
    if len == 0 || begin.is_null() {
        return &[];
    }
    // SAFETY: by the caller's word.
    unsafe { std::slice::from_raw_parts(begin, len) }
}
