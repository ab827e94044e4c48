//! Encodes the inputs of a scope: torch's values become the recorder's input lists.
//!
//! The same kinds are told apart as in torch's own profiler: tensors, lists of tensors, numbers,
//! and lists of up to thirty numbers. All other inputs are only counted.

#![expect(unsafe_code, reason = "values are read by their tags")]

use mindprof_model::{Encoder, TensorIdentity, WordSink};
use mindprof_record::{InputsRewriter, wants_storages};

use crate::ivalue::Value;
use crate::layout::{Layout, Tags};
use crate::tensor::{TensorFacts, Tensors, identity, storage_address};

/// Longer lists of numbers are not recorded.
const LONGEST_LIST: usize = 30;

/// Encodes values as inputs.
///
/// # Safety
/// The values are live values of torch's.
pub(crate) unsafe fn write(
    values: &[Value],
    tensors: &Tensors,
    layout: &Layout,
    inputs: &mut InputsRewriter<'_>,
) {
    let tags = &layout.tags;
    let mut identities = Identities::default();
    for value in values {
        match value.tag {
            // SAFETY: the tag identifies a tensor, which the caller keeps alive.
            tag if tag == tags.tensor => unsafe {
                write_tensor(value, tensors, &mut identities, inputs);
            },
            tag if tag == tags.int => inputs.int(value.payload as i64),
            tag if tag == tags.double => inputs.float(f64::from_bits(value.payload)),
            // Only one byte of the payload is set.
            tag if tag == tags.bool => inputs.bool(value.payload as u8 != 0),
            // SAFETY: the tag identifies a list, which the caller keeps alive.
            tag if tag == tags.list => unsafe {
                write_list(value, tensors, layout, &mut identities, inputs);
            },
            _ => write_seldom(value, tags, inputs),
        }
    }
    if identities.count > FEW {
        // SAFETY: the caller guarantees live values.
        unsafe { write_many_identities(values, tensors, layout, inputs) };
    } else if identities.count > 0 {
        inputs.begin_identities();
        for word in &identities.few[..identities.count] {
            inputs.identity(TensorIdentity::from_word(*word));
        }
    }
}

/// The identities of the tensors whose storages were written. They follow all storages, so they are
/// collected first.
#[derive(Default)]
struct Identities {
    few: [u64; FEW],
    /// How many there are. Those beyond `FEW`, which only long lists have, are read again later.
    count: usize,
}

/// How many identities are collected.
const FEW: usize = 6;

impl Identities {
    #[inline]
    fn add(&mut self, identity: TensorIdentity) {
        if let Some(place) = self.few.get_mut(self.count) {
            *place = identity.to_word();
        }
        self.count += 1;
    }
}

/// Reads the tensors again and writes their identities, in the order of their storages.
///
/// # Safety
/// The values are live values of torch's.
#[cold]
unsafe fn write_many_identities(
    values: &[Value],
    tensors: &Tensors,
    layout: &Layout,
    inputs: &mut InputsRewriter<'_>,
) {
    inputs.begin_identities();
    for value in values {
        // SAFETY: the tags identify tensors and lists, which the caller keeps alive, and the
        // element type of a list identifies tensors.
        unsafe {
            if value.tag == layout.tags.tensor {
                write_identity(value, tensors, inputs);
            } else if value.tag == layout.tags.list {
                let (items, element_type) = value.list(layout);
                for item in items.iter().filter(|_| element_type == layout.tensor_type) {
                    write_identity(item, tensors, inputs);
                }
            }
        }
    }
}

/// # Safety
/// The value is a live tensor.
unsafe fn write_identity(value: &Value, tensors: &Tensors, inputs: &mut InputsRewriter<'_>) {
    if value.payload == tensors.symbols.undefined || value.payload == 0 {
        return;
    }
    // SAFETY: the caller guarantees a live tensor, and it is not undefined.
    unsafe {
        if let Some(facts) = TensorFacts::of(value, tensors) {
            inputs.identity(identity(value, &facts, tensors));
        }
    }
}

/// # Safety
/// The value is a live list.
unsafe fn write_list(
    value: &Value,
    tensors: &Tensors,
    layout: &Layout,
    identities: &mut Identities,
    inputs: &mut InputsRewriter<'_>,
) {
    // SAFETY: the caller guarantees a live list.
    let (values, element_type) = unsafe { value.list(layout) };
    if element_type == layout.tensor_type {
        inputs.tensor_list(values.len());
        for value in values {
            // SAFETY: the element type of the list identifies tensors.
            unsafe { write_tensor(value, tensors, identities, inputs) };
        }
        return;
    }
    write_numbers(values, &layout.tags, inputs);
}

/// Encodes a list of numbers.
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

/// Encodes a list of numbers of several kinds, or of complex numbers.
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
            // Only one byte of the payload is set.
            tag if tag == tags.bool => inputs.bool(value.payload as u8 != 0),
            _ => write_seldom(value, tags, inputs),
        }
    }
}

/// Encodes a complex number, or counts a value of any other kind.
#[inline]
pub(crate) fn write_seldom<W: WordSink>(value: &Value, tags: &Tags, inputs: &mut Encoder<W>) {
    match tags.complex {
        Some(complex) if complex.tag == value.tag => {
            // SAFETY: the tag identifies a complex number, which the value keeps alive, and the
            // probe found the offset of its parts.
            let [real, imaginary] = unsafe { value.complex(complex.offset) };
            inputs.complex(real, imaginary);
        }
        _ => inputs.other(),
    }
}

/// Collects the numbers of a list that fits into `room`.
fn collect<'a, T>(values: &[Value], room: &'a mut [T], number: impl Fn(u64) -> T) -> &'a [T] {
    for (slot, value) in room.iter_mut().zip(values) {
        *slot = number(value.payload);
    }
    &room[..values.len().min(room.len())]
}

/// # Safety
/// The value is a live tensor.
#[inline]
unsafe fn write_tensor(
    value: &Value,
    tensors: &Tensors,
    identities: &mut Identities,
    inputs: &mut InputsRewriter<'_>,
) {
    // An undefined tensor has no facts.
    if value.payload == tensors.symbols.undefined || value.payload == 0 {
        inputs.other();
        return;
    }
    // SAFETY: the caller guarantees a live tensor, and it is not undefined.
    match unsafe { TensorFacts::of(value, tensors) } {
        Some(facts) => {
            if wants_storages() {
                // SAFETY: as above.
                let (address, identity) = unsafe {
                    let address = storage_address(value, &facts, tensors);
                    (address, identity(value, &facts, tensors))
                };
                inputs.storage(address);
                identities.add(identity);
            }
            inputs.tensor(facts.dtype, facts.dims, facts.strides);
        }
        None => inputs.other(),
    }
}
