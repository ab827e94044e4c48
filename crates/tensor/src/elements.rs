//! The elements of one storage: its own, or memory that belongs to something else, which is kept
//! alive.
#![expect(
    unsafe_code,
    reason = "memory of another owner is reached by its address"
)]

use std::any::Any;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// What keeps memory alive; it is dropped with the last tensor over the memory.
pub type Owner = Box<dyn Any + Send + Sync>;

/// A run of elements.
pub enum Elements<T> {
    /// They were allocated for the storage.
    Own(Vec<T>),
    /// They belong to something else.
    Foreign(Foreign<T>),
}

/// Elements in memory of another owner.
pub struct Foreign<T> {
    first: NonNull<T>,
    count: usize,
    _owner: Owner,
}

// SAFETY: the memory is reached only through the storage that holds this, which hands out shared
// and exclusive access as it does for its own elements; whoever made this promised that no one else
// counts on having it alone.
unsafe impl<T: Send> Send for Foreign<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Foreign<T> {}

impl<T> Foreign<T> {
    /// Takes memory of another owner for elements.
    ///
    /// # Safety
    /// From `first` on lie `count` elements of the type, aligned and with values that it knows, for
    /// as long as `owner` is not dropped. Others may write to them only as programs share
    /// arrays: not while an operator works on them.
    pub(crate) unsafe fn new(first: NonNull<T>, count: usize, owner: Owner) -> Self {
        Self {
            first,
            count,
            _owner: owner,
        }
    }
}

impl<T> Deref for Elements<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Self::Own(elements) => elements,
            // SAFETY: `Foreign::new` was promised that these elements are there while the owner is,
            // which is here.
            Self::Foreign(foreign) => unsafe {
                std::slice::from_raw_parts(foreign.first.as_ptr(), foreign.count)
            },
        }
    }
}

impl<T> DerefMut for Elements<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Self::Own(elements) => elements,
            // SAFETY: as in `deref`; the storage gives exclusive access to one kernel at a time.
            Self::Foreign(foreign) => unsafe {
                std::slice::from_raw_parts_mut(foreign.first.as_ptr(), foreign.count)
            },
        }
    }
}

impl<T> fmt::Debug for Elements<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            Self::Own(_) => "own",
            Self::Foreign(_) => "foreign",
        };
        write!(formatter, "{} {kind} elements", self.len())
    }
}
