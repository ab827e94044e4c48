//! What tensors are like: their type, sizes, strides, and where their bytes lie.
//!
//! torch's C interface tells each by a call of its own. Most tensors are plain ones, of one class,
//! and hold these facts where all others of the class do: a [`TensorLayout`] has those places, and
//! spares the calls. A tensor may have other sizes than lie in it: symbols of a graph that is
//! traced, or what Python says. Such a one is not asked, because asking would fix the symbols, or
//! run Python.

#![expect(
    unsafe_code,
    reason = "tensors are asked through torch's C interface, and read by a layout that was found"
)]

use std::ffi::c_void;
use std::ptr;

use mindprof_model::DType;

use crate::ivalue::{Value, slice};
use crate::symbols::{TensorHandle, TensorSymbols};
use crate::tensor_layout::TensorLayout;

/// torch's number of the host among kinds of devices.
pub(crate) const HOST: i32 = 0;

/// How to look at the tensors of this process.
#[derive(Clone, Copy)]
pub(crate) struct Tensors {
    pub(crate) symbols: TensorSymbols,
    /// None where every tensor is asked for everything.
    pub(crate) layout: Option<TensorLayout>,
}

/// What a tensor is like. Borrows from the tensor.
pub(crate) struct TensorFacts<'a> {
    pub(crate) dtype: DType,
    pub(crate) dims: &'a [usize],
    /// Empty if it has none.
    pub(crate) strides: &'a [isize],
}

impl TensorFacts<'_> {
    /// Looks at a tensor. Returns none of one that has no sizes, such as a nested one.
    ///
    /// # Safety
    /// The value is a tensor that is defined and lives as long as what is returned.
    #[inline]
    pub(crate) unsafe fn of(tensor: &Value, tensors: &Tensors) -> Option<Self> {
        // SAFETY: by the caller's word.
        unsafe {
            match &tensors.layout {
                Some(layout) if layout.is_plain(tensor) => layout.read(tensor),
                Some(layout) if layout.is_untold(tensor) => None,
                _ => ask(tensor.tensor(), &tensors.symbols),
            }
        }
    }
}

/// Asks a tensor.
///
/// # Safety
/// The handle is of a tensor that is defined and lives as long as what is returned.
#[cold]
unsafe fn ask<'a>(tensor: TensorHandle, symbols: &TensorSymbols) -> Option<TensorFacts<'a>> {
    let (mut dim, mut dtype, mut layout) = (0, 0, 0);
    let (mut dims, mut strides) = (ptr::null(), ptr::null());
    // SAFETY: the functions write one answer each, and throw nothing.
    let is_told = unsafe {
        if let Some(ask) = symbols.layout {
            ask(tensor, &raw mut layout);
        }
        // Only what is strided has strides; where that is not told, asking for them tells.
        if layout == 0 && (symbols.strides)(tensor, &raw mut strides) != 0 {
            strides = ptr::null();
        }
        (symbols.sizes)(tensor, &raw mut dims) == 0
            && (symbols.dim)(tensor, &raw mut dim) == 0
            && (symbols.dtype)(tensor, &raw mut dtype) == 0
    };
    let dim = usize::try_from(dim).ok().filter(|_| is_told)?;
    // SAFETY: the tensor has as many sizes and strides as dimensions.
    let (dims, strides) = unsafe { (sizes_at(dims, dim), strides_at(strides, dim)) };
    // Where it is not told which tensors have strides, those that have none have zeros there.
    let is_doubtful = symbols.layout.is_none() && strides.contains(&0);
    Some(TensorFacts {
        dtype: dtype_of(dtype),
        dims,
        strides: if is_doubtful { &[] } else { strides },
    })
}

/// # Safety
/// So many numbers of 64 bits lie there, as `usize` has on the only platform that is supported.
#[inline]
pub(crate) unsafe fn sizes_at<'a>(begin: *const i64, dim: usize) -> &'a [usize] {
    // SAFETY: by the caller's word.
    unsafe { slice(begin.cast(), dim) }
}

/// # Safety
/// As of [`sizes_at`].
#[inline]
pub(crate) unsafe fn strides_at<'a>(begin: *const i64, dim: usize) -> &'a [isize] {
    // SAFETY: by the caller's word.
    unsafe { slice(begin.cast(), dim) }
}

/// Returns where the storage of a tensor with these facts begins, zero if it has none, or has it on
/// another device: an address there says nothing on the host.
///
/// # Safety
/// As of [`TensorFacts::of`].
#[inline]
pub(crate) unsafe fn storage_address(
    tensor: &Value,
    facts: &TensorFacts<'_>,
    tensors: &Tensors,
) -> u64 {
    // SAFETY: by the caller's word.
    unsafe {
        match &tensors.layout {
            Some(layout) => layout.read_storage(tensor),
            None if facts.strides.len() < facts.dims.len() => 0,
            None => ask_storage(tensor.tensor(), facts.dtype, &tensors.symbols),
        }
    }
}

/// # Safety
/// The handle is of a tensor that is defined.
#[cold]
pub(crate) unsafe fn ask_storage(
    tensor: TensorHandle,
    dtype: DType,
    symbols: &TensorSymbols,
) -> u64 {
    let (mut data, mut offset) = (ptr::null::<c_void>(), 0);
    // SAFETY: the functions write one answer each, and throw nothing.
    let is_told = unsafe {
        device_kind(tensor, symbols).unwrap_or(HOST) == HOST
            && (symbols.data)(tensor, &raw mut data) == 0
            && (symbols.storage_offset)(tensor, &raw mut offset) == 0
    };
    if !is_told || data.is_null() {
        return 0;
    }
    (data as u64).wrapping_sub((offset as u64).wrapping_mul(dtype.bytes()))
}

/// Returns the number of the kind of device that a tensor lies on, if that is told.
///
/// # Safety
/// The handle is of a tensor that is defined.
pub(crate) unsafe fn device_kind(tensor: TensorHandle, symbols: &TensorSymbols) -> Option<i32> {
    let (ask, mut kind) = (symbols.storage?.device_kind, 0);
    // SAFETY: the function writes one answer, and throws nothing.
    let is_told = unsafe { ask(tensor, &raw mut kind) == 0 };
    is_told.then_some(kind)
}

/// Returns the type of elements that torch has under a number.
pub(crate) fn dtype_of(number: i32) -> DType {
    const TYPES: [DType; 30] = [
        DType::U8,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::F16,
        DType::F32,
        DType::F64,
        DType::C32,
        DType::C64,
        DType::C128,
        DType::Bool,
        DType::QI8,
        DType::QU8,
        DType::QI32,
        DType::BF16,
        DType::QU4X2,
        DType::QU2X4,
        // Bits without a meaning.
        DType::Unknown,
        DType::Unknown,
        DType::Unknown,
        DType::Unknown,
        DType::Unknown,
        DType::F8E5M2,
        DType::F8E4M3FN,
        DType::F8E5M2FNUZ,
        DType::F8E4M3FNUZ,
        DType::U16,
        DType::U32,
        DType::U64,
    ];
    match number {
        44 => DType::F8E8M0FNU,
        45 => DType::F4E2M1FNX2,
        46 => DType::BC32,
        _ => usize::try_from(number)
            .ok()
            .and_then(|number| TYPES.get(number).copied())
            .unwrap_or(DType::Unknown),
    }
}
