//! The calls of `TorchScript` modules that an operator runs in, as torch's interpreter lists them.
//!
//! The callback asks for them while an operator begins, if a recording wants them, and the recorder
//! keeps them by name.

#![expect(
    unsafe_code,
    reason = "torch returns a C++ object, which is read in place and freed"
)]

use std::ffi::c_void;

use crate::error::Result;
use crate::ivalue::slice;
use crate::kineto_symbols::Text;
use crate::symbols::{LookUp, function, global};

/// The function that lists the calls, and the `delete` that frees the list.
#[derive(Clone, Copy)]
pub(crate) struct HierarchySymbols {
    /// Writes the list into its argument and returns that.
    current: unsafe extern "C" fn(*mut Texts) -> *mut Texts,
    delete: unsafe extern "C" fn(*mut c_void),
}

/// A `std::vector<std::string>`: its begin, its end, and the end of its room.
#[repr(C)]
struct Texts {
    begin: *mut Text,
    end: *mut Text,
    room: *mut Text,
}

impl HierarchySymbols {
    /// # Safety
    /// As for [`crate::Symbols::resolve`].
    pub(crate) unsafe fn resolve(look_up: LookUp<'_>) -> Result<Self> {
        // SAFETY: the first name contains its types, and the second one is that of the global
        // `operator delete(void*)`.
        unsafe {
            Ok(Self {
                current: function(look_up, c"_ZN5torch3jit22currentModuleHierarchyB5cxx11Ev")?,
                delete: function(&|name| global(name).or_else(|| look_up(name)), c"_ZdlPv")?,
            })
        }
    }

    /// Returns the calls, each followed by a dot, as torch writes them to traces. Returns `None`,
    /// without an allocation, if this thread does not run a `TorchScript` module.
    #[cold]
    pub(crate) fn current(&self) -> Option<String> {
        let mut texts = Texts {
            begin: std::ptr::null_mut(),
            end: std::ptr::null_mut(),
            room: std::ptr::null_mut(),
        };
        // SAFETY: torch's function constructs the list in place, and throws nothing but what a lack
        // of memory throws.
        unsafe { (self.current)(&raw mut texts) };
        if texts.begin.is_null() {
            return None;
        }
        let mut joined = String::new();
        // SAFETY: the list was just constructed, so its elements lie between begin and end; each
        // is freed once, and then the list itself, by the `delete` of the `new` that made them.
        unsafe {
            let len = texts.end.offset_from_unsigned(texts.begin);
            for text in slice(texts.begin, len) {
                joined.push_str(&String::from_utf8_lossy(text.bytes()));
                joined.push('.');
            }
            for index in 0..len {
                (*texts.begin.add(index)).free(self.delete);
            }
            (self.delete)(texts.begin.cast());
        }
        (!joined.is_empty()).then_some(joined)
    }
}
