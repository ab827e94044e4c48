//! Finds the offsets of facts in plain tensors, on tensors that torch describes too.
//!
//! The probe provides the samples. An offset is accepted only if it is the only one that is right
//! in all of them; the result is a `TensorLayout`.

#![expect(
    unsafe_code,
    reason = "tensors are queried through torch's C interface"
)]

use std::ptr;

use crate::ivalue::Value;
use crate::symbols::TensorSymbols;
use crate::tensor::{CPU, ask_storage, device_kind, dtype_of};
use crate::tensor_layout::{FEW, TensorLayout, WrapperLayout};
use mindprof_frames::read_words;

/// How many words of a tensor are examined; it has 22 in torch 2.15.
const TENSOR_WORDS: usize = 24;
/// How many words of a wrapper are examined; the wrapped tensor follows the fields of a tensor.
const WRAPPER_WORDS: usize = 32;
/// How many words of a storage are examined.
const STORAGE_WORDS: usize = 8;

/// The first words of a tensor.
type TensorWords = [u64; TENSOR_WORDS];

/// The addresses of sample tensors, which live as long as this. The caller of the probe creates
/// them, and torch's C interface tells their facts.
#[derive(Clone, Copy, Debug)]
pub struct TensorSamples<'a> {
    /// Plain tensors of several dtypes, with up to five dimensions and with bytes, which begin at
    /// different offsets in their storages.
    pub plain: &'a [u64],
    /// A plain tensor with more than five dimensions.
    pub large: u64,
    /// A tensor on another device than the CPU, an instance of a Python subclass, and two more of
    /// that class: one whose sizes and one whose strides come from Python.
    pub others: [u64; 4],
    /// A tensor of `torch.func.functionalize` and the tensor that it wraps, or zeros.
    pub wrapper: [u64; 2],
}

impl TensorSamples<'_> {
    /// Finds the offsets. Returns `None` if any of them is ambiguous or missing, or if a sample is
    /// not a plain tensor.
    pub(crate) fn find_layout(&self, symbols: &TensorSymbols) -> Option<TensorLayout> {
        let table = symbols.plain_table?;
        let plain = |&address: &u64| TensorSample::take(address, table, symbols);
        let plain = PlainSamples(self.plain.iter().map(plain).collect::<Option<_>>()?);
        let sizes = plain.find_sizes()?;
        let large = TensorSample::take(self.large, table, symbols)?;
        if !large.has_sizes_elsewhere(sizes) {
            return None;
        }
        let dtype = plain.find_dtype()?;
        let (others, untold) = self.find_others(&plain, table, dtype)?;
        let (storage, bytes) = plain.find_storage()?;
        Some(TensorLayout {
            table,
            sizes,
            others,
            untold,
            dtype,
            device: self.find_device(&plain, table, symbols)?,
            storage,
            bytes,
            wrapper: self.find_wrapper(table),
        })
    }

    fn find_wrapper(&self, plain_table: u64) -> Option<WrapperLayout> {
        let [wrapper, inner] = self.wrapper;
        let words = read_words::<WRAPPER_WORDS>(wrapper)?;
        let _is_tensor = plain_words(inner, plain_table)?;
        let value = only((8..8 * WRAPPER_WORDS).step_by(8), |offset| {
            words[offset / 8] == inner
        })?;
        (words[0] != plain_table).then_some(WrapperLayout {
            table: words[0],
            value,
        })
    }

    /// Finds the bits, in the word with the dtype, of tensors whose sizes or strides differ from
    /// those stored in them, and those of the bits that concern sizes or Python.
    ///
    /// torch has two fields of two bits each, the lower one for the class and the upper one for
    /// Python. In each, the lower bit is for strides and the upper one for sizes. Other bits are
    /// ignored, because padding is uninitialized.
    fn find_others(&self, plain: &PlainSamples, table: u64, dtype: usize) -> Option<(u64, u64)> {
        let flags = |address| plain_words(address, table).map(|words| words[dtype / 8]);
        let [_, own, by_sizes, by_strides] = self.others.map(flags);
        let (own, by_sizes, by_strides) = (own?, by_sizes?, by_strides?);
        let sizes = by_sizes & !own & (by_strides & !own) << 1;
        let strides = sizes >> 1;
        let others = sizes | strides;
        let is_right = sizes.count_ones() == 2
            && sizes & strides == 0
            && by_sizes & strides == 0
            && by_strides & sizes == 0
            && plain.all(|sample| sample.words[dtype / 8] & others == 0);
        let of_python = strides & strides.wrapping_sub(1);
        is_right.then_some((others, sizes | of_python))
    }

    fn find_device(
        &self,
        plain: &PlainSamples,
        table: u64,
        symbols: &TensorSymbols,
    ) -> Option<usize> {
        let [address, ..] = self.others;
        let elsewhere = plain_words(address, table)?;
        // SAFETY: an object that begins with the virtual table of plain tensors is one.
        let kind = unsafe { device_kind(Value::new(address, 0).tensor(), symbols) }?;
        only(8..8 * TENSOR_WORDS, |offset| {
            kind != CPU
                && i32::from(byte(&elsewhere, offset)) == kind
                && plain.all(|sample| i32::from(byte(&sample.words, offset)) == CPU)
        })
    }
}

/// The plain tensors as they lie in memory.
struct PlainSamples(Vec<TensorSample>);

impl PlainSamples {
    fn all(&self, holds: impl Fn(&TensorSample) -> bool) -> bool {
        !self.0.is_empty() && self.0.iter().all(holds)
    }

    fn find_sizes(&self) -> Option<usize> {
        only(word_offsets(), |offset| {
            self.all(|sample| sample.has_sizes_at(offset))
        })
    }

    fn find_dtype(&self) -> Option<usize> {
        only((8..8 * TENSOR_WORDS).step_by(2), |offset| {
            self.all(|sample| sample.half(offset) == sample.dtype)
        })
    }

    /// Finds the offset of a tensor's storage, and in the storage that of the address of its bytes.
    fn find_storage(&self) -> Option<(usize, usize)> {
        let words = |storage| (0..STORAGE_WORDS).map(move |word| (storage, 8 * word));
        only(word_offsets().flat_map(words), |(storage, bytes)| {
            self.all(|sample| sample.bytes_at(storage, bytes) == Some(sample.bytes))
        })
    }
}

/// A tensor as it lies in memory, and the facts that torch tells.
struct TensorSample {
    address: u64,
    words: TensorWords,
    sizes: u64,
    strides: u64,
    dim: usize,
    dtype: u16,
    /// The address of its storage.
    bytes: u64,
}

impl TensorSample {
    /// Reads what lies at an address and, if it is a plain tensor, queries its facts.
    fn take(address: u64, table: u64, symbols: &TensorSymbols) -> Option<Self> {
        let words = plain_words(address, table)?;
        let value = Value::new(address, 0);
        let handle = value.tensor();
        let (mut dim, mut dtype) = (0, 0);
        let (mut sizes, mut strides) = (ptr::null(), ptr::null());
        // SAFETY: an object that begins with the virtual table of plain tensors is one. The
        // functions write one answer each and do not throw.
        let (is_told, bytes) = unsafe {
            let is_told = (symbols.dim)(handle, &raw mut dim) == 0
                && (symbols.dtype)(handle, &raw mut dtype) == 0
                && (symbols.sizes)(handle, &raw mut sizes) == 0
                && (symbols.strides)(handle, &raw mut strides) == 0;
            (is_told, ask_storage(handle, dtype_of(dtype), symbols))
        };
        (is_told && bytes != 0).then_some(Self {
            address,
            words,
            sizes: sizes as u64,
            strides: strides as u64,
            dim: usize::try_from(dim).ok()?,
            dtype: u16::try_from(dtype).ok()?,
            bytes,
        })
    }

    fn word(&self, offset: usize) -> u64 {
        self.words[offset / 8]
    }

    fn half(&self, offset: usize) -> u16 {
        (self.word(offset) >> (8 * (offset % 8))) as u16
    }

    /// Returns whether its sizes lie in it at this offset, preceded by their number and followed by
    /// its strides.
    fn has_sizes_at(&self, offset: usize) -> bool {
        let sizes = self.address + offset as u64;
        self.word(offset - 8) == self.dim as u64
            && self.sizes == sizes
            && self.strides == sizes + 8 * FEW as u64
    }

    /// Returns whether it has more dimensions than are stored in a tensor, with the address of its
    /// sizes at this offset and its strides right behind them.
    fn has_sizes_elsewhere(&self, offset: usize) -> bool {
        self.dim > FEW
            && self.word(offset - 8) == self.dim as u64
            && self.word(offset) == self.sizes
            && self.strides == self.sizes + 8 * self.dim as u64
    }

    /// Returns a word of the object whose address lies in it.
    fn bytes_at(&self, storage: usize, offset: usize) -> Option<u64> {
        let words = read_words::<STORAGE_WORDS>(self.word(storage))?;
        Some(words[offset / 8])
    }
}

/// Returns the words at an address, or `None` if there is no plain tensor.
fn plain_words(address: u64, table: u64) -> Option<TensorWords> {
    read_words(address).filter(|words: &TensorWords| words[0] == table)
}

/// Returns the offsets of the words behind a tensor's virtual table pointer.
fn word_offsets() -> impl Iterator<Item = usize> {
    (8..8 * TENSOR_WORDS).step_by(8)
}

fn byte(words: &TensorWords, offset: usize) -> u8 {
    words[offset / 8].to_le_bytes()[offset % 8]
}

/// Returns the only place at which something holds.
fn only<T: Copy>(places: impl Iterator<Item = T>, holds: impl Fn(T) -> bool) -> Option<T> {
    let mut found = places.filter(|&place| holds(place));
    let place = found.next()?;
    found.next().is_none().then_some(place)
}

#[cfg(test)]
mod tests {
    use std::mem;

    use mindprof_model::DType;

    use super::*;
    use crate::stand_in::{self, Tensor, addresses, further_tensors, sample_tensors, samples};
    use crate::tensor::{TensorFacts, Tensors, storage_address};

    fn symbols() -> TensorSymbols {
        stand_in::symbols(|_| false).unwrap().tensor
    }

    fn find(tensors: &[u64], symbols: &TensorSymbols) -> Option<TensorLayout> {
        find_with(tensors, symbols, |_| ())
    }

    fn find_with(
        tensors: &[u64],
        symbols: &TensorSymbols,
        change: impl Fn(&mut TensorSamples<'_>),
    ) -> Option<TensorLayout> {
        let further = further_tensors();
        let mut samples = samples(tensors, &further);
        change(&mut samples);
        samples.find_layout(symbols)
    }

    /// Returns the dtype, sizes, strides and address of the bytes of a tensor.
    fn facts(tensor: &Tensor, tensors: &Tensors) -> (DType, Vec<usize>, Vec<isize>, u64) {
        let value = Value::new(ptr::from_ref(tensor) as u64, 0);
        // SAFETY: the value is a tensor of the stand-in, which the test keeps alive.
        unsafe {
            let facts = TensorFacts::of(&value, tensors).unwrap();
            let bytes = storage_address(&value, &facts, tensors);
            (facts.dtype, facts.dims.into(), facts.strides.into(), bytes)
        }
    }

    #[test]
    fn what_is_read_is_what_is_asked() {
        let (tensors, symbols) = (sample_tensors(), symbols());
        let layout = find(&addresses(&tensors), &symbols);
        assert!(layout.is_some());
        let plain = Tensor::new(6, &[4, 6], &[1, 4], 3);
        let [elsewhere, large, _, unasked, _] = further_tensors();
        let other = Tensor::new(6, &[4], &[1], 0).of_another_class();
        let read = Tensors { symbols, layout };
        let asked = Tensors {
            symbols,
            layout: None,
        };
        assert_eq!(facts(&elsewhere, &read).3, 0);
        for tensor in tensors.iter().chain([&plain, &elsewhere, &large, &other]) {
            assert_eq!(facts(tensor, &read), facts(tensor, &asked));
        }
        let expected = (DType::F32, vec![4, 6], vec![1, 4], plain.bytes());
        assert_eq!(facts(&plain, &read), expected);
        assert_eq!(facts(&large, &read).1, [1, 2, 1, 2, 1, 2]);
        assert_eq!(facts(&other, &read).0, DType::F64);
        let of_class = || Tensor::new(6, &[4], &[1], 0).of_another_class();
        let by_class = of_class().with_others(0b0010);
        let by_python = of_class().with_others(0b0100);
        for unasked in [unasked, by_class, by_python] {
            let unasked = Value::new(ptr::from_ref(&unasked) as u64, 0);
            // SAFETY: the value is a tensor of the stand-in, which the test keeps alive.
            assert!(unsafe { TensorFacts::of(&unasked, &read) }.is_none());
        }
        let strideless = of_class().with_others(0b0001);
        assert_eq!(facts(&strideless, &read), facts(&strideless, &asked));
    }

    #[test]
    fn bits_of_no_field_are_not_looked_at() {
        let (tensors, symbols) = (sample_tensors(), symbols());
        let layout = find(&addresses(&tensors), &symbols);
        assert!(layout.is_some());
        for place in 2..5 {
            let mut further = further_tensors();
            let left_over = mem::replace(&mut further[place], Tensor::new(6, &[], &[], 0));
            further[place] = left_over.with_others(1 << 40);
            let plain = addresses(&tensors);
            assert_eq!(samples(&plain, &further).find_layout(&symbols), layout);
        }
    }

    #[test]
    fn what_may_lie_in_two_places_is_not_read() {
        let symbols = symbols();
        let found = |tensors: &[Tensor]| find(&addresses(tensors), &symbols);
        assert_eq!(found(&[]), None);
        // The number of its dtype is also its number of dimensions.
        assert_eq!(found(&[Tensor::new(2, &[6, 3], &[3, 1], 0)]), None);
    }

    #[test]
    fn what_is_no_plain_tensor_is_not_asked() {
        let (samples, symbols) = (sample_tensors(), symbols());
        let mut tensors = addresses(&samples);
        let nothing = [7_u64; 32];
        for address in [0, 8, nothing.as_ptr() as u64] {
            tensors.push(address);
            assert_eq!(find(&tensors, &symbols), None);
            tensors.pop();
        }
        let without_table = stand_in::symbols(|name| name.starts_with("_ZTV")).unwrap();
        assert_eq!(find(&tensors, &without_table.tensor), None);
        for wrong in [0, nothing.as_ptr() as u64, tensors[0]] {
            let large = find_with(&tensors, &symbols, |samples| samples.large = wrong);
            assert_eq!(large, None);
            for place in [0, 2, 3] {
                let change = |samples: &mut TensorSamples<'_>| samples.others[place] = wrong;
                assert_eq!(find_with(&tensors, &symbols, change), None);
            }
        }
    }
}
