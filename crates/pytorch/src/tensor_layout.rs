//! Where plain tensors hold their facts, and reading them there.
//!
//! The offsets are found by `tensor_samples`, on tensors that torch tells the facts of; `tensor` reads
//! by them whatever is plain.

#![expect(
    unsafe_code,
    reason = "objects of torch are read by offsets that were found"
)]

use std::ffi::c_void;

use crate::ivalue::Value;
use crate::tensor::{HOST, TensorFacts, dtype_of, sizes_at, strides_at};

/// So many sizes and strides lie in a tensor itself.
pub(crate) const FEW: usize = 5;

/// Offsets in bytes within plain tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TensorLayout {
    /// With what a plain tensor begins: the table of its functions.
    pub(crate) table: u64,
    /// Its sizes, if they lie in it, and else their address. How many there are lies before them.
    pub(crate) sizes: usize,
    /// In the word of its type, the bits that say that it has other sizes or strides than lie in it.
    pub(crate) others: u64,
    /// Those of them that say it of sizes, or that Python is asked.
    pub(crate) untold: u64,
    /// The number of its type, of two bytes.
    pub(crate) dtype: usize,
    /// The number of its kind of device, of one byte.
    pub(crate) device: usize,
    /// The address of its storage, zero for none.
    pub(crate) storage: usize,
    /// In a storage: the address of its bytes.
    pub(crate) bytes: usize,
}

impl TensorLayout {
    /// Reads a plain tensor. Returns none if it has other sizes or strides than lie in it.
    ///
    /// # Safety
    /// The value is a plain tensor, which lives as long as what is returned.
    #[inline]
    pub(crate) unsafe fn read<'a>(&self, tensor: &Value) -> Option<TensorFacts<'a>> {
        let address = tensor.payload;
        // SAFETY: by the caller's word, and of plain tensors the layout says what lies where: few
        // sizes and strides in the tensor, more side by side elsewhere.
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
            })
        }
    }

    /// Returns whether nothing is to be asked of a tensor, of whichever class: it may have symbols for
    /// sizes, or none, or Python is asked.
    ///
    /// # Safety
    /// The value is a tensor that is defined.
    #[inline]
    pub(crate) unsafe fn is_untold(&self, tensor: &Value) -> bool {
        // SAFETY: by the caller's word.
        unsafe { self.flags(tensor) & self.untold != 0 }
    }

    /// # Safety
    /// The value is a tensor that is defined; all classes begin with what plain ones have.
    #[inline]
    unsafe fn flags(&self, tensor: &Value) -> u64 {
        // SAFETY: by the caller's word.
        unsafe { Self::word(tensor.payload, self.dtype & !7) }
    }

    /// Returns where the bytes of a tensor begin on the host, zero if it has none there. Those of other
    /// classes are not asked: what has no storage would throw, which takes milliseconds.
    ///
    /// # Safety
    /// The value is a tensor that is defined; all classes begin with what plain ones have.
    #[inline]
    pub(crate) unsafe fn read_storage(&self, tensor: &Value) -> u64 {
        // SAFETY: by the caller's word; a storage lives as long as its tensors.
        unsafe {
            let device = Self::word::<u8>(tensor.payload, self.device);
            let storage = Self::word::<u64>(tensor.payload, self.storage);
            if i32::from(device) != HOST || storage == 0 {
                return 0;
            }
            Self::word(storage, self.bytes)
        }
    }

    /// # Safety
    /// The value is a tensor that is defined.
    #[inline]
    pub(crate) unsafe fn is_plain(&self, tensor: &Value) -> bool {
        // SAFETY: by the caller's word; an object of C++ begins with the table of its functions.
        unsafe { Self::word::<u64>(tensor.payload, 0) == self.table }
    }

    /// # Safety
    /// A `T` lies there.
    #[inline]
    unsafe fn word<T: Copy>(address: u64, offset: usize) -> T {
        // SAFETY: by the caller's word.
        unsafe {
            (address as *const c_void)
                .byte_add(offset)
                .cast::<T>()
                .read()
        }
    }
}
