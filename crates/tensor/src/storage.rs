//! The memory behind tensors: shared by views, counted while it lives, and locked while a kernel works on it.
//!
//! Every storage is made by [`Storage::new`] and ends in its `Drop`; both keep the count of live bytes. Kernels reach
//! elements only through [`read`] and [`write`], which take the locks of all operands in one order (by address), so
//! that operators on any threads cannot wait for each other in a circle.

use std::array;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use crate::element::Buffer;
use crate::{DType, Element, Error, Result};

static LIVE_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Returns the bytes of all tensors' storages that are alive in this process.
pub fn live_bytes() -> usize {
    // Relaxed: a statistic that orders nothing.
    LIVE_BYTES.load(Ordering::Relaxed)
}

/// The elements that one tensor or several views share.
#[derive(Debug)]
pub(crate) struct Storage {
    buffer: RwLock<Buffer>,
    dtype: DType,
    bytes: usize,
}

impl Storage {
    /// Takes ownership of elements, from here on counted as live.
    pub(crate) fn new<T: Element>(elements: Vec<T>) -> Arc<Self> {
        let bytes = elements.len() * size_of::<T>();
        // Relaxed: a statistic that orders nothing.
        LIVE_BYTES.fetch_add(bytes, Ordering::Relaxed);
        Arc::new(Self {
            buffer: RwLock::new(T::into_buffer(elements)),
            dtype: T::DTYPE,
            bytes,
        })
    }

    pub(crate) fn dtype(&self) -> DType {
        self.dtype
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    fn lock(&self) -> RwLockReadGuard<'_, Buffer> {
        // A kernel that panicked leaves elements in an unknown state, but they are still elements.
        self.buffer.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        // Relaxed: a statistic that orders nothing.
        LIVE_BYTES.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Returns room for elements that a kernel is about to produce in order.
pub(crate) fn reserve<T: Element>(count: usize) -> Result<Vec<T>> {
    let mut elements = Vec::new();
    elements
        .try_reserve_exact(count)
        .map_err(|_| Error::OutOfMemory {
            bytes: count.saturating_mul(size_of::<T>()),
        })?;
    Ok(elements)
}

/// Returns elements that are zero, for a kernel that writes out of order or in parallel.
pub(crate) fn zeroed<T: Element>(count: usize) -> Result<Vec<T>> {
    /// Up to here asking twice costs more than clearing.
    const SMALL: usize = 1 << 12;
    if count > SMALL {
        // The system clears large pieces for nothing, but then says no by aborting: ask first.
        drop(reserve::<T>(count)?);
        return Ok(vec![T::default(); count]);
    }
    let mut elements = reserve(count)?;
    elements.resize(count, T::default());
    Ok(elements)
}

/// Gives a kernel the elements of its operands.
pub(crate) fn read<T: Element, R, const N: usize>(
    storages: [&Storage; N],
    kernel: impl FnOnce([&[T]; N]) -> R,
) -> R {
    let guards = lock_in_order(storages, None);
    kernel(array::from_fn(|index| {
        elements(&guards, storages, index).expect("every operand is locked")
    }))
}

/// Gives a kernel the elements of its destination, to write, and those of its other operands.
///
/// # Panics
/// When an operand shares the destination's storage: it is to be copied first.
pub(crate) fn write<D: Element, T: Element, R, const N: usize>(
    destination: &Storage,
    storages: [&Storage; N],
    kernel: impl FnOnce(&mut [D], [&[T]; N]) -> R,
) -> R {
    let address = std::ptr::from_ref(destination);
    assert!(
        storages
            .iter()
            .all(|&storage| !std::ptr::eq(storage, address)),
        "an operand that shares the destination's storage is copied first"
    );
    let before = lock_in_order(storages, Some((address, Side::Before)));
    let mut own = destination
        .buffer
        .write()
        .unwrap_or_else(PoisonError::into_inner);
    let after = lock_in_order(storages, Some((address, Side::After)));
    let sources = array::from_fn(|index| {
        elements(&before, storages, index)
            .or_else(|| elements(&after, storages, index))
            .expect("every operand is locked")
    });
    kernel(
        D::slice_mut(&mut own).expect("the kernel was chosen by the destination's type"),
        sources,
    )
}

/// Which operands to lock: those at lower or at higher addresses than the destination.
#[derive(Clone, Copy)]
enum Side {
    Before,
    After,
}

type Guards<'a, const N: usize> = [Option<RwLockReadGuard<'a, Buffer>>; N];

/// Locks each storage once, lowest address first. There are few, so that looking for the next one beats sorting.
#[inline]
fn lock_in_order<'a, const N: usize>(
    storages: [&'a Storage; N],
    side: Option<(*const Storage, Side)>,
) -> Guards<'a, N> {
    let mut guards: Guards<'a, N> = [const { None }; N];
    let (mut above, below) = match side {
        None => (std::ptr::null(), None),
        Some((destination, Side::Before)) => (std::ptr::null(), Some(destination)),
        Some((destination, Side::After)) => (destination, None),
    };
    loop {
        let mut next: Option<usize> = None;
        for (index, storage) in storages.iter().enumerate() {
            let address = std::ptr::from_ref::<Storage>(storage);
            let wanted = address > above && below.is_none_or(|below| address < below);
            if wanted && next.is_none_or(|next| address < std::ptr::from_ref(storages[next])) {
                next = Some(index);
            }
        }
        let Some(next) = next else {
            return guards;
        };
        above = std::ptr::from_ref(storages[next]);
        guards[next] = Some(storages[next].lock());
    }
}

/// Returns the elements of an operand, which may be locked under another operand with the same storage.
fn elements<'g, T: Element, const N: usize>(
    guards: &'g Guards<'_, N>,
    storages: [&Storage; N],
    index: usize,
) -> Option<&'g [T]> {
    let guard = guards.iter().zip(storages).find_map(|(guard, storage)| {
        guard
            .as_ref()
            .filter(|_| std::ptr::eq(storage, storages[index]))
    })?;
    Some(T::slice(guard).expect("the kernel was chosen by the operands' type"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_may_share_a_storage() {
        let (one, two) = (Storage::new(vec![1.0_f32]), Storage::new(vec![2.0_f32]));
        let sum = read([&one, &two, &one], |[a, b, c]: [&[f32]; 3]| {
            a[0] + b[0] + c[0]
        });
        assert!((sum - 4.0).abs() < f32::EPSILON);
    }

    #[test]
    fn a_destination_is_written_whatever_its_address() {
        let storages: Vec<_> = (0_i64..3).map(|value| Storage::new(vec![value])).collect();
        for destination in 0..3 {
            let (left, right) = ((destination + 1) % 3, (destination + 2) % 3);
            write(
                &storages[destination],
                [&storages[left], &storages[right], &storages[left]],
                |own: &mut [i64], [a, b, c]: [&[i64]; 3]| own[0] = a[0] * 100 + b[0] * 10 + c[0],
            );
        }
        let values = storages
            .iter()
            .map(|storage| read([storage], |[own]: [&[i64]; 1]| own[0]))
            .collect::<Vec<_>>();
        assert_eq!(values, [121, 1412, 26341]);
    }

    #[test]
    fn memory_that_is_not_there_is_an_error() {
        assert!(matches!(
            zeroed::<f64>(1 << 58),
            Err(Error::OutOfMemory { bytes }) if bytes == 1 << 61
        ));
    }
}
