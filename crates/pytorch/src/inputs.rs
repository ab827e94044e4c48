//! The inputs of a scope: torch's values, written as the recorder's lists of inputs.
//!
//! What torch's own profiler tells apart is told apart here: tensors, lists of them, numbers, and
//! lists of up to thirty numbers. Everything else is an input that is only counted.

#![expect(unsafe_code, reason = "values are read by their tags")]

use mindprof_model::{Encoder, WordSink};
use mindprof_record::{InputsRewriter, wants_storages};

use crate::ivalue::Value;
use crate::layout::{Layout, Tags};
use crate::tensor::{TensorFacts, Tensors, storage_address};

/// Lists of numbers longer than this are not kept.
const LONGEST_LIST: usize = 30;

/// Writes values as inputs.
///
/// # Safety
/// The values are torch's, and live as long as the call.
pub(crate) unsafe fn write(
    values: &[Value],
    tensors: &Tensors,
    layout: &Layout,
    inputs: &mut InputsRewriter<'_>,
) {
    let tags = &layout.tags;
    for value in values {
        match value.tag {
            // SAFETY: the tag says that the value is a tensor.
            tag if tag == tags.tensor => unsafe { write_tensor(value, tensors, inputs) },
            tag if tag == tags.int => inputs.int(value.payload as i64),
            tag if tag == tags.double => inputs.float(f64::from_bits(value.payload)),
            // Of the payload one byte is written.
            tag if tag == tags.bool => inputs.bool(value.payload as u8 != 0),
            // SAFETY: the tag says that the value is a list, which lives as long as it does.
            tag if tag == tags.list => unsafe { write_list(value, tensors, layout, inputs) },
            _ => write_seldom(value, tags, inputs),
        }
    }
}

/// # Safety
/// The value is a list.
unsafe fn write_list(
    value: &Value,
    tensors: &Tensors,
    layout: &Layout,
    inputs: &mut InputsRewriter<'_>,
) {
    // SAFETY: by the caller's word.
    let (values, element_type) = unsafe { value.list(layout) };
    if element_type == layout.tensor_type {
        inputs.tensor_list(values.len());
        for value in values {
            // SAFETY: the list says that its elements are tensors.
            unsafe { write_tensor(value, tensors, inputs) };
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
    if values.len() > LONGEST_LIST {
        inputs.other();
    } else if !is_uniform {
        write_mixed(values, tags, inputs);
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
        write_mixed(values, tags, inputs);
    }
}

/// Writes a list of numbers of several kinds, or of complex ones.
#[cold]
fn write_mixed<W: WordSink>(values: &[Value], tags: &Tags, inputs: &mut Encoder<W>) {
    let kinds = [tags.int, tags.double, tags.bool];
    let complex = tags.complex.map(|complex| complex.tag);
    let is_number = |value: &Value| kinds.contains(&value.tag) || complex == Some(value.tag);
    if !values.iter().all(is_number) {
        inputs.other();
        return;
    }
    inputs.number_list(values.len());
    for value in values {
        match value.tag {
            tag if tag == tags.int => inputs.int(value.payload as i64),
            tag if tag == tags.double => inputs.float(f64::from_bits(value.payload)),
            // Of the payload one byte is written.
            tag if tag == tags.bool => inputs.bool(value.payload as u8 != 0),
            _ => write_seldom(value, tags, inputs),
        }
    }
}

/// Writes a complex number, and what is not told apart.
#[inline]
pub(crate) fn write_seldom<W: WordSink>(value: &Value, tags: &Tags, inputs: &mut Encoder<W>) {
    match tags.complex {
        Some(complex) if complex.tag == value.tag => {
            // SAFETY: the tag says that the value is one, and holds it; the probe found the offset.
            let [real, imaginary] = unsafe { value.complex(complex.offset) };
            inputs.complex(real, imaginary);
        }
        _ => inputs.other(),
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
unsafe fn write_tensor(value: &Value, tensors: &Tensors, inputs: &mut InputsRewriter<'_>) {
    // Nothing can be asked of a tensor that is undefined.
    if value.payload == tensors.symbols.undefined || value.payload == 0 {
        inputs.other();
        return;
    }
    // SAFETY: it is a tensor that is defined.
    match unsafe { TensorFacts::of(value, tensors) } {
        Some(facts) => {
            if wants_storages() {
                // SAFETY: as above.
                let address = unsafe { storage_address(value, &facts, tensors) };
                inputs.storage(address);
            }
            inputs.tensor(facts.dtype, facts.dims, facts.strides);
        }
        None => inputs.other(),
    }
}
