//! Encodes lists of inputs as the words that `inputs` describes.

#![expect(
    clippy::inline_always,
    reason = "the state of a list stays in registers while it is written, and a call would spill it"
)]

use crate::DType;
use crate::inputs::{InputKind, header};
use crate::keywords::{self, KeywordValue};
use crate::storages::{IDENTITIES, TensorIdentity};
use crate::word_sink::WordSink;

/// Encodes one list of inputs into a vector of its own.
pub type InputsEncoder = Encoder<Vec<u64>>;

/// Encodes one list of inputs into a [`WordSink`]. It is generic because the recorder encodes in
/// place over the previous list, while readers and tests fill a vector.
#[derive(Clone, Debug, Default)]
pub struct Encoder<W> {
    words: W,
    storages: W,
}

impl InputsEncoder {
    /// Clears the list, to encode another.
    pub fn restart(&mut self) {
        self.words.clear();
        self.storages.clear();
    }

    /// Returns the words encoded so far.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Repeats everything added since the list had `words` words.
    pub fn repeat(&mut self, words: usize) {
        self.words.extend_from_within(words..);
    }

    /// Removes everything added since the list had `words` words. Storage addresses are kept.
    pub fn truncate(&mut self, words: usize) {
        self.words.truncate(words);
    }
}

impl<W: WordSink> Encoder<W> {
    /// Starts a list. Its words go to the first sink, and the storage address of each tensor to the
    /// second. Addresses are not part of the list itself, so that equal lists are interned once
    /// wherever their tensors lie.
    #[inline]
    pub const fn new(words: W, storages: W) -> Self {
        Self { words, storages }
    }

    /// Ends the list and returns the two sinks.
    #[inline]
    pub fn into_parts(self) -> (W, W) {
        (self.words, self.storages)
    }

    /// Sets the storage address of the tensor that is added next.
    #[inline(always)]
    pub fn storage(&mut self, address: u64) {
        self.storages.put([address]);
    }

    /// Ends the storage addresses. The identity of each of these tensors must be added next.
    #[inline]
    pub fn begin_identities(&mut self) {
        self.storages.put([IDENTITIES]);
    }

    /// Adds the identity of a tensor.
    #[inline]
    pub fn identity(&mut self, identity: TensorIdentity) {
        self.storages.put([identity.to_word()]);
    }

    /// Adds a tensor. `strides` may be empty for a tensor without strides; otherwise dims and
    /// strides are cut to the shorter of the two.
    #[inline(always)]
    pub fn tensor(&mut self, dtype: DType, dims: &[usize], strides: &[isize]) {
        let count = dims.len().min(strides.len());
        let header = header(InputKind::Tensor, dtype, count);
        // With a known length, the words are compared at once.
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

    /// Starts a list of `count` tensors, which must be added next.
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

    /// Adds a boolean.
    #[inline]
    pub fn bool(&mut self, value: bool) {
        self.single(InputKind::Bool, u64::from(value));
    }

    /// Adds a complex number.
    pub fn complex(&mut self, real: f64, imaginary: f64) {
        let header = header(InputKind::Complex, DType::Unknown, 0);
        (self.words).put([header, real.to_bits(), imaginary.to_bits()]);
    }

    /// Starts a list of `count` numbers of mixed kinds, which must be added next; `other` stands
    /// for an absent one.
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

    /// Adds a list of booleans.
    pub fn bool_list(&mut self, values: &[bool]) {
        self.header(InputKind::BoolList, DType::Unknown, values.len());
        self.words
            .extend(values.iter().map(|&value| u64::from(value)));
    }

    /// Adds an input whose value is not recorded: an absent one, a string, a device.
    #[inline]
    pub fn other(&mut self) {
        self.header(InputKind::Other, DType::Unknown, 0);
    }

    /// Adds the CPU device.
    #[inline]
    pub fn device(&mut self) {
        self.header(InputKind::Device, DType::Unknown, 0);
    }

    /// Sets the storage offset, in elements, of the tensor that is added next.
    #[inline]
    pub fn offset(&mut self, elements: usize) {
        self.header(InputKind::Offset, DType::Unknown, elements);
    }

    /// Adds inputs that another encoder has encoded.
    #[inline]
    pub fn inputs(&mut self, words: &[u64]) {
        self.words.copy(words);
    }

    /// Ends the list with the keyword arguments.
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
