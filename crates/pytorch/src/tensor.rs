//! What tensors are like: their type, sizes, strides, and where their bytes lie.
//!
//! torch's C interface tells each by a call of its own. Most tensors are plain ones, of one class,
//! and hold these facts where all others of the class do: [`TensorLayout`] has found those places on
//! tensors that were asked, and spares the calls. A tensor may have other sizes than lie in it:
//! symbols of a graph that is traced, or what Python says. Such a one is not asked, because asking
//! would fix the symbols, or run Python.

#![expect(
    unsafe_code,
    reason = "tensors are asked through torch's C interface, and read by a layout that was found"
)]

use std::ffi::c_void;
use std::ptr;

use mindprof_model::DType;

use crate::ivalue::{Value, slice};
use crate::self_read::read_words;
use crate::symbols::{TensorHandle, TensorSymbols};

/// So many words of a tensor are looked at; it has 22 in torch 2.15.
const TENSOR_WORDS: usize = 24;
/// So many sizes and strides lie in a tensor itself.
const FEW: usize = 5;
/// torch's number of the host among kinds of devices.
const HOST: i32 = 0;
/// So many words of a storage are looked at.
const STORAGE_WORDS: usize = 8;

/// How to look at the tensors of this process.
#[derive(Clone, Copy)]
pub(crate) struct Tensors {
    pub(crate) symbols: TensorSymbols,
    /// None where every tensor is asked for everything.
    pub(crate) layout: Option<TensorLayout>,
}

/// Tensors of which torch tells the facts, by their addresses. They live as long as this.
#[derive(Clone, Copy, Debug)]
pub struct TensorSamples<'a> {
    /// Plain ones of several types, with up to five dimensions, and with bytes, which begin at
    /// different places in their storages.
    pub plain: &'a [u64],
    /// One with more than five dimensions.
    pub large: u64,
    /// One on another device than the host, one that a program made as a class of its own, and two
    /// more of the class, which have Python say their sizes and their strides.
    pub others: [u64; 4],
}

/// What a tensor is like. Borrows from the tensor.
pub(crate) struct TensorFacts<'a> {
    pub(crate) dtype: DType,
    pub(crate) dims: &'a [usize],
    /// Empty if it has none.
    pub(crate) strides: &'a [isize],
}

impl TensorFacts<'_> {
    /// Looks at a tensor. Returns none of one that has no sizes, such as a nested one.
    ///
    /// # Safety
    /// The value is a tensor that is defined and lives as long as what is returned.
    #[inline]
    pub(crate) unsafe fn of(tensor: &Value, tensors: &Tensors) -> Option<Self> {
        // SAFETY: by the caller's word.
        unsafe {
            match &tensors.layout {
                Some(layout) if layout.is_plain(tensor) => layout.read(tensor),
                Some(layout) if layout.is_unasked(tensor, &tensors.symbols) => None,
                _ => ask(tensor.tensor(), &tensors.symbols),
            }
        }
    }
}

/// Asks a tensor.
///
/// # Safety
/// The handle is of a tensor that is defined and lives as long as what is returned.
#[cold]
unsafe fn ask<'a>(tensor: TensorHandle, symbols: &TensorSymbols) -> Option<TensorFacts<'a>> {
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
        (symbols.sizes)(tensor, &raw mut dims) == 0
            && (symbols.dim)(tensor, &raw mut dim) == 0
            && (symbols.dtype)(tensor, &raw mut dtype) == 0
    };
    let dim = usize::try_from(dim).ok().filter(|_| is_told)?;
    // SAFETY: the tensor has as many sizes and strides as dimensions.
    let (dims, strides) = unsafe { (sizes_at(dims, dim), strides_at(strides, dim)) };
    // Where it is not told which tensors have strides, those that have none have zeros there.
    let is_doubtful = symbols.layout.is_none() && strides.contains(&0);
    Some(TensorFacts {
        dtype: dtype_of(dtype),
        dims,
        strides: if is_doubtful { &[] } else { strides },
    })
}

/// # Safety
/// So many numbers of 64 bits lie there, as `usize` has on the only platform that is supported.
#[inline]
unsafe fn sizes_at<'a>(begin: *const i64, dim: usize) -> &'a [usize] {
    // SAFETY: by the caller's word.
    unsafe { slice(begin.cast(), dim) }
}

/// # Safety
/// As of [`sizes_at`].
#[inline]
unsafe fn strides_at<'a>(begin: *const i64, dim: usize) -> &'a [isize] {
    // SAFETY: by the caller's word.
    unsafe { slice(begin.cast(), dim) }
}

/// Returns where the storage of a tensor begins, zero if it has none, or has it on another device:
/// an address there says nothing on the host.
///
/// # Safety
/// As of [`TensorFacts::of`].
#[inline]
pub(crate) unsafe fn storage_address(tensor: &Value, dtype: DType, tensors: &Tensors) -> u64 {
    let layout = tensors.layout.as_ref();
    // SAFETY: by the caller's word.
    unsafe {
        match layout.and_then(|layout| layout.read_storage(tensor)) {
            Some(address) => address,
            None => ask_storage(tensor.tensor(), dtype, &tensors.symbols),
        }
    }
}

/// # Safety
/// The handle is of a tensor that is defined.
#[cold]
unsafe fn ask_storage(tensor: TensorHandle, dtype: DType, symbols: &TensorSymbols) -> u64 {
    let (mut data, mut offset) = (ptr::null::<c_void>(), 0);
    // SAFETY: the functions write one answer each, and throw nothing.
    let is_told = unsafe {
        device_kind(tensor, symbols).unwrap_or(HOST) == HOST
            && (symbols.data)(tensor, &raw mut data) == 0
            && (symbols.storage_offset)(tensor, &raw mut offset) == 0
    };
    if !is_told || data.is_null() {
        return 0;
    }
    (data as u64).wrapping_sub((offset as u64).wrapping_mul(dtype.bytes()))
}

/// Returns the number of the kind of device that a tensor lies on, if that is told.
///
/// # Safety
/// The handle is of a tensor that is defined.
unsafe fn device_kind(tensor: TensorHandle, symbols: &TensorSymbols) -> Option<i32> {
    let (ask, mut kind) = (symbols.storage?.device_kind, 0);
    // SAFETY: the function writes one answer, and throws nothing.
    let is_told = unsafe { ask(tensor, &raw mut kind) == 0 };
    is_told.then_some(kind)
}

/// Offsets in bytes within plain tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TensorLayout {
    /// With what a plain tensor begins: the table of its functions.
    table: u64,
    /// Its sizes, if they lie in it, and else their address. How many there are lies before them.
    sizes: usize,
    /// In the word of its type: the bits that say that it has other sizes or strides than lie in it.
    others: u64,
    /// The number of its type, of two bytes.
    dtype: usize,
    /// The number of its kind of device, of one byte.
    device: usize,
    /// The address of its storage, zero for none.
    storage: usize,
    /// In a storage: the address of its bytes.
    bytes: usize,
}

impl TensorLayout {
    /// Finds the offsets on tensors of which torch tells the facts. Returns none if any of them is not
    /// the only one at which all is right, or if something else than a plain tensor lies anywhere.
    pub(crate) fn find(tensors: &TensorSamples<'_>, symbols: &TensorSymbols) -> Option<Self> {
        let table = symbols.plain_table?;
        let take = |address| {
            let words = read_words::<TENSOR_WORDS>(address).filter(|words| words[0] == table)?;
            // SAFETY: what begins with the table of plain tensors is one.
            unsafe { TensorSample::take(address, words, symbols) }
        };
        let samples = tensors.plain.iter().map(|&address| take(address));
        let samples: Vec<TensorSample> = samples.collect::<Option<_>>()?;
        let all = |holds: &dyn Fn(&TensorSample) -> bool| {
            !samples.is_empty() && samples.iter().all(holds)
        };
        let words = || (8..8 * TENSOR_WORDS).step_by(8);
        let sizes = only(words(), |offset| {
            all(&|sample| sample.is_at(offset) && sample.word(offset - 8) == sample.dim as u64)
        })?;
        let large = take(tensors.large)?;
        let is_large = large.dim > FEW
            && large.word(sizes - 8) == large.dim as u64
            && large.word(sizes) == large.sizes
            && large.strides == large.sizes + 8 * large.dim as u64;
        let dtype = only((8..8 * TENSOR_WORDS).step_by(2), |offset| {
            all(&|sample| sample.half(offset) == sample.dtype)
        })?;
        let (storage, word) = only(
            words().flat_map(|storage| (0..STORAGE_WORDS).map(move |word| (storage, word))),
            |(storage, word)| all(&|sample| sample.bytes_at(storage, word) == Some(sample.bytes)),
        )?;
        let [elsewhere, own, by_sizes, by_strides] = tensors
            .others
            .map(|address| read_words::<TENSOR_WORDS>(address).filter(|words| words[0] == table));
        let (elsewhere, flags) = (elsewhere?, dtype / 8);
        let [own, by_sizes, by_strides] = [own?, by_sizes?, by_strides?].map(|words| words[flags]);
        let others = (own ^ by_sizes) | (own ^ by_strides);
        let is_told_apart = own != by_sizes && own != by_strides && own & others == 0;
        // SAFETY: as above.
        let kind = unsafe { device_kind(Value::new(tensors.others[0], 0).tensor(), symbols) }?;
        let device = only(8..8 * TENSOR_WORDS, |offset| {
            kind != HOST
                && i32::from(byte(&elsewhere, offset)) == kind
                && all(&|sample| i32::from(byte(&sample.words, offset)) == HOST)
        })?;
        let is_right =
            is_large && is_told_apart && all(&|sample| sample.words[flags] & others == 0);
        is_right.then_some(Self {
            table,
            sizes,
            others,
            dtype,
            device,
            storage,
            bytes: 8 * word,
        })
    }

    /// Reads a plain tensor. Returns none if it has other sizes or strides than lie in it.
    ///
    /// # Safety
    /// The value is a plain tensor, which lives as long as what is returned.
    #[inline]
    unsafe fn read<'a>(&self, tensor: &Value) -> Option<TensorFacts<'a>> {
        let address = tensor.payload;
        // SAFETY: by the caller's word, and of plain tensors the layout says what lies where: few
        // sizes and strides in the tensor, more side by side elsewhere.
        unsafe {
            if self.has_others(tensor) {
                return None;
            }
            let dim = Self::word::<usize>(address, self.sizes - 8);
            let (dims, room) = if dim <= FEW {
                (address + self.sizes as u64, FEW)
            } else {
                (Self::word(address, self.sizes), dim)
            };
            Some(TensorFacts {
                dtype: dtype_of(i32::from(Self::word::<u16>(address, self.dtype))),
                dims: sizes_at(dims as *const i64, dim),
                strides: strides_at((dims as *const i64).add(room), dim),
            })
        }
    }

    /// Returns whether a tensor has other sizes or strides than lie in it.
    ///
    /// # Safety
    /// The value is a tensor that is defined; all classes begin with what plain ones have.
    #[inline]
    unsafe fn has_others(&self, tensor: &Value) -> bool {
        // SAFETY: by the caller's word.
        unsafe { Self::word::<u64>(tensor.payload, self.dtype & !7) & self.others != 0 }
    }

    /// Returns whether a tensor is one that graphs are traced with and may have symbols for sizes.
    ///
    /// # Safety
    /// The value is a tensor that is defined.
    unsafe fn is_unasked(&self, tensor: &Value, symbols: &TensorSymbols) -> bool {
        // SAFETY: by the caller's word.
        unsafe {
            let table = Self::word::<u64>(tensor.payload, 0);
            symbols.functional_table == Some(table) && self.has_others(tensor)
        }
    }

    /// Returns where the bytes of a plain tensor begin on the host, zero if it has none there; none of
    /// another one.
    ///
    /// # Safety
    /// The value is a tensor that is defined.
    #[inline]
    unsafe fn read_storage(&self, tensor: &Value) -> Option<u64> {
        // SAFETY: as in `read`; a storage lives as long as its tensors.
        unsafe {
            if !self.is_plain(tensor) {
                return None;
            }
            let device = Self::word::<u8>(tensor.payload, self.device);
            let storage = Self::word::<u64>(tensor.payload, self.storage);
            if i32::from(device) != HOST || storage == 0 {
                return Some(0);
            }
            Some(Self::word(storage, self.bytes))
        }
    }

    /// # Safety
    /// The value is a tensor that is defined.
    #[inline]
    unsafe fn is_plain(&self, tensor: &Value) -> bool {
        // SAFETY: by the caller's word; an object of C++ begins with the table of its functions.
        unsafe { Self::word::<u64>(tensor.payload, 0) == self.table }
    }

    /// # Safety
    /// A `T` lies there.
    #[inline]
    unsafe fn word<T: Copy>(address: u64, offset: usize) -> T {
        // SAFETY: by the caller's word.
        unsafe {
            (address as *const c_void)
                .byte_add(offset)
                .cast::<T>()
                .read()
        }
    }
}

/// A tensor as it lies in memory, and what torch says of it.
struct TensorSample {
    address: u64,
    words: [u64; TENSOR_WORDS],
    sizes: u64,
    strides: u64,
    dim: usize,
    dtype: u16,
    /// Where its storage begins.
    bytes: u64,
}

impl TensorSample {
    /// # Safety
    /// A tensor that is defined lies at the address.
    unsafe fn take(
        address: u64,
        words: [u64; TENSOR_WORDS],
        symbols: &TensorSymbols,
    ) -> Option<Self> {
        let value = Value::new(address, 0);
        let handle = value.tensor();
        let (mut dim, mut dtype) = (0, 0);
        let (mut sizes, mut strides) = (ptr::null(), ptr::null());
        // SAFETY: by the caller's word.
        unsafe {
            let is_told = (symbols.dim)(handle, &raw mut dim) == 0
                && (symbols.dtype)(handle, &raw mut dtype) == 0
                && (symbols.sizes)(handle, &raw mut sizes) == 0
                && (symbols.strides)(handle, &raw mut strides) == 0;
            let bytes = ask_storage(handle, dtype_of(dtype), symbols);
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
    }

    fn word(&self, offset: usize) -> u64 {
        self.words[offset / 8]
    }

    fn half(&self, offset: usize) -> u16 {
        (self.words[offset / 8] >> (8 * (offset % 8))) as u16
    }

    /// Returns whether its sizes lie in it, at this offset, and its strides behind them.
    fn is_at(&self, offset: usize) -> bool {
        let sizes = self.address + offset as u64;
        self.sizes == sizes && self.strides == sizes + 8 * FEW as u64
    }

    /// Returns a word of what lies at an address in it.
    fn bytes_at(&self, storage: usize, word: usize) -> Option<u64> {
        let words = read_words::<STORAGE_WORDS>(self.word(storage))?;
        Some(words[word])
    }
}

fn byte(words: &[u64; TENSOR_WORDS], offset: usize) -> u8 {
    words[offset / 8].to_le_bytes()[offset % 8]
}

/// Returns the only place at which something holds.
fn only<T: Copy>(places: impl Iterator<Item = T>, holds: impl Fn(T) -> bool) -> Option<T> {
    let mut found = places.filter(|&place| holds(place));
    let place = found.next()?;
    found.next().is_none().then_some(place)
}

/// Returns the type of elements that torch has under a number.
fn dtype_of(number: i32) -> DType {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stand_in::{self, Tensor, addresses, further_tensors, sample_tensors, samples};

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
        TensorLayout::find(&samples, symbols)
    }

    /// Returns the type, sizes, strides and address of the bytes of a tensor.
    fn facts(tensor: &Tensor, tensors: &Tensors) -> (DType, Vec<usize>, Vec<isize>, u64) {
        let value = Value::new(ptr::from_ref(tensor) as u64, 0);
        // SAFETY: the value is a tensor of the stand-in.
        unsafe {
            let facts = TensorFacts::of(&value, tensors).unwrap();
            let bytes = storage_address(&value, facts.dtype, tensors);
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
        let unasked = Value::new(ptr::from_ref(&unasked) as u64, 0);
        // SAFETY: the value is a tensor of the stand-in.
        assert!(unsafe { TensorFacts::of(&unasked, &read) }.is_none());
    }

    #[test]
    fn what_may_lie_in_two_places_is_not_read() {
        let symbols = symbols();
        let found = |tensors: &[Tensor]| find(&addresses(tensors), &symbols);
        assert_eq!(found(&[]), None);
        // The number of its type is also that of its dimensions.
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
