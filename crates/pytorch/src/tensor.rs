//! Reads the facts of tensors: dtype, sizes, strides, and the address of the storage.
//!
//! torch's C interface has a function for each. Most tensors are plain: they are of one class and
//! hold these facts at the same offsets, where a [`TensorLayout`] reads them without calls. Some
//! tensors have sizes other than those stored in them: symbols of a traced graph, or the answer of
//! a Python method. These are not queried, because a query would fix the symbols or run Python.

#![expect(
    unsafe_code,
    reason = "tensors are queried through torch's C interface or read by the layout that was found"
)]

use std::ffi::c_void;
use std::ptr;

use mindprof_model::{DType, TensorIdentity};

use crate::ivalue::{Value, slice};
use crate::symbols::{TensorHandle, TensorSymbols};
use crate::tensor_layout::TensorLayout;

/// The number of the CPU among torch's kinds of devices.
pub(crate) const CPU: i32 = 0;

/// The two ways of reading the tensors of this process.
#[derive(Clone, Copy)]
pub(crate) struct Tensors {
    pub(crate) symbols: TensorSymbols,
    /// `None` if every tensor is queried through the C interface.
    pub(crate) layout: Option<TensorLayout>,
}

/// The facts of a tensor, borrowed from it.
pub(crate) struct TensorFacts<'a> {
    pub(crate) dtype: DType,
    pub(crate) dims: &'a [usize],
    /// Empty if the tensor has no strides.
    pub(crate) strides: &'a [isize],
    /// The number of the layout in torch's C interface; zero for strided tensors.
    pub(crate) layout: u8,
}

impl TensorFacts<'_> {
    /// Reads a tensor. Returns `None` if it has no sizes, as a nested tensor.
    ///
    /// # Safety
    /// The value is a defined tensor that outlives the returned facts.
    #[inline]
    pub(crate) unsafe fn of(tensor: &Value, tensors: &Tensors) -> Option<Self> {
        // SAFETY: the caller guarantees a live, defined tensor; `read` is called only if it is
        // plain.
        unsafe {
            match &tensors.layout {
                Some(layout) if layout.is_plain(tensor) => layout.read(tensor),
                Some(layout) if layout.is_untold(tensor) => Self::of_wrapped(tensor, tensors),
                _ => ask(tensor.tensor(), &tensors.symbols),
            }
        }
    }
}

impl TensorFacts<'_> {
    /// Reads the tensor that a wrapper wraps. Returns `None` if the tensor is not a wrapper.
    ///
    /// # Safety
    /// As for [`TensorFacts::of`].
    #[cold]
    unsafe fn of_wrapped(tensor: &Value, tensors: &Tensors) -> Option<Self> {
        // SAFETY: the caller guarantees a live, defined tensor. A wrapper keeps a defined tensor
        // alive as long as itself.
        unsafe {
            let wrapped = tensors.layout.as_ref()?.wrapped(tensor)?;
            Self::of(&wrapped, tensors)
        }
    }
}

/// Queries a tensor through torch's C interface.
///
/// # Safety
/// The handle is that of a defined tensor that outlives the returned facts.
#[cold]
unsafe fn ask<'a>(tensor: TensorHandle, symbols: &TensorSymbols) -> Option<TensorFacts<'a>> {
    let (mut dim, mut dtype, mut layout) = (0, 0, 0);
    let (mut dims, mut strides) = (ptr::null(), ptr::null());
    // SAFETY: the caller guarantees a live, defined tensor. The functions write one answer each and
    // do not throw.
    let is_told = unsafe {
        if let Some(ask) = symbols.layout {
            ask(tensor, &raw mut layout);
        }
        // Only strided tensors have strides; if the layout is unknown, the query for strides fails
        // instead.
        if layout == 0 && (symbols.strides)(tensor, &raw mut strides) != 0 {
            strides = ptr::null();
        }
        (symbols.sizes)(tensor, &raw mut dims) == 0
            && (symbols.dim)(tensor, &raw mut dim) == 0
            && (symbols.dtype)(tensor, &raw mut dtype) == 0
    };
    let dim = usize::try_from(dim).ok().filter(|_| is_told)?;
    // SAFETY: a tensor has as many sizes as dimensions, and as many strides if it has any.
    let (dims, strides) = unsafe { (sizes_at(dims, dim), strides_at(strides, dim)) };
    // If layouts are unknown, tensors without strides have zeros there.
    let is_doubtful = symbols.layout.is_none() && strides.contains(&0);
    Some(TensorFacts {
        dtype: dtype_of(dtype),
        dims,
        strides: if is_doubtful { &[] } else { strides },
        layout: layout as u8,
    })
}

/// # Safety
/// `begin` is null or points to `dim` 64-bit numbers that live for `'a`.
#[inline]
pub(crate) unsafe fn sizes_at<'a>(begin: *const i64, dim: usize) -> &'a [usize] {
    // SAFETY: the caller guarantees `dim` numbers, and `usize` has 64 bits on the supported
    // platform.
    unsafe { slice(begin.cast(), dim) }
}

/// # Safety
/// As for [`sizes_at`].
#[inline]
pub(crate) unsafe fn strides_at<'a>(begin: *const i64, dim: usize) -> &'a [isize] {
    // SAFETY: the caller guarantees `dim` numbers, and `isize` has 64 bits on the supported
    // platform.
    unsafe { slice(begin.cast(), dim) }
}

/// Returns the address of the storage of a tensor with these facts. Returns zero if it has none, or
/// has it on another device, where the address means nothing to the CPU.
///
/// # Safety
/// As for [`TensorFacts::of`].
#[inline]
pub(crate) unsafe fn storage_address(
    tensor: &Value,
    facts: &TensorFacts<'_>,
    tensors: &Tensors,
) -> u64 {
    // SAFETY: the caller guarantees a live, defined tensor. One without strides is not asked for
    // its storage.
    unsafe {
        match &tensors.layout {
            Some(layout) => layout.read_storage(tensor),
            None if facts.strides.len() < facts.dims.len() => 0,
            None => ask_storage(tensor.tensor(), facts.dtype, &tensors.symbols),
        }
    }
}

/// Returns the identity of a tensor with these facts.
///
/// # Safety
/// As for [`TensorFacts::of`].
#[inline]
pub(crate) unsafe fn identity(
    tensor: &Value,
    facts: &TensorFacts<'_>,
    tensors: &Tensors,
) -> TensorIdentity {
    // SAFETY: the caller guarantees a live, defined tensor.
    let device = unsafe {
        match &tensors.layout {
            Some(layout) => layout.read_device(tensor),
            None => device_kind(tensor.tensor(), &tensors.symbols).unwrap_or(CPU) as u8,
        }
    };
    TensorIdentity::new(tensor.payload, device, facts.layout)
}

/// # Safety
/// The handle is that of a live, defined tensor.
#[cold]
pub(crate) unsafe fn ask_storage(
    tensor: TensorHandle,
    dtype: DType,
    symbols: &TensorSymbols,
) -> u64 {
    let (mut data, mut offset) = (ptr::null::<c_void>(), 0);
    // SAFETY: the caller guarantees a live, defined tensor. The functions write one answer each and
    // do not throw.
    let is_told = unsafe {
        device_kind(tensor, symbols).unwrap_or(CPU) == CPU
            && (symbols.data)(tensor, &raw mut data) == 0
            && (symbols.storage_offset)(tensor, &raw mut offset) == 0
    };
    if !is_told || data.is_null() {
        return 0;
    }
    (data as u64).wrapping_sub((offset as u64).wrapping_mul(dtype.bytes()))
}

/// Returns the number of the kind of device that a tensor lies on, or `None` if torch does not tell
/// it.
///
/// # Safety
/// The handle is that of a live, defined tensor.
pub(crate) unsafe fn device_kind(tensor: TensorHandle, symbols: &TensorSymbols) -> Option<i32> {
    let (ask, mut kind) = (symbols.storage?.device_kind, 0);
    // SAFETY: the caller guarantees a live, defined tensor. The function writes one answer and does
    // not throw.
    let is_told = unsafe { ask(tensor, &raw mut kind) == 0 };
    is_told.then_some(kind)
}

/// Returns the dtype with a number of torch's `ScalarType`.
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
        // Raw bits.
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
