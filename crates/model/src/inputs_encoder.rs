//! Writes lists of inputs as the words that `inputs` describes.

#![expect(
    clippy::inline_always,
    reason = "what is known of a list while it is written is in registers, which a call would spill"
)]

use crate::DType;
use crate::inputs::{InputKind, header};
use crate::keywords::{self, KeywordValue};
use crate::word_sink::WordSink;

/// Writes one list of inputs as words.
pub type InputsEncoder = Encoder<Vec<u64>>;

/// Writes one list of inputs, as words that go to a `W`.
#[derive(Clone, Debug, Default)]
pub struct Encoder<W> {
    words: W,
    storages: W,
}

impl InputsEncoder {
    /// Begins a list anew.
    pub fn restart(&mut self) {
        self.words.clear();
        self.storages.clear();
    }

    /// Returns the list so far.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Adds once more what was added since the list had `words` words.
    pub fn repeat(&mut self, words: usize) {
        self.words.extend_from_within(words..);
    }

    /// Takes back what was added since the list had `words` words. Where tensors lie stays told.
    pub fn truncate(&mut self, words: usize) {
        self.words.truncate(words);
    }
}

impl<W: WordSink> Encoder<W> {
    /// Begins a list. Its words go to the one, and where its tensors lie to the other, one address
    /// for each of them. The latter are not part of the list itself: equal lists are held once,
    /// wherever their tensors lie.
    #[inline]
    pub const fn new(words: W, storages: W) -> Self {
        Self { words, storages }
    }

    /// Ends the list. Returns where its words and where its addresses went.
    #[inline]
    pub fn into_parts(self) -> (W, W) {
        (self.words, self.storages)
    }

    /// Says where the storage of the tensor lies that is added next.
    #[inline(always)]
    pub fn storage(&mut self, address: u64) {
        self.storages.put([address]);
    }

    /// Adds a tensor, which may have no strides. Where there are fewer strides than dims, or more,
    /// those beyond the shorter of the two slices are left out.
    #[inline(always)]
    pub fn tensor(&mut self, dtype: DType, dims: &[usize], strides: &[isize]) {
        let count = dims.len().min(strides.len());
        let header = header(InputKind::Tensor, dtype, count);
        // Of a known length, the words are compared at once.
        match (dims, strides) {
            (&[], &[]) => self.words.put([header]),
            (&[a], &[s]) => self.words.put([header, a as u64, s as u64]),
            (&[a, b], &[s, t]) => {
                (self.words).put([header, a as u64, b as u64, s as u64, t as u64]);
            }
            (&[a, b, c], &[_, _, _]) => self.put_shape(header, [a, b, c], strides),
            (&[a, b, c, d], &[_, _, _, _]) => self.put_shape(header, [a, b, c, d], strides),
            (_, &[]) => self.strideless_tensor(dtype, dims),
            _ => self.tensor_of_any_dim(header, &dims[..count], &strides[..count]),
        }
    }

    #[inline(always)]
    fn put_shape<const DIM: usize>(&mut self, header: u64, dims: [usize; DIM], strides: &[isize]) {
        self.words.put([header]);
        self.words.put(dims.map(|dim| dim as u64));
        // As many strides as dims.
        self.words.put(std::array::from_fn::<_, DIM, _>(|index| {
            strides[index] as u64
        }));
    }

    #[cold]
    fn strideless_tensor(&mut self, dtype: DType, dims: &[usize]) {
        self.header(InputKind::StridelessTensor, dtype, dims.len());
        self.words.extend(dims.iter().map(|&dim| dim as u64));
    }

    #[cold]
    fn tensor_of_any_dim(&mut self, header: u64, dims: &[usize], strides: &[isize]) {
        self.words.put([header]);
        let dims = dims.iter().map(|&dim| dim as u64);
        let strides = strides.iter().map(|&stride| stride as u64);
        self.words.extend(dims.chain(strides));
    }

    /// Begins a list of `count` tensors, which are to be added next.
    pub fn tensor_list(&mut self, count: usize) {
        self.header(InputKind::TensorList, DType::Unknown, count);
    }

    /// Adds an integer.
    #[inline]
    pub fn int(&mut self, value: i64) {
        self.single(InputKind::Int, value as u64);
    }

    /// Adds a floating-point number.
    #[inline]
    pub fn float(&mut self, value: f64) {
        self.single(InputKind::Float, value.to_bits());
    }

    /// Adds a truth value.
    #[inline]
    pub fn bool(&mut self, value: bool) {
        self.single(InputKind::Bool, u64::from(value));
    }

    /// Adds a complex number.
    pub fn complex(&mut self, real: f64, imaginary: f64) {
        let header = header(InputKind::Complex, DType::Unknown, 0);
        (self.words).put([header, real.to_bits(), imaginary.to_bits()]);
    }

    /// Begins a list of `count` numbers of several kinds, which are to be added next; `other` stands
    /// for one that is absent.
    pub fn number_list(&mut self, count: usize) {
        self.header(InputKind::NumberList, DType::Unknown, count);
    }

    /// Adds a list of integers.
    pub fn int_list(&mut self, values: &[i64]) {
        self.header(InputKind::IntList, DType::Unknown, values.len());
        self.words.extend(values.iter().map(|&value| value as u64));
    }

    /// Adds a list of floating-point numbers.
    pub fn float_list(&mut self, values: &[f64]) {
        self.header(InputKind::FloatList, DType::Unknown, values.len());
        self.words
            .extend(values.iter().map(|value| value.to_bits()));
    }

    /// Adds a list of truth values.
    pub fn bool_list(&mut self, values: &[bool]) {
        self.header(InputKind::BoolList, DType::Unknown, values.len());
        self.words
            .extend(values.iter().map(|&value| u64::from(value)));
    }

    /// Adds an input that is not told apart: an absent value, a text, a device.
    #[inline]
    pub fn other(&mut self) {
        self.header(InputKind::Other, DType::Unknown, 0);
    }

    /// Adds the device of the host.
    #[inline]
    pub fn device(&mut self) {
        self.header(InputKind::Device, DType::Unknown, 0);
    }

    /// Says where the tensor that is added next begins in its storage, in elements.
    #[inline]
    pub fn offset(&mut self, elements: usize) {
        self.header(InputKind::Offset, DType::Unknown, elements);
    }

    /// Adds inputs that another encoder wrote.
    #[inline]
    pub fn inputs(&mut self, words: &[u64]) {
        self.words.copy(words);
    }

    /// Ends the list with what was given by keyword.
    #[cold]
    pub fn keywords(&mut self, keywords: &[(String, KeywordValue)]) {
        self.header(InputKind::Keywords, DType::Unknown, keywords.len());
        self.words.extend(keywords::encode(keywords).into_iter());
    }

    #[inline]
    fn header(&mut self, kind: InputKind, dtype: DType, count: usize) {
        self.words.put([header(kind, dtype, count)]);
    }

    #[inline]
    fn single(&mut self, kind: InputKind, value: u64) {
        self.words.put([header(kind, DType::Unknown, 0), value]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor_and_number() -> InputsEncoder {
        let mut encoder = InputsEncoder::default();
        encoder.tensor(DType::F32, &[2, 3], &[3, 1]);
        encoder.int(7);
        encoder
    }

    #[test]
    fn inputs_of_another_encoder_are_as_if_written_here() {
        let mut copy = InputsEncoder::default();
        copy.bool(true);
        let begin = copy.words().len();
        copy.inputs(tensor_and_number().words());
        assert_eq!(copy.words()[begin..], *tensor_and_number().words());
    }

    #[test]
    fn what_is_repeated_or_taken_back_is_what_came_last() {
        let mut encoder = tensor_and_number();
        let before = encoder.words().len();
        encoder.tensor(DType::I64, &[4], &[1]);
        let with_one = encoder.words().to_vec();
        encoder.repeat(before);
        assert_eq!(encoder.words()[..with_one.len()], with_one);
        assert_eq!(encoder.words()[with_one.len()..], with_one[before..]);
        encoder.truncate(before);
        assert_eq!(encoder.words(), tensor_and_number().words());
    }
}
