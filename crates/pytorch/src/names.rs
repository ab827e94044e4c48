//! The recorder's names of torch's operators, by where torch has their texts.
//!
//! An operator's name lies in its schema, mostly for as long as the process lives, and is asked for
//! again and again: its address is looked up first, and what lies there is compared, so that a
//! schema that is gone and another in its place are told apart. Texts of ranges and of backward
//! nodes are of the moment, and are names of the recording.

#![expect(unsafe_code, reason = "torch hands texts out as addresses")]

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};

use mindprof_record::{Name, NameKind};
use rustc_hash::{FxBuildHasher, FxHashMap};

/// So many operators a thread finds without a look at the recorder's table. There are a few
/// thousand; more come of schemas that come and go.
const MOST_KNOWN: usize = 8192;

/// The operators that one thread has met, by their addresses.
#[derive(Debug)]
pub(crate) struct KnownNames(RefCell<FxHashMap<usize, KnownName>>);

#[derive(Debug)]
struct KnownName {
    text: CString,
    name: Name,
}

impl KnownNames {
    pub(crate) const fn new() -> Self {
        Self(RefCell::new(FxHashMap::with_hasher(FxBuildHasher)))
    }

    /// Returns the name of the operator whose text lies at `address`, if the thread has met it.
    ///
    /// # Safety
    /// A text that ends in a zero lies there.
    #[inline]
    pub(crate) unsafe fn find(&self, address: *const c_char) -> Option<Name> {
        let known = self.0.try_borrow().ok()?;
        let known = known.get(&(address as usize))?;
        // SAFETY: both texts end in a zero.
        unsafe { are_equal(known.text.as_ptr(), address) }.then_some(known.name)
    }

    /// Adds the operator whose text lies at `address`.
    ///
    /// # Safety
    /// As of [`KnownNames::find`].
    #[cold]
    pub(crate) unsafe fn add(&self, address: *const c_char) -> Name {
        // SAFETY: by the caller's word.
        let text = unsafe { CStr::from_ptr(address) };
        let name = Name::intern(&text.to_string_lossy(), NameKind::Operator);
        if let Ok(mut known) = self.0.try_borrow_mut() {
            if known.len() >= MOST_KNOWN {
                known.clear();
            }
            let text = text.to_owned();
            known.insert(address as usize, KnownName { text, name });
        }
        name
    }
}

/// Returns whether two texts are equal.
///
/// # Safety
/// Both end in a zero.
#[inline]
unsafe fn are_equal(one: *const c_char, other: *const c_char) -> bool {
    #[cfg(unix)]
    // SAFETY: by the caller's word.
    unsafe {
        libc::strcmp(one, other) == 0
    }
    #[cfg(not(unix))]
    // SAFETY: by the caller's word.
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
        // SAFETY: the array ends in a zero, and so it does after the change below.
        unsafe {
            assert_eq!(known.find(address), None);
            let name = known.add(address);
            assert_eq!(known.find(address), Some(name));
            address.cast::<[u8; 10]>().write(*b"aten::two\0");
            assert_eq!(known.find(address), None);
            assert_ne!(known.add(address), name);
        }
    }
}
