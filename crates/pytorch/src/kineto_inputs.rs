//! Reads the inputs of events of torch's own collector in place.
//!
//! An event holds parallel lists: the sizes of its inputs, the names of their types, and the values
//! of scalars. The tags of values are learnt from events whose inputs are known from Python.

#![expect(
    unsafe_code,
    reason = "lists and values are read in place, by a layout that was checked"
)]

use std::ffi::c_void;

use mindprof_model::{DType, InputsEncoder};

use crate::error::{Error, Result};
use crate::inputs::{write_numbers, write_seldom};
use crate::ivalue::{Value, slice};
use crate::kineto::KinetoEvents;
use crate::kineto_symbols::{Array, Text};
use crate::layout::{ComplexNumbers, Tags};
use mindprof_frames::read_words;

/// The layout of values: their tags, and where lists hold their elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KinetoValues {
    tags: Tags,
    /// The offset in a list of the pointer to its first value; the pointer to their end follows.
    list_values: usize,
}

/// An input that is known by value, from Python's accessors.
#[derive(Clone, Debug, PartialEq)]
pub enum KnownValue {
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A Boolean.
    Bool(bool),
    /// A list of at least one integer.
    Ints(Vec<i64>),
    /// A complex number, by its real and imaginary part.
    Complex(f64, f64),
}

impl KinetoValues {
    /// Learns the layout from known values, each with the position of its event and its index among
    /// the inputs.
    ///
    /// # Errors
    /// If a value is not found where it should be, or a kind of value is missing.
    pub(crate) fn learn(
        events: &KinetoEvents<'_>,
        known: &[(usize, usize, KnownValue)],
    ) -> Result<Self> {
        let (mut int, mut double, mut bool, mut list) = (None, None, None, None);
        let mut complex = None;
        let value = |event, position| {
            let values = events.inputs(event).values;
            let found = values.get(position).copied();
            found.ok_or_else(|| unexpected("a value is missing"))
        };
        for (event, position, known) in known {
            let found: Value = value(*event, *position)?;
            let (is_same, tag) = match known {
                KnownValue::Int(number) => (found.payload as i64 == *number, &mut int),
                KnownValue::Float(number) => (found.payload == number.to_bits(), &mut double),
                // Only one byte of the payload is set.
                KnownValue::Bool(truth) => (found.payload as u8 == u8::from(*truth), &mut bool),
                KnownValue::Ints(_) => (true, &mut list),
                KnownValue::Complex(real, imaginary) => {
                    let words = read_words(found.payload);
                    complex = words.and_then(|words| {
                        ComplexNumbers::find(found.tag, words, (*real, *imaginary))
                    });
                    continue;
                }
            };
            if !is_same || tag.is_some_and(|tag| tag != found.tag) {
                return Err(unexpected("a value differs"));
            }
            *tag = Some(found.tag);
        }
        let lacks = || unexpected("a kind of value is missing from the sample");
        let tags = Tags {
            tensor: u32::MAX,
            int: int.ok_or_else(lacks)?,
            double: double.ok_or_else(lacks)?,
            bool: bool.ok_or_else(lacks)?,
            list: list.ok_or_else(lacks)?,
            complex,
        };
        let mut list_values = None;
        for (event, position, known) in known {
            if let KnownValue::Ints(numbers) = known {
                let offset = find_values(value(*event, *position)?.payload, numbers, tags.int);
                let offset =
                    offset.ok_or_else(|| unexpected("the values of a list were not found"))?;
                if list_values
                    .replace(offset)
                    .is_some_and(|known| known != offset)
                {
                    return Err(unexpected("two lists have different layouts"));
                }
            }
        }
        let list_values = list_values.ok_or_else(lacks)?;
        Ok(Self { tags, list_values })
    }
}

/// Returns the offset in a list of the pointer to its values, if these are the given numbers.
fn find_values(list: u64, numbers: &[i64], int: u32) -> Option<usize> {
    const WORDS: usize = 8;
    let words = read_words::<WORDS>(list)?;
    let value_bytes = size_of::<Value>() as u64;
    let are_numbers = |begin: u64| {
        numbers.iter().zip(0_u64..).all(|(number, index)| {
            let value = read_words::<2>(begin + index * value_bytes);
            value.is_some_and(|[payload, tag]| payload as i64 == *number && tag as u32 == int)
        })
    };
    (0..WORDS - 1)
        .find(|&index| {
            let bytes = words[index + 1].checked_sub(words[index]);
            bytes == Some(numbers.len() as u64 * value_bytes) && are_numbers(words[index])
        })
        .map(|index| index * size_of::<u64>())
}

fn unexpected(what: &str) -> Error {
    Error::Layout(format!("inputs in results of torch's collector: {what}"))
}

/// A `std::vector<int64_t>`.
#[repr(C)]
struct Numbers {
    begin: *const i64,
    end: *const i64,
    _room: *const i64,
}

impl Numbers {
    fn as_slice(&self) -> &[i64] {
        // SAFETY: `begin` and `end` delimit the elements of a live vector of torch's.
        unsafe { slice(self.begin, (self.end as usize - self.begin as usize) / 8) }
    }
}

/// A `std::variant` of the numbers of one tensor, or the numbers of each tensor of a list.
#[repr(C)]
struct Nested {
    begin: *const c_void,
    end: *const c_void,
    _room: *const c_void,
    kind: u8,
}

impl Nested {
    /// Returns the numbers of one tensor, or an empty slice if it holds those of a list.
    fn one(&self) -> &[i64] {
        if self.kind != 0 {
            return &[];
        }
        // SAFETY: the index of the variant is 0, so torch stores a live vector of numbers here.
        unsafe {
            slice(
                self.begin.cast(),
                (self.end as usize - self.begin as usize) / 8,
            )
        }
    }

    /// Returns the numbers of each tensor of a list, or an empty slice if it holds one tensor.
    fn each(&self) -> &[Numbers] {
        if self.kind != 1 {
            return &[];
        }
        let bytes = self.end as usize - self.begin as usize;
        // SAFETY: the index of the variant is 1, so torch stores a live vector of vectors here.
        unsafe { slice(self.begin.cast(), bytes / size_of::<Numbers>()) }
    }
}

/// The inputs of one event, borrowed from it.
pub(crate) struct KinetoInputs<'a> {
    dims: &'a [Numbers],
    types: &'a [Text],
    values: &'a [Value],
    /// As `dims`, but for a list of tensors with the dims of each. torch has it from 2.15 on.
    nested_dims: &'a [Nested],
    nested_strides: &'a [Nested],
}

impl KinetoEvents<'_> {
    /// Returns whether an event has keyword arguments, which only Python's accessors tell.
    ///
    /// # Panics
    /// If there are fewer events.
    pub(crate) fn has_keywords(&self, index: usize) -> bool {
        // SAFETY: `address` returns a live event, which the accessor only reads.
        unsafe { (self.symbols().has_keywords)(self.address(index)) != 0 }
    }

    /// Returns the inputs of an event.
    ///
    /// # Panics
    /// If there are fewer events.
    pub(crate) fn inputs(&self, index: usize) -> KinetoInputs<'_> {
        let (event, ask) = (self.address(index), self.symbols());
        // SAFETY: `address` returns a live event, which the accessors only read. The event owns the
        // returned lists, whose elements have these types.
        unsafe {
            KinetoInputs {
                dims: list((ask.dims)(event)),
                types: list((ask.types)(event)),
                values: list((ask.values)(event)),
                nested_dims: ask.nested_dims.map_or(&[], |dims| list(dims(event))),
                nested_strides: ask
                    .nested_strides
                    .map_or(&[], |strides| list(strides(event))),
            }
        }
    }
}

/// # Safety
/// The array holds values of type `T` that live for `'a`.
unsafe fn list<'a, T>(array: Array) -> &'a [T] {
    // SAFETY: the caller guarantees `len` live values of type `T`.
    unsafe { slice(array.begin.cast(), array.len) }
}

impl<'a> KinetoInputs<'a> {
    /// Encodes them.
    pub(crate) fn write(&self, layout: &KinetoValues, inputs: &mut InputsEncoder) {
        for (index, dims) in self.dims.iter().enumerate() {
            let kind = self.types.get(index).map_or(&b""[..], Text::bytes);
            match (kind, self.values.get(index)) {
                (b"TensorList", _) => self.write_list(index, inputs),
                (b"Scalar" | b"ScalarList", Some(value)) => layout.write(value, inputs),
                _ => {
                    let (dims, dtype) = (
                        dims.as_slice(),
                        std::str::from_utf8(kind).map(DType::from_cpp_name),
                    );
                    let strides = self.nested_strides.get(index).map_or(&[][..], Nested::one);
                    match dtype.unwrap_or(DType::Unknown) {
                        DType::Unknown if dims.is_empty() => inputs.other(),
                        dtype => write_tensor(dtype, dims, strides, inputs),
                    }
                }
            }
        }
    }

    /// Encodes a list of tensors, whose types torch does not tell.
    fn write_list(&self, index: usize, inputs: &mut InputsEncoder) {
        let each = |nested: &'a [Nested]| nested.get(index).map_or(&[][..], Nested::each);
        let (dims, strides) = (each(self.nested_dims), each(self.nested_strides));
        inputs.tensor_list(dims.len());
        for (tensor, dims) in dims.iter().enumerate() {
            let strides = strides.get(tensor).map_or(&[][..], Numbers::as_slice);
            write_tensor(DType::Unknown, dims.as_slice(), strides, inputs);
        }
    }
}

impl KinetoValues {
    fn write(&self, value: &Value, inputs: &mut InputsEncoder) {
        let tags = &self.tags;
        match value.tag {
            tag if tag == tags.int => inputs.int(value.payload as i64),
            tag if tag == tags.double => inputs.float(f64::from_bits(value.payload)),
            tag if tag == tags.bool => inputs.bool(value.payload as u8 != 0),
            tag if tag == tags.list => {
                // SAFETY: the tag identifies a list, which the event keeps alive, and the offset
                // was learnt.
                let values = unsafe { value.list_values(self.list_values) };
                write_numbers(values, tags, inputs);
            }
            _ => write_seldom(value, tags, inputs),
        }
    }
}

/// Encodes a tensor. If there are fewer strides than dims, the missing ones are zero, so that no
/// dim is lost.
fn write_tensor(dtype: DType, dims: &[i64], strides: &[i64], inputs: &mut InputsEncoder) {
    const ROOM: usize = 16;
    let size = |index: usize| dims[index] as usize;
    let stride = |index: usize| strides.get(index).map_or(0, |&stride| stride as isize);
    let known = if strides.is_empty() { 0 } else { dims.len() };
    if dims.len() <= ROOM {
        let (mut own_dims, mut own_strides) = ([0; ROOM], [0; ROOM]);
        for index in 0..dims.len() {
            (own_dims[index], own_strides[index]) = (size(index), stride(index));
        }
        inputs.tensor(dtype, &own_dims[..dims.len()], &own_strides[..known]);
    } else {
        let (own_dims, own_strides): (Vec<_>, Vec<_>) = (0..dims.len())
            .map(|index| (size(index), stride(index)))
            .unzip();
        inputs.tensor(dtype, &own_dims, &own_strides[..known]);
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
