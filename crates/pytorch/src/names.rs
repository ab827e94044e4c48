//! Caches the recorder's names of torch's operators by the addresses of their strings.
//!
//! The name of an operator lies in its schema, usually for the life of the process. It is found by
//! address, and the bytes are compared, in case a schema was freed and another took its place.
//! Names of ranges and backward nodes are temporary and are not cached.

#![expect(unsafe_code, reason = "torch passes strings as addresses")]

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};

use mindprof_record::Name;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::collectives::COLLECTIVE;

/// How many operators a thread caches. torch has a few thousand; more come from schemas that are
/// created and destroyed.
const MOST_KNOWN: usize = 8192;

/// The operators that one thread has seen, by address.
#[derive(Debug)]
pub(crate) struct KnownNames(RefCell<FxHashMap<usize, KnownName>>);

#[derive(Debug)]
struct KnownName {
    text: CString,
    found: FoundName,
}

/// The name of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FoundName {
    pub(crate) name: Name,
    /// Whether it is the scope around a collective, which is told by its text.
    pub(crate) is_collective: bool,
}

impl KnownNames {
    pub(crate) const fn new() -> Self {
        Self(RefCell::new(FxHashMap::with_hasher(FxBuildHasher)))
    }

    /// Returns the name of the operator whose string lies at `address`, if it is cached.
    ///
    /// # Safety
    /// A NUL-terminated string lies at `address`.
    #[inline]
    pub(crate) unsafe fn find(&self, address: *const c_char) -> Option<FoundName> {
        let known = self.0.try_borrow().ok()?;
        let known = known.get(&(address as usize))?;
        // SAFETY: the caller guarantees a NUL-terminated string at `address`, and a `CString` is
        // one.
        unsafe { are_equal(known.text.as_ptr(), address) }.then_some(known.found)
    }

    /// Adds the operator whose string lies at `address`. Each overload of an operator has a schema
    /// and thus a string of its own; `overload` is null if it is not known.
    ///
    /// # Safety
    /// As for [`KnownNames::find`], and `overload` is null or NUL-terminated too.
    #[cold]
    pub(crate) unsafe fn add(&self, address: *const c_char, overload: *const c_char) -> FoundName {
        // SAFETY: the caller guarantees a NUL-terminated string at `address`.
        let text = unsafe { CStr::from_ptr(address) };
        let overload = if overload.is_null() {
            c""
        } else {
            // SAFETY: the caller guarantees a NUL-terminated string.
            unsafe { CStr::from_ptr(overload) }
        };
        let found = FoundName {
            name: Name::intern_overload(&text.to_string_lossy(), &overload.to_string_lossy()),
            is_collective: text.to_bytes() == COLLECTIVE.as_bytes(),
        };
        if let Ok(mut known) = self.0.try_borrow_mut() {
            if known.len() >= MOST_KNOWN {
                known.clear();
            }
            let text = text.to_owned();
            known.insert(address as usize, KnownName { text, found });
        }
        found
    }
}

/// Returns whether two strings are equal.
///
/// # Safety
/// Both are NUL-terminated.
#[inline]
unsafe fn are_equal(one: *const c_char, other: *const c_char) -> bool {
    #[cfg(unix)]
    // SAFETY: the caller guarantees two NUL-terminated strings.
    unsafe {
        libc::strcmp(one, other) == 0
    }
    #[cfg(not(unix))]
    // SAFETY: the caller guarantees two NUL-terminated strings.
    unsafe {
        CStr::from_ptr(one) == CStr::from_ptr(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_text_at_the_same_address_is_another_name() {
        let known = KnownNames::new();
        let mut text = *b"aten::one\0";
        let address = text.as_mut_ptr().cast::<c_char>();
        // SAFETY: the array ends in a NUL byte, before and after the change below.
        unsafe {
            assert_eq!(known.find(address), None);
            let name = known.add(address, std::ptr::null());
            assert_eq!(known.find(address), Some(name));
            address.cast::<[u8; 10]>().write(*b"aten::two\0");
            assert_eq!(known.find(address), None);
            assert_ne!(known.add(address, std::ptr::null()), name);
        }
    }
}
