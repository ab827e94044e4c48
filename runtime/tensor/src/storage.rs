//! The memory behind tensors: shared by views, counted while it is alive and locked while a kernel
//! works on it.
//!
//! Owned memory is counted from [`Storage::new`] until it is dropped; foreign memory is not
//! counted. Kernels reach elements only through [`read_one`], [`read_two`] and [`write()`], which
//! lock all operands in address order, so that operators on different threads cannot deadlock.

use std::array;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::element::Buffer;
use crate::elements::{Elements, Foreign};
use crate::live;
use crate::{DType, Element, Error, Result};

/// The elements that one tensor or several views share.
///
/// A storage carries the lock that kernels take and the version counter with which autograd detects
/// in-place writes. It reports its allocation and its release to the recorder.
#[derive(Debug)]
pub(crate) struct Storage {
    buffer: RwLock<Buffer>,
    dtype: DType,
    bytes: usize,
    address: usize,
    version: AtomicU32,
    /// The number of bytes reported as allocated; zero for foreign memory.
    counted: usize,
}

impl Storage {
    /// Takes ownership of elements and counts them as allocated.
    #[inline]
    pub(crate) fn new<T: Element>(elements: Vec<T>) -> Arc<Self> {
        let bytes = elements.len() * size_of::<T>();
        let address = elements.as_ptr().addr();
        if bytes > 0 {
            tell(address, bytes, Life::Begins);
        }
        Arc::new(Self {
            buffer: RwLock::new(T::into_buffer(Elements::Own(elements))),
            dtype: T::DTYPE,
            bytes,
            address,
            version: AtomicU32::new(0),
            counted: bytes,
        })
    }

    /// Wraps elements that a foreign owner has allocated and will free.
    pub(crate) fn of_foreign<T: Element>(foreign: Foreign<T>) -> Arc<Self> {
        let elements = Elements::Foreign(foreign);
        Arc::new(Self {
            dtype: T::DTYPE,
            bytes: size_of_val(&*elements),
            address: elements.as_ptr().addr(),
            buffer: RwLock::new(T::into_buffer(elements)),
            version: AtomicU32::new(0),
            counted: 0,
        })
    }

    /// Returns the address of the first element.
    #[inline]
    pub(crate) fn address(&self) -> usize {
        self.address
    }

    pub(crate) fn version(&self) -> u32 {
        // Relaxed: programs that compare versions order their own writes; the counter guards
        // nothing.
        self.version.load(Ordering::Relaxed)
    }

    pub(crate) fn bump_version(&self) {
        // Relaxed: see `version`.
        self.version.fetch_add(1, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn dtype(&self) -> DType {
        self.dtype
    }

    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    #[inline]
    fn lock(&self) -> RwLockReadGuard<'_, Buffer> {
        // A kernel that panicked leaves unspecified values, but they are still valid elements.
        self.buffer.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        if self.counted > 0 {
            tell(self.address, self.counted, Life::Ends);
        }
    }
}

/// Whether a storage is allocated or freed.
#[derive(Clone, Copy)]
enum Life {
    Begins,
    Ends,
}

/// Counts allocated or freed bytes and reports them to the recorder. Every storage passes through
/// here.
#[inline]
fn tell(address: usize, bytes: usize, life: Life) {
    let difference = match life {
        Life::Begins => {
            live::add(bytes);
            bytes as i64
        }
        Life::Ends => {
            live::subtract(bytes);
            -(bytes as i64)
        }
    };
    mindprof_record::memory(address as u64, difference, || live::live_bytes() as u64);
}

/// Reservations of up to this many values abort the process on failure, as for any small object.
const SMALL: usize = 1 << 12;

/// Reserves room for `count` values, a number that the caller of the runtime chose. Failure is an
/// error, not an abort.
#[inline]
pub(crate) fn reserve<T>(count: usize) -> Result<Vec<T>> {
    if count <= SMALL {
        return Ok(Vec::with_capacity(count));
    }
    let mut elements = Vec::new();
    elements
        .try_reserve_exact(count)
        .map_err(|_| Error::OutOfMemory {
            bytes: count.saturating_mul(size_of::<T>()),
        })?;
    Ok(elements)
}

/// Returns zeroed elements, for kernels that write out of order or in parallel.
pub(crate) fn zeroed<T: Copy + Default>(count: usize) -> Result<Vec<T>> {
    if count > SMALL {
        // The system hands out large zeroed blocks at no cost, but `vec!` aborts on failure:
        // reserve first.
        drop(reserve::<T>(count)?);
    }
    Ok(vec![T::default(); count])
}

/// Calls a kernel with the elements of one operand.
#[inline]
pub(crate) fn read_one<T: Element, R>(storage: &Storage, kernel: impl FnOnce(&[T]) -> R) -> R {
    kernel(typed(&storage.lock()))
}

/// Calls a kernel with the elements of two operands, which may share a storage.
#[inline]
pub(crate) fn read_two<T: Element, R>(
    [left, right]: [&Storage; 2],
    kernel: impl FnOnce(&[T], &[T]) -> R,
) -> R {
    if std::ptr::eq(left, right) {
        let both = left.lock();
        return kernel(typed(&both), typed(&both));
    }
    let left_first = std::ptr::from_ref(left) < std::ptr::from_ref(right);
    let early = if left_first {
        left.lock()
    } else {
        right.lock()
    };
    let late = if left_first {
        right.lock()
    } else {
        left.lock()
    };
    let (left, right) = if left_first {
        (&early, &late)
    } else {
        (&late, &early)
    };
    kernel(typed(left), typed(right))
}

/// Calls a kernel with the elements of its destination, for writing, and those of its other
/// operands.
///
/// # Panics
/// Panics if an operand shares the destination's storage; callers copy such an operand first.
pub(crate) fn write<D: Element, T: Element, R, const N: usize>(
    destination: &Storage,
    storages: [&Storage; N],
    kernel: impl FnOnce(&mut [D], [&[T]; N]) -> R,
) -> R {
    let mut locked = Locked::new(destination, storages);
    let (own, sources) = locked.parts();
    kernel(own, sources)
}

/// The locked destination and operands of a kernel.
struct Locked<'a, const N: usize> {
    storages: [&'a Storage; N],
    before: Guards<'a, N>,
    own: RwLockWriteGuard<'a, Buffer>,
    after: Guards<'a, N>,
}

impl<'a, const N: usize> Locked<'a, N> {
    // Not inlined, to keep it out of every kernel that writes.
    #[inline(never)]
    fn new(destination: &'a Storage, storages: [&'a Storage; N]) -> Self {
        let address = std::ptr::from_ref(destination);
        assert!(
            storages
                .iter()
                .all(|&storage| !std::ptr::eq(storage, address)),
            "an operand that shares the destination's storage is copied first"
        );
        // Struct fields are evaluated in the order written, which is the lock order.
        Self {
            storages,
            before: lock_in_order(storages, address, Side::Before),
            own: destination
                .buffer
                .write()
                .unwrap_or_else(PoisonError::into_inner),
            after: lock_in_order(storages, address, Side::After),
        }
    }

    fn parts<D: Element, T: Element>(&mut self) -> (&mut [D], [&[T]; N]) {
        let sources = array::from_fn(|index| {
            elements(&self.before, self.storages, index)
                .or_else(|| elements(&self.after, self.storages, index))
                .expect("every operand is locked")
        });
        let own =
            D::slice_mut(&mut self.own).expect("the kernel was chosen by the destination's type");
        (own, sources)
    }
}

/// The operands to lock: those at lower or at higher addresses than the destination.
#[derive(Clone, Copy)]
enum Side {
    Before,
    After,
}

type Guards<'a, const N: usize> = [Option<RwLockReadGuard<'a, Buffer>>; N];

/// Locks each storage once, in address order. With so few of them, a linear search beats sorting.
#[inline]
fn lock_in_order<'a, const N: usize>(
    storages: [&'a Storage; N],
    destination: *const Storage,
    side: Side,
) -> Guards<'a, N> {
    let mut guards: Guards<'a, N> = [const { None }; N];
    let (mut above, below) = match side {
        Side::Before => (std::ptr::null(), Some(destination)),
        Side::After => (destination, None),
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

/// Returns the elements of an operand, which may be locked as part of another operand with the same
/// storage.
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
    Some(typed(guard))
}

#[inline]
fn typed<T: Element>(buffer: &Buffer) -> &[T] {
    T::slice(buffer).expect("the kernel was chosen by the operands' type")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_may_share_a_storage() {
        let (one, two) = (Storage::new(vec![1.0_f32]), Storage::new(vec![2.0_f32]));
        let sum = |pair: [&Storage; 2]| read_two(pair, |a: &[f32], b: &[f32]| a[0] * 10.0 + b[0]);
        let sums = [sum([&one, &one]), sum([&one, &two]), sum([&two, &one])];
        assert_eq!(sums.map(|sum| sum as i64), [11, 12, 21]);
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
            .map(|storage| read_one(storage, |own: &[i64]| own[0]))
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
