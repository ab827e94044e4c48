//! The offsets of facts in plain tensors, and the functions that read by them.
//!
//! `tensor_samples` finds the offsets on tensors that torch describes too; `tensor` reads all plain
//! tensors by them.

#![expect(
    unsafe_code,
    reason = "torch's objects are read by the offsets that were found"
)]

use std::ffi::c_void;

use crate::ivalue::Value;
use crate::tensor::{CPU, TensorFacts, dtype_of, sizes_at, strides_at};

/// How many sizes and strides are stored in a tensor itself.
pub(crate) const FEW: usize = 5;

/// Byte offsets in plain tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TensorLayout {
    /// The virtual table pointer with which a plain tensor begins.
    pub(crate) table: u64,
    /// The sizes, or their address if there are more than `FEW`. Their number precedes them.
    pub(crate) sizes: usize,
    /// In the word with the dtype, the bits of a tensor whose sizes or strides differ from those
    /// stored in it.
    pub(crate) others: u64,
    /// Those of them that concern sizes, or that make torch ask Python.
    pub(crate) untold: u64,
    /// The number of the dtype, in two bytes.
    pub(crate) dtype: usize,
    /// The number of the kind of device, in one byte.
    pub(crate) device: usize,
    /// The address of the storage, zero if there is none.
    pub(crate) storage: usize,
    /// In a storage: the address of its bytes.
    pub(crate) bytes: usize,
    /// The layout of wrappers; `None` if it was not found.
    pub(crate) wrapper: Option<WrapperLayout>,
}

/// Byte offsets in the tensors of `torch.func.functionalize`, which wrap other tensors and have
/// their sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WrapperLayout {
    /// The virtual table pointer with which a wrapper begins.
    pub(crate) table: u64,
    /// The address of the wrapped tensor.
    pub(crate) value: usize,
}

impl TensorLayout {
    /// Reads a plain tensor. Returns `None` if its sizes or strides differ from those stored in it.
    ///
    /// # Safety
    /// The value is a plain tensor that outlives the returned facts.
    #[inline]
    pub(crate) unsafe fn read<'a>(&self, tensor: &Value) -> Option<TensorFacts<'a>> {
        let address = tensor.payload;
        // SAFETY: the caller guarantees a live plain tensor, in which the layout holds: up to `FEW`
        // sizes and strides lie in the tensor, more lie contiguously elsewhere.
        unsafe {
            if self.flags(tensor) & self.others != 0 {
                return None;
            }
            let dim = Self::word::<usize>(address, self.sizes - 8);
            let (dims, room) = if dim <= FEW {
                (address + self.sizes as u64, FEW)
            } else {
                (Self::word(address, self.sizes), dim)
            };
            Some(TensorFacts {
                dtype: dtype_of(i32::from(Self::word::<u16>(address, self.dtype))),
                dims: sizes_at(dims as *const i64, dim),
                strides: strides_at((dims as *const i64).add(room), dim),
                layout: 0,
            })
        }
    }

    /// Returns the tensor that a wrapper wraps, or `None` if the tensor is not a wrapper.
    ///
    /// # Safety
    /// The value is a live, defined tensor.
    #[inline]
    pub(crate) unsafe fn wrapped(&self, tensor: &Value) -> Option<Value> {
        let wrapper = self.wrapper?;
        // SAFETY: the caller guarantees a live tensor, a C++ object begins with its virtual table
        // pointer, and that of wrappers identifies an object with a tensor at the offset.
        unsafe {
            (Self::word::<u64>(tensor.payload, 0) == wrapper.table)
                .then(|| Value::new(Self::word(tensor.payload, wrapper.value), tensor.tag))
        }
    }

    /// Returns whether a tensor of any class must not be queried, because its sizes may be symbols,
    /// or missing, or come from Python.
    ///
    /// # Safety
    /// The value is a live, defined tensor.
    #[inline]
    pub(crate) unsafe fn is_untold(&self, tensor: &Value) -> bool {
        // SAFETY: the caller guarantees a live, defined tensor.
        unsafe { self.flags(tensor) & self.untold != 0 }
    }

    /// # Safety
    /// The value is a live, defined tensor.
    #[inline]
    unsafe fn flags(&self, tensor: &Value) -> u64 {
        // SAFETY: the caller guarantees a live, defined tensor, and every class of tensors begins
        // with the fields of plain ones.
        unsafe { Self::word(tensor.payload, self.dtype & !7) }
    }

    /// Returns the address of a tensor's bytes in CPU memory, zero if it has none there. Tensors of
    /// other classes are read too instead of queried: a query for a missing storage throws, which
    /// takes milliseconds.
    ///
    /// # Safety
    /// The value is a live, defined tensor.
    #[inline]
    pub(crate) unsafe fn read_storage(&self, tensor: &Value) -> u64 {
        // SAFETY: the caller guarantees a live, defined tensor, every class of tensors begins with
        // the fields of plain ones, and a storage lives as long as its tensors.
        unsafe {
            let device = Self::word::<u8>(tensor.payload, self.device);
            let storage = Self::word::<u64>(tensor.payload, self.storage);
            if i32::from(device) != CPU || storage == 0 {
                return 0;
            }
            Self::word(storage, self.bytes)
        }
    }

    /// Returns the number of the kind of device that a tensor lies on.
    ///
    /// # Safety
    /// The value is a live, defined tensor.
    #[inline]
    pub(crate) unsafe fn read_device(&self, tensor: &Value) -> u8 {
        // SAFETY: the caller guarantees a live, defined tensor, and every class of tensors begins
        // with the fields of plain ones.
        unsafe { Self::word(tensor.payload, self.device) }
    }

    /// # Safety
    /// The value is a live, defined tensor.
    #[inline]
    pub(crate) unsafe fn is_plain(&self, tensor: &Value) -> bool {
        // SAFETY: the caller guarantees a live tensor, and a C++ object begins with its virtual
        // table pointer.
        unsafe { Self::word::<u64>(tensor.payload, 0) == self.table }
    }

    /// # Safety
    /// A `T` lies at `offset` from `address`.
    #[inline]
    unsafe fn word<T: Copy>(address: u64, offset: usize) -> T {
        // SAFETY: the caller guarantees that a `T` lies at this offset.
        unsafe {
            (address as *const c_void)
                .byte_add(offset)
                .cast::<T>()
                .read()
        }
    }
}
