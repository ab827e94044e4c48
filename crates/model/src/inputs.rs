//! The inputs of an event: the shapes, strides and dtypes of its tensors, and the values of its
//! numbers.
//!
//! A list of inputs is encoded as 64-bit words, so that the recorder can copy and compare it
//! without allocating. [`crate::InputsTable`] holds each distinct list once.
//!
//! ```text
//! header: kind | dtype << 8 | count << 16     then, by kind
//!   Tensor      count dims, count strides     Int, Float, Bool   one word
//!   StridelessTensor  count dims
//!   IntList     count words                   FloatList          count words
//!   BoolList    count words                   Other              nothing
//!   TensorList  count encoded tensors         Device             nothing
//!   NumberList  count encoded numbers         Complex            two words
//!   Offset      nothing: count is the storage offset of the tensor that follows
//!   Keywords    the rest of the list, see `keywords`: not an input, but the end of the inputs
//! ```

use crate::{DType, KeywordValue, keywords};

/// The kind of an input, as its header stores it. [`Input`] is the decoded form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum InputKind {
    /// A value that is not recorded: an absent one, a string, a device.
    Other,
    /// A tensor.
    Tensor,
    /// A list of tensors.
    TensorList,
    /// An integer.
    Int,
    /// A floating-point number.
    Float,
    /// A boolean.
    Bool,
    /// A list of integers.
    IntList,
    /// A list of floating-point numbers.
    FloatList,
    /// A list of booleans.
    BoolList,
    /// The CPU device.
    Device,
    /// The storage offset of the tensor that follows, in elements; not an input of its own.
    Offset,
    /// The end of the inputs, followed by the keyword arguments; not an input of its own.
    Keywords,
    /// A complex number.
    Complex,
    /// A list of numbers of mixed kinds, or of complex numbers.
    NumberList,
    /// A tensor with sizes but no strides.
    StridelessTensor,
}

impl InputKind {
    const ALL: [Self; 15] = [
        Self::Other,
        Self::Tensor,
        Self::TensorList,
        Self::Int,
        Self::Float,
        Self::Bool,
        Self::IntList,
        Self::FloatList,
        Self::BoolList,
        Self::Device,
        Self::Offset,
        Self::Keywords,
        Self::Complex,
        Self::NumberList,
        Self::StridelessTensor,
    ];
}

/// One decoded input, as [`InputsIter`] yields it. Dims, strides and integers are two's-complement
/// words.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// A value that is not recorded.
    Other,
    /// A tensor.
    Tensor {
        /// Its dtype.
        dtype: DType,
        /// Its sizes.
        dims: &'a [u64],
        /// Its strides in elements, one per dimension. Empty if it has no strides, such as a sparse
        /// tensor.
        strides: &'a [u64],
        /// Its storage offset in elements, if that was recorded, otherwise zero.
        offset: u64,
    },
    /// A list of tensors.
    TensorList(InputsIter<'a>),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A boolean.
    Bool(bool),
    /// A list of integers.
    IntList(&'a [u64]),
    /// A list of floating-point numbers, as their bits.
    FloatList(&'a [u64]),
    /// A list of booleans; zero is false.
    BoolList(&'a [u64]),
    /// A complex number.
    Complex {
        /// Its real part.
        real: f64,
        /// Its imaginary part.
        imaginary: f64,
    },
    /// A list of numbers of mixed kinds, or of complex numbers; an absent one is [`Input::Other`].
    NumberList(InputsIter<'a>),
    /// The CPU device.
    Device,
}

/// Returns the first word of an input.
#[inline]
pub(crate) const fn header(kind: InputKind, dtype: DType, count: usize) -> u64 {
    kind as u64 | (dtype as u64) << 8 | (count as u64) << 16
}

fn kind_of(header: u64) -> InputKind {
    let kind = InputKind::ALL.get((header & 0xff) as usize).copied();
    kind.unwrap_or(InputKind::Other)
}

/// Iterates over the inputs of one encoded list. A damaged list ends early instead of panicking.
#[derive(Clone, Debug)]
pub struct InputsIter<'a> {
    words: &'a [u64],
    left: usize,
}

impl<'a> InputsIter<'a> {
    /// Iterates over a whole list from [`crate::InputsEncoder::words`].
    pub fn new(words: &'a [u64]) -> Self {
        Self {
            words,
            left: usize::MAX,
        }
    }

    /// Returns the keyword arguments at the end of the list.
    pub fn keywords(mut self) -> Vec<(String, KeywordValue)> {
        while self.next().is_some() {}
        match self.words.split_first() {
            Some((&header, words)) if kind_of(header) == InputKind::Keywords => {
                keywords::decode(words)
            }
            _ => Vec::new(),
        }
    }

    fn take(&mut self, count: usize) -> &'a [u64] {
        let (head, tail) = self.words.split_at(count.min(self.words.len()));
        self.words = tail;
        head
    }

    /// Takes the items of a list, each of which is an input.
    fn take_inputs(&mut self, count: usize) -> Self {
        let list = Self {
            words: self.words,
            left: count,
        };
        for _ in 0..count {
            if self.next().is_none() {
                break;
            }
        }
        list
    }

    fn take_one(&mut self) -> u64 {
        self.take(1).first().copied().unwrap_or_default()
    }
}

impl<'a> Iterator for InputsIter<'a> {
    type Item = Input<'a>;

    fn next(&mut self) -> Option<Input<'a>> {
        if self.left == 0 || self.words.is_empty() {
            return None;
        }
        self.left -= 1;
        let mut offset = 0;
        let mut header = self.words[0];
        let mut kind = kind_of(header);
        if kind == InputKind::Keywords {
            return None;
        }
        self.take(1);
        while kind == InputKind::Offset {
            offset = header >> 16;
            header = self.take_one();
            kind = kind_of(header);
        }
        let count = (header >> 16) as usize;
        Some(match kind {
            // An offset is always followed by a tensor, and keywords have ended the list.
            InputKind::Other | InputKind::Offset | InputKind::Keywords => Input::Other,
            InputKind::Device => Input::Device,
            InputKind::Tensor => Input::Tensor {
                dtype: DType::from_code((header >> 8) as u8),
                dims: self.take(count),
                strides: self.take(count),
                offset,
            },
            InputKind::StridelessTensor => Input::Tensor {
                dtype: DType::from_code((header >> 8) as u8),
                dims: self.take(count),
                strides: &[],
                offset,
            },
            InputKind::TensorList => Input::TensorList(self.take_inputs(count)),
            InputKind::NumberList => Input::NumberList(self.take_inputs(count)),
            InputKind::Complex => Input::Complex {
                real: f64::from_bits(self.take_one()),
                imaginary: f64::from_bits(self.take_one()),
            },
            InputKind::Int => Input::Int(self.take_one() as i64),
            InputKind::Float => Input::Float(f64::from_bits(self.take_one())),
            InputKind::Bool => Input::Bool(self.take_one() != 0),
            InputKind::IntList => Input::IntList(self.take(count)),
            InputKind::FloatList => Input::FloatList(self.take(count)),
            InputKind::BoolList => Input::BoolList(self.take(count)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{InputsEncoder, InputsTable};

    #[test]
    fn every_kind_is_decoded_as_it_was_encoded() {
        let mut encoder = InputsEncoder::default();
        encoder.tensor(DType::F32, &[3, 4], &[4, 1]);
        encoder.tensor_list(2);
        encoder.tensor(DType::I64, &[2], &[1]);
        encoder.tensor(DType::Bool, &[], &[]);
        encoder.int(-1);
        encoder.float(1.5);
        encoder.bool(true);
        encoder.int_list(&[3, -8]);
        encoder.float_list(&[2.0]);
        encoder.bool_list(&[true, false]);
        encoder.other();
        encoder.device();
        encoder.offset(6);
        encoder.tensor(DType::F64, &[2], &[3]);
        encoder.complex(1.5, -2.0);
        encoder.number_list(4);
        encoder.int(1);
        encoder.float(2.5);
        encoder.complex(0.0, 1.0);
        encoder.other();
        encoder.int(8);
        encoder.tensor(DType::F32, &[5, 6], &[]);

        let mut table = InputsTable::new();
        let id = table.intern(encoder.words());
        assert_eq!(table.intern(encoder.words()), id);
        let texts: Vec<String> = table.inputs(id).map(|input| describe(&input)).collect();
        assert_eq!(
            texts,
            [
                "F32[3, 4][4, 1]",
                "(I64[2][1] Bool[][])",
                "-1",
                "1.5",
                "true",
                "[3, -8]",
                "[2.0]",
                "[1, 0]",
                "-",
                "device",
                "F64[2][3]+6",
                "1.5-2i",
                "(1 2.5 0+1i -)",
                "8",
                "F32[5, 6][]"
            ]
        );
    }

    #[test]
    fn a_cut_list_ends_instead_of_panicking() {
        let mut encoder = InputsEncoder::default();
        encoder.tensor(DType::F32, &[3, 4], &[4, 1]);
        for cut in 0..encoder.words().len() {
            assert!(InputsIter::new(&encoder.words()[..cut]).count() <= 1);
        }
    }

    fn describe(input: &Input<'_>) -> String {
        let signed = |words: &[u64]| words.iter().map(|&word| word as i64).collect::<Vec<_>>();
        match input {
            Input::Other => "-".into(),
            Input::Device => "device".into(),
            Input::Tensor {
                dtype,
                dims,
                strides,
                offset,
            } => {
                let from = if *offset == 0 {
                    String::new()
                } else {
                    format!("+{offset}")
                };
                format!("{dtype:?}{:?}{:?}{from}", signed(dims), signed(strides))
            }
            Input::Complex { real, imaginary } => format!("{real}{imaginary:+}i"),
            Input::TensorList(list) | Input::NumberList(list) => {
                let items: Vec<_> = list.clone().map(|input| describe(&input)).collect();
                format!("({})", items.join(" "))
            }
            Input::Int(value) => value.to_string(),
            Input::Float(value) => value.to_string(),
            Input::Bool(value) => value.to_string(),
            Input::IntList(words) | Input::BoolList(words) => format!("{:?}", signed(words)),
            Input::FloatList(words) => {
                format!(
                    "{:?}",
                    words
                        .iter()
                        .map(|&word| f64::from_bits(word))
                        .collect::<Vec<_>>()
                )
            }
        }
    }
}
