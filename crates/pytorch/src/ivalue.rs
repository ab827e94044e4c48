//! torch's `IValue`, and the lists that values may contain.

#![expect(
    unsafe_code,
    reason = "torch's values are read in place, by the probed layout"
)]

use std::ffi::c_void;

use crate::layout::Layout;

/// torch's `IValue`: a payload, and a tag that identifies its kind. The payload of a tensor is the
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

    /// Returns the values of a list, and its element type.
    ///
    /// # Safety
    /// The value is a list that outlives `'a`, and the layout is that of this torch.
    #[inline]
    pub(crate) unsafe fn list<'a>(&self, layout: &Layout) -> (&'a [Self], u64) {
        let list = self.payload as *const c_void;
        // SAFETY: the caller guarantees a live list, in which the element type lies at the offset
        // of the layout.
        unsafe {
            let element_type = list.byte_add(layout.list_type).cast::<u64>().read();
            (self.list_values(layout.list_values), element_type)
        }
    }

    /// Returns the values of a list. Their begin and end lie at `offset` in it.
    ///
    /// # Safety
    /// The value is a list that outlives `'a`, and the pointers to the begin and the end of its
    /// values lie at `offset`.
    #[inline]
    pub(crate) unsafe fn list_values<'a>(&self, offset: usize) -> &'a [Self] {
        let list = self.payload as *const c_void;
        // SAFETY: the caller guarantees a live list with both pointers at `offset`; they delimit
        // values of the list.
        unsafe {
            let [begin, end] = list.byte_add(offset).cast::<[usize; 2]>().read();
            slice(begin as *const Self, (end - begin) / size_of::<Self>())
        }
    }

    /// Returns the real and the imaginary part of a complex number. They lie at `offset`.
    ///
    /// # Safety
    /// The value is a live complex number whose parts lie at `offset`.
    pub(crate) unsafe fn complex(&self, offset: usize) -> [f64; 2] {
        let number = self.payload as *const c_void;
        // SAFETY: the caller guarantees that both parts lie at `offset`.
        unsafe { number.byte_add(offset).cast::<[f64; 2]>().read() }
    }

    /// Returns the value, which is a tensor, as a handle of torch's C interface.
    #[inline]
    pub(crate) fn tensor(&self) -> *const c_void {
        (&raw const self.payload).cast()
    }
}

/// As [`std::slice::from_raw_parts`], but accepts a null pointer and then returns no values.
///
/// # Safety
/// `begin` is null or points to `len` values that live and are not changed for `'a`.
#[inline]
pub(crate) unsafe fn slice<'a, T>(begin: *const T, len: usize) -> &'a [T] {
    if len == 0 || begin.is_null() {
        return &[];
    }
    // SAFETY: `begin` is not null, so the caller guarantees `len` live values.
    unsafe { std::slice::from_raw_parts(begin, len) }
}
