//! The elements of a storage: either owned, or borrowed from a foreign owner that is kept alive.
#![expect(
    unsafe_code,
    reason = "foreign memory is accessed through a raw pointer"
)]

use std::any::Any;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// A value that keeps foreign memory alive; it is dropped together with the last tensor over it.
pub type Owner = Box<dyn Any + Send + Sync>;

/// A contiguous run of elements, dereferencing to a slice.
pub enum Elements<T> {
    /// Elements that were allocated for the storage.
    Own(Vec<T>),
    /// Elements in memory of a foreign owner.
    Foreign(Foreign<T>),
}

/// Elements in memory of a foreign owner, such as a numpy array.
///
/// It holds the owner, so that the memory outlives every tensor over it.
pub struct Foreign<T> {
    first: NonNull<T>,
    count: usize,
    _owner: Owner,
}

// SAFETY: the memory is reached only through the storage that holds this value, whose lock hands
// out shared and exclusive access as for owned elements. `Foreign::new` requires that nobody else
// writes to the memory while an operator works on it, so moving the value to another thread adds no
// access.
unsafe impl<T: Send> Send for Foreign<T> {}
// SAFETY: as for `Send`; shared access reads the elements, and `T` is `Sync`.
unsafe impl<T: Sync> Sync for Foreign<T> {}

impl<T> Foreign<T> {
    /// Wraps memory of a foreign owner.
    ///
    /// # Safety
    /// `first` must be aligned and point to `count` initialized, valid elements of `T` that stay in
    /// place until `owner` is dropped. Nobody else may write to them while an operator works on
    /// them.
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
            // SAFETY: `Foreign::new` requires `count` valid elements at `first` for the lifetime of
            // the owner, which `foreign` holds.
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
            // SAFETY: as in `deref`; `&mut self` comes from the storage's write lock, which admits
            // one kernel at a time.
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
