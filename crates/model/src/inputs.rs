//! What an event was given: the shapes, strides and types of its tensors and the values of its
//! numbers.
//!
//! A list of inputs is encoded as 64-bit words, so that the recorder can copy and compare it
//! without allocating; the table holds each distinct list once.
//!
//! ```text
//! header: kind | dtype << 8 | count << 16     then, by kind
//!   Tensor      count dims, count strides     Int, Float, Bool   one word
//!   IntList     count words                   FloatList          count words
//!   BoolList    count words                   Other              nothing
//!   TensorList  count encoded tensors
//! ```

use rustc_hash::FxHashMap;

use crate::InputsId;

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum DType {
    /// A type this table does not know.
    Unknown,
    /// 8-bit unsigned integer.
    U8,
    /// 8-bit signed integer.
    I8,
    /// 16-bit signed integer.
    I16,
    /// 32-bit signed integer.
    I32,
    /// 64-bit signed integer.
    I64,
    /// 16-bit IEEE float.
    F16,
    /// 16-bit brain float.
    BF16,
    /// 32-bit float.
    F32,
    /// 64-bit float.
    F64,
    /// Pair of 32-bit floats.
    C64,
    /// Pair of 64-bit floats.
    C128,
    /// Truth value.
    Bool,
    /// 16-bit unsigned integer.
    U16,
    /// 32-bit unsigned integer.
    U32,
    /// 64-bit unsigned integer.
    U64,
    /// Pair of 16-bit IEEE floats.
    C32,
    /// Pair of 16-bit brain floats.
    BC32,
    /// 8-bit float: 4 bits of exponent, 3 of mantissa, no infinities.
    F8E4M3FN,
    /// As `F8E4M3FN`, without a negative zero.
    F8E4M3FNUZ,
    /// 8-bit float: 5 bits of exponent, 2 of mantissa.
    F8E5M2,
    /// As `F8E5M2`, without infinities and a negative zero.
    F8E5M2FNUZ,
    /// 8-bit power of two.
    F8E8M0FNU,
    /// Pair of 4-bit floats.
    F4E2M1FNX2,
    /// 8-bit signed integer on a scale.
    QI8,
    /// 8-bit unsigned integer on a scale.
    QU8,
    /// 32-bit signed integer on a scale.
    QI32,
    /// Pair of 4-bit unsigned integers on a scale.
    QU4X2,
    /// Four 2-bit unsigned integers on a scale.
    QU2X4,
}

impl DType {
    const ALL: [Self; 29] = [
        Self::Unknown,
        Self::U8,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::F16,
        Self::BF16,
        Self::F32,
        Self::F64,
        Self::C64,
        Self::C128,
        Self::Bool,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::C32,
        Self::BC32,
        Self::F8E4M3FN,
        Self::F8E4M3FNUZ,
        Self::F8E5M2,
        Self::F8E5M2FNUZ,
        Self::F8E8M0FNU,
        Self::F4E2M1FNX2,
        Self::QI8,
        Self::QU8,
        Self::QI32,
        Self::QU4X2,
        Self::QU2X4,
    ];

    fn from_code(code: u8) -> Self {
        Self::ALL
            .get(usize::from(code))
            .copied()
            .unwrap_or(Self::Unknown)
    }

    /// Returns how many bytes one element takes; none are known of a type that is not known.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Unknown => 0,
            Self::U8
            | Self::I8
            | Self::Bool
            | Self::F8E4M3FN
            | Self::F8E4M3FNUZ
            | Self::F8E5M2
            | Self::F8E5M2FNUZ
            | Self::F8E8M0FNU
            | Self::F4E2M1FNX2
            | Self::QI8
            | Self::QU8
            | Self::QU4X2
            | Self::QU2X4 => 1,
            Self::I16 | Self::F16 | Self::BF16 | Self::U16 => 2,
            Self::I32 | Self::F32 | Self::U32 | Self::C32 | Self::BC32 | Self::QI32 => 4,
            Self::I64 | Self::F64 | Self::C64 | Self::U64 => 8,
            Self::C128 => 16,
        }
    }
}

/// The kind of one input, as its header stores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum InputKind {
    /// Nothing that is told apart: an absent value, a text, a device.
    Other,
    /// A tensor.
    Tensor,
    /// A list of tensors.
    TensorList,
    /// An integer.
    Int,
    /// A floating-point number.
    Float,
    /// A truth value.
    Bool,
    /// A list of integers.
    IntList,
    /// A list of floating-point numbers.
    FloatList,
    /// A list of truth values.
    BoolList,
}

impl InputKind {
    const ALL: [Self; 9] = [
        Self::Other,
        Self::Tensor,
        Self::TensorList,
        Self::Int,
        Self::Float,
        Self::Bool,
        Self::IntList,
        Self::FloatList,
        Self::BoolList,
    ];
}

/// One decoded input. Dims, strides and integers are two's-complement words.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// Nothing that is told apart.
    Other,
    /// A tensor.
    Tensor {
        /// The type of its elements.
        dtype: DType,
        /// Its sizes.
        dims: &'a [u64],
        /// Its strides in elements; as many as dims.
        strides: &'a [u64],
    },
    /// A list of tensors.
    TensorList(InputsIter<'a>),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A list of integers.
    IntList(&'a [u64]),
    /// A list of the bits of floating-point numbers.
    FloatList(&'a [u64]),
    /// A list of truth values: zero is false.
    BoolList(&'a [u64]),
}

#[inline]
pub(crate) const fn header(kind: InputKind, dtype: DType, count: usize) -> u64 {
    kind as u64 | (dtype as u64) << 8 | (count as u64) << 16
}

/// Walks the inputs of one encoded list.
#[derive(Clone, Debug)]
pub struct InputsIter<'a> {
    words: &'a [u64],
    left: usize,
}

impl<'a> InputsIter<'a> {
    /// Walks a whole list, as [`InputsEncoder::words`] gave it.
    pub fn new(words: &'a [u64]) -> Self {
        Self {
            words,
            left: usize::MAX,
        }
    }

    fn take(&mut self, count: usize) -> &'a [u64] {
        let (head, tail) = self.words.split_at(count.min(self.words.len()));
        self.words = tail;
        head
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
        let header = self.take_one();
        let count = (header >> 16) as usize;
        let kind = InputKind::ALL
            .get((header & 0xff) as usize)
            .copied()
            .unwrap_or(InputKind::Other);
        Some(match kind {
            InputKind::Other => Input::Other,
            InputKind::Tensor => Input::Tensor {
                dtype: DType::from_code((header >> 8) as u8),
                dims: self.take(count),
                strides: self.take(count),
            },
            InputKind::TensorList => {
                let list = Self {
                    words: self.words,
                    left: count,
                };
                for _ in 0..count {
                    self.next();
                }
                Input::TensorList(list)
            }
            InputKind::Int => Input::Int(self.take_one() as i64),
            InputKind::Float => Input::Float(f64::from_bits(self.take_one())),
            InputKind::Bool => Input::Bool(self.take_one() != 0),
            InputKind::IntList => Input::IntList(self.take(count)),
            InputKind::FloatList => Input::FloatList(self.take(count)),
            InputKind::BoolList => Input::BoolList(self.take(count)),
        })
    }
}

/// The distinct input lists of a profile. Id zero is always the empty list.
#[derive(Clone, Debug)]
pub struct InputsTable {
    lists: Vec<Box<[u64]>>,
    ids: FxHashMap<Box<[u64]>, InputsId>,
}

impl InputsTable {
    /// Makes a table that holds the empty list.
    pub fn new() -> Self {
        let mut table = Self {
            lists: Vec::new(),
            ids: FxHashMap::default(),
        };
        table.intern(&[]);
        table
    }

    /// Returns the id of an encoded list, adding it at first sight.
    pub fn intern(&mut self, words: &[u64]) -> InputsId {
        if let Some(id) = self.find(words) {
            return id;
        }
        let id = InputsId::from_index(self.lists.len());
        self.lists.push(words.into());
        self.ids.insert(words.into(), id);
        id
    }

    /// Returns the id of an encoded list if the table holds it.
    pub fn find(&self, words: &[u64]) -> Option<InputsId> {
        self.ids.get(words).copied()
    }

    /// Returns the words of a list.
    ///
    /// # Panics
    /// When `id` is of another profile.
    pub fn words(&self, id: InputsId) -> &[u64] {
        &self.lists[id.index()]
    }

    /// Walks the inputs of a list.
    ///
    /// # Panics
    /// When `id` is of another profile.
    pub fn inputs(&self, id: InputsId) -> InputsIter<'_> {
        InputsIter::new(self.words(id))
    }

    /// Returns the number of distinct lists, the empty one included.
    pub fn len(&self) -> usize {
        self.lists.len()
    }

    /// Returns whether there is no list but the empty one.
    pub fn is_empty(&self) -> bool {
        self.len() == 1
    }

    /// Walks the encoded lists in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &[u64]> {
        self.lists.iter().map(AsRef::as_ref)
    }
}

impl Default for InputsTable {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InputsEncoder;

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
                "-"
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
            Input::Tensor {
                dtype,
                dims,
                strides,
            } => {
                format!("{dtype:?}{:?}{:?}", signed(dims), signed(strides))
            }
            Input::TensorList(list) => {
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
