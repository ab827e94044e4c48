//! The inputs of a scope: torch's values, written as the recorder's lists of inputs.
//!
//! What torch's own profiler tells apart is told apart here: tensors, lists of them, numbers, and
//! lists of up to thirty numbers. Everything else is an input that is only counted.

#![expect(unsafe_code, reason = "tensors are asked through torch's C interface")]

use std::ffi::c_void;
use std::ptr;

use mindprof_model::{DType, Encoder, WordSink};
use mindprof_record::{InputsRewriter, wants_storages};

use crate::ivalue::{Value, slice};
use crate::layout::{Layout, Tags};
use crate::symbols::{Symbols, TensorHandle, TensorSymbols};

/// Lists of numbers longer than this are not kept.
const LONGEST_LIST: usize = 30;

/// Writes values as inputs.
///
/// # Safety
/// The values are torch's, and live as long as the call.
pub(crate) unsafe fn write(
    values: &[Value],
    symbols: &Symbols,
    layout: &Layout,
    inputs: &mut InputsRewriter<'_>,
) {
    let tags = &layout.tags;
    for value in values {
        match value.tag {
            // SAFETY: the tag says that the value is a tensor.
            tag if tag == tags.tensor => unsafe { write_tensor(value, &symbols.tensor, inputs) },
            tag if tag == tags.int => inputs.int(value.payload as i64),
            tag if tag == tags.double => inputs.float(f64::from_bits(value.payload)),
            // Of the payload one byte is written.
            tag if tag == tags.bool => inputs.bool(value.payload as u8 != 0),
            // SAFETY: the tag says that the value is a list, which lives as long as it does.
            tag if tag == tags.list => unsafe { write_list(value, symbols, layout, inputs) },
            _ => inputs.other(),
        }
    }
}

/// # Safety
/// The value is a list.
unsafe fn write_list(
    value: &Value,
    symbols: &Symbols,
    layout: &Layout,
    inputs: &mut InputsRewriter<'_>,
) {
    // SAFETY: by the caller's word.
    let (values, element_type) = unsafe { value.list(layout) };
    if element_type == layout.tensor_type {
        inputs.tensor_list(values.len());
        for value in values {
            // SAFETY: the list says that its elements are tensors.
            unsafe { write_tensor(value, &symbols.tensor, inputs) };
        }
        return;
    }
    write_numbers(values, &layout.tags, inputs);
}

/// Writes a list of numbers.
pub(crate) fn write_numbers<W: WordSink>(values: &[Value], tags: &Tags, inputs: &mut Encoder<W>) {
    let Some(first) = values.first() else {
        inputs.int_list(&[]);
        return;
    };
    let is_uniform = values.iter().all(|value| value.tag == first.tag);
    if values.len() > LONGEST_LIST || !is_uniform {
        inputs.other();
    } else if first.tag == tags.int {
        let mut numbers = [0; LONGEST_LIST];
        inputs.int_list(collect(values, &mut numbers, |payload| payload as i64));
    } else if first.tag == tags.double {
        let mut numbers = [0.0; LONGEST_LIST];
        inputs.float_list(collect(values, &mut numbers, f64::from_bits));
    } else if first.tag == tags.bool {
        let mut numbers = [false; LONGEST_LIST];
        inputs.bool_list(collect(values, &mut numbers, |payload| payload as u8 != 0));
    } else {
        inputs.other();
    }
}

/// Returns the numbers of a list that is no longer than there is room for.
fn collect<'a, T>(values: &[Value], room: &'a mut [T], number: impl Fn(u64) -> T) -> &'a [T] {
    for (slot, value) in room.iter_mut().zip(values) {
        *slot = number(value.payload);
    }
    &room[..values.len().min(room.len())]
}

/// # Safety
/// The value is a tensor.
#[inline]
unsafe fn write_tensor(value: &Value, symbols: &TensorSymbols, inputs: &mut InputsRewriter<'_>) {
    // Nothing can be asked of a tensor that is undefined.
    if value.payload == symbols.undefined || value.payload == 0 {
        inputs.other();
        return;
    }
    // SAFETY: it is a tensor that is defined.
    match unsafe { Shape::of(value.tensor(), symbols) } {
        Some(shape) => {
            if wants_storages() {
                // SAFETY: as above.
                inputs.storage(unsafe { storage_address(value.tensor(), shape.dtype, symbols) });
            }
            inputs.tensor(shape.dtype, shape.dims, shape.strides);
        }
        None => inputs.other(),
    }
}

/// What a tensor is like. Borrows from the tensor.
struct Shape<'a> {
    dtype: DType,
    dims: &'a [usize],
    strides: &'a [isize],
}

impl Shape<'_> {
    /// Asks a tensor. Returns none of one that has no sizes, such as a nested one.
    ///
    /// # Safety
    /// The handle is of a tensor that is defined and lives as long as what is returned.
    #[inline]
    unsafe fn of(tensor: TensorHandle, symbols: &TensorSymbols) -> Option<Self> {
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
            (symbols.dim)(tensor, &raw mut dim) == 0
                && (symbols.sizes)(tensor, &raw mut dims) == 0
                && (symbols.dtype)(tensor, &raw mut dtype) == 0
        };
        let dim = usize::try_from(dim).ok().filter(|_| is_told)?;
        // SAFETY: the tensor has as many sizes and strides as dimensions, each of 64 bits, as
        // `usize` and `isize` have on the only platform that is supported.
        let (dims, strides) = unsafe {
            (
                slice(dims.cast::<usize>(), dim),
                slice(strides.cast::<isize>(), dim),
            )
        };
        Some(Self {
            dtype: dtype_of(dtype),
            dims,
            // What has no strides is written with its sizes alone, beside strides of zero.
            strides: if strides.len() == dims.len() {
                strides
            } else {
                no_strides(dim)
            },
        })
    }
}

/// Returns strides of a tensor that has none.
fn no_strides(dim: usize) -> &'static [isize] {
    const NONE: [isize; 64] = [0; 64];
    NONE.get(..dim).unwrap_or(&NONE)
}

/// Returns where the storage of a tensor begins.
///
/// # Safety
/// The handle is of a tensor that is defined.
pub(crate) unsafe fn storage_address(
    tensor: TensorHandle,
    dtype: DType,
    symbols: &TensorSymbols,
) -> u64 {
    let (mut data, mut offset) = (ptr::null::<c_void>(), 0);
    // SAFETY: as in `Shape::of`.
    let is_told = unsafe {
        (symbols.data)(tensor, &raw mut data) == 0
            && (symbols.storage_offset)(tensor, &raw mut offset) == 0
    };
    if !is_told || data.is_null() {
        return 0;
    }
    (data as u64).wrapping_sub((offset as u64).wrapping_mul(dtype.bytes()))
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
