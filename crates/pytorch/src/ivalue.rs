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
    /// Returns the values of a list, and the type that it says its elements are of.
    ///
    /// # Safety
    /// The value is a list, and lives as long as what is returned.
    #[inline]
    pub(crate) unsafe fn list<'a>(&self, layout: &Layout) -> (&'a [Self], u64) {
        let list = self.payload as *const c_void;
        // SAFETY: by the caller's word there is a list, in which these words lie by the layout:
        // the begin and the end of its values, and its type.
        unsafe {
            let word = |offset: usize| list.byte_add(offset).cast::<u64>().read();
            let begin = word(layout.list_values) as *const Self;
            let end = word(layout.list_values + 8);
            let element_type = word(layout.list_type);
            let len = (end as usize - begin as usize) / size_of::<Self>();
            (slice(begin, len), element_type)
        }
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
