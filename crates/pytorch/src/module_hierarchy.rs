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

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    thread_local! {
        /// The calls that the stand-in of torch's function lists.
        static CALLS: RefCell<Vec<&'static [u8]>> = const { RefCell::new(Vec::new()) };
        /// The room of the list: more than it needs, as a vector that grew has.
        static ROOM: Cell<usize> = const { Cell::new(0) };
        /// The addresses that were allocated and are not freed yet, with the lengths.
        static LIVE: RefCell<Vec<(*mut c_void, usize)>> = const { RefCell::new(Vec::new()) };
    }

    fn allocate(words: usize) -> *mut c_void {
        let address = Box::leak(vec![0_u64; words].into_boxed_slice());
        let address = address.as_mut_ptr().cast();
        LIVE.with_borrow_mut(|live| live.push((address, words)));
        address
    }

    unsafe extern "C" fn delete(address: *mut c_void) {
        let freed = LIVE.with_borrow_mut(|live| {
            let position = live.iter().position(|(known, _)| *known == address);
            live.swap_remove(position.expect("it is allocated and not freed yet"))
        });
        let words = std::ptr::slice_from_raw_parts_mut(freed.0.cast::<u64>(), freed.1);
        // SAFETY: `allocate` leaked a box of this length, and the address was just forgotten.
        drop(unsafe { Box::from_raw(words) });
    }

    /// Lists the calls as C++ does: texts of up to 15 bytes lie in the string itself, longer ones in
    /// memory of their own.
    unsafe extern "C" fn current(texts: *mut Texts) -> *mut Texts {
        let calls = CALLS.with_borrow(Vec::clone);
        if ROOM.get() > 0 {
            let begin = allocate(ROOM.get() * 4).cast::<[u64; 4]>();
            for (index, call) in calls.iter().enumerate() {
                // SAFETY: the room is at least that of the calls, four words each; a longer text has
                // as many bytes as its own memory.
                unsafe {
                    let string = begin.add(index);
                    let inside = string.cast::<u64>().add(2).cast::<u8>();
                    let bytes = if call.len() < 16 {
                        inside
                    } else {
                        allocate(call.len().div_ceil(8)).cast()
                    };
                    bytes.copy_from_nonoverlapping(call.as_ptr(), call.len());
                    string.cast::<*mut u8>().write(bytes);
                    string.cast::<usize>().add(1).write(call.len());
                }
            }
            // SAFETY: the caller passes a list to write to, and both ends lie in the allocation.
            unsafe {
                (*texts).begin = begin.cast();
                (*texts).end = begin.add(calls.len()).cast();
                (*texts).room = begin.add(ROOM.get()).cast();
            }
        }
        texts
    }

    fn read(calls: &[&'static [u8]], room: usize) -> Option<String> {
        CALLS.set(calls.to_vec());
        ROOM.set(room);
        let read = HierarchySymbols { current, delete }.current();
        assert!(LIVE.with_borrow(Vec::is_empty), "everything is freed");
        read
    }

    #[test]
    fn each_call_is_followed_by_a_dot() {
        let long = b"TOP(Net)::forward.layer1(Sequential)::forward";
        let found = read(&[b"TOP(Net)::f", long, b"SELF(aten)::add"], 3);
        let expected = "TOP(Net)::f.TOP(Net)::forward.layer1(Sequential)::forward.SELF(aten)::add.";
        assert_eq!(found.as_deref(), Some(expected));
    }

    #[test]
    fn a_thread_without_a_module_has_none() {
        assert_eq!(read(&[], 0), None);
        assert_eq!(read(&[], 4), None, "the empty list is freed too");
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        let found = read(&[b"a\xff", b"a call whose name is long \xff"], 8);
        assert_eq!(
            found.as_deref(),
            Some("a\u{fffd}.a call whose name is long \u{fffd}.")
        );
    }
}
