//! The binary encoding of summaries: little-endian base-128 numbers, and a table of strings.
//!
//! Equal values have equal bytes, because strings are numbered in the order in which the values
//! name them. A checksum at the end finds altered bytes.

use std::sync::Arc;

use mindprof_model::Nanos;
use rustc_hash::FxHashMap;

use crate::error::{Error, Result};

pub(crate) const MAGIC: &[u8] = b"mindrank";
const VERSION: u8 = 2;
const CHECKSUM_BYTES: usize = 8;

/// The most elements that are allocated before any of them was read.
const TRUSTED_LENGTH: usize = 1024;

/// A value with a binary form.
pub(crate) trait Encode: Sized {
    fn write(&self, writer: &mut Writer);

    fn read(reader: &mut Reader<'_>) -> Result<Self>;
}

/// Implements [`Encode`] for a struct, field by field, so that writing and reading cannot diverge.
macro_rules! encode_fields {
    ($name:ident { $($field:ident),+ $(,)? }) => {
        impl $crate::codec::Encode for $name {
            fn write(&self, writer: &mut $crate::codec::Writer) {
                let Self { $($field),+ } = self;
                $($crate::codec::Encode::write($field, writer);)+
            }

            fn read(reader: &mut $crate::codec::Reader<'_>) -> $crate::error::Result<Self> {
                $(let $field = $crate::codec::Encode::read(reader)?;)+
                Ok(Self { $($field),+ })
            }
        }
    };
}
pub(crate) use encode_fields;

/// Implements [`Encode`] for an enum without fields that lists its values in `ALL`.
macro_rules! encode_choice {
    ($name:ident) => {
        impl $crate::codec::Encode for $name {
            fn write(&self, writer: &mut $crate::codec::Writer) {
                $crate::codec::Encode::write(&(*self as u64), writer);
            }

            fn read(reader: &mut $crate::codec::Reader<'_>) -> $crate::error::Result<Self> {
                let index: u64 = $crate::codec::Encode::read(reader)?;
                let found = usize::try_from(index)
                    .ok()
                    .and_then(|index| Self::ALL.get(index));
                found
                    .copied()
                    .ok_or($crate::error::Error::Damaged("unknown kind"))
            }
        }
    };
}
pub(crate) use encode_choice;

/// Returns the bytes of a value.
pub(crate) fn to_bytes(value: &impl Encode) -> Vec<u8> {
    let mut writer = Writer::default();
    value.write(&mut writer);
    let Writer { body, strings, .. } = writer;
    let mut head = Writer::default();
    head.number(strings.len() as u64);
    for text in &strings {
        head.number(text.len() as u64);
        head.body.extend_from_slice(text.as_bytes());
    }
    let mut bytes = [MAGIC, &[VERSION], &head.body, &body].concat();
    bytes.extend(checksum(&bytes).to_le_bytes());
    bytes
}

/// Reads a value from the bytes that [`to_bytes`] returned.
///
/// # Errors
/// If the bytes are those of something else, of another version, or damaged.
pub(crate) fn from_bytes<T: Encode>(bytes: &[u8]) -> Result<T> {
    let rest = bytes.strip_prefix(MAGIC).ok_or(Error::Foreign)?;
    let (&found, rest) = rest.split_first().ok_or(Error::Damaged("it ends early"))?;
    if found != VERSION {
        return Err(Error::Version {
            found,
            expected: VERSION,
        });
    }
    let end = rest.len().checked_sub(CHECKSUM_BYTES);
    let end = end.ok_or(Error::Damaged("it ends early"))?;
    let (content, written) = rest.split_at(end);
    if checksum(&bytes[..bytes.len() - CHECKSUM_BYTES]).to_le_bytes() != written {
        return Err(Error::Damaged("the checksum does not match"));
    }
    let mut reader = Reader {
        rest: content,
        strings: Vec::new(),
    };
    reader.read_strings()?;
    let value = T::read(&mut reader)?;
    if !reader.rest.is_empty() {
        return Err(Error::Damaged("it goes on after its end"));
    }
    Ok(value)
}

/// Returns a number that differs if any byte does, with near certainty (FNV-1a of 64 bits).
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    let begin = 0xcbf2_9ce4_8422_2325_u64;
    bytes.iter().fold(begin, |sum, &byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Bytes in the making.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    body: Vec<u8>,
    strings: Vec<Arc<str>>,
    numbers: FxHashMap<Arc<str>, u64>,
}

impl Writer {
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.body.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.body.push(number as u8);
    }

    fn string(&mut self, text: &Arc<str>) {
        let number = self.numbers.get(text).copied().unwrap_or_else(|| {
            let number = self.strings.len() as u64;
            self.strings.push(Arc::clone(text));
            self.numbers.insert(Arc::clone(text), number);
            number
        });
        self.number(number);
    }
}

/// Bytes that are being read.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    strings: Vec<Arc<str>>,
}

impl Reader<'_> {
    fn number(&mut self) -> Result<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self
                .rest
                .split_first()
                .ok_or(Error::Damaged("it ends early"))?;
            self.rest = rest;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Error::Damaged("a number is too large"))
    }

    /// Reads a number of elements, each of which takes at least a byte.
    fn length(&mut self) -> Result<usize> {
        let length = usize::try_from(self.number()?).ok();
        let length = length.filter(|&length| length <= self.rest.len());
        length.ok_or(Error::Damaged("a list is longer than the file"))
    }

    fn read_strings(&mut self) -> Result<()> {
        let count = self.length()?;
        self.strings.reserve(count.min(TRUSTED_LENGTH));
        for _ in 0..count {
            let length = self.length()?;
            let (text, rest) = self.rest.split_at(length);
            let text = std::str::from_utf8(text).map_err(|_| Error::Damaged("text is no UTF-8"))?;
            self.strings.push(text.into());
            self.rest = rest;
        }
        Ok(())
    }

    fn string(&mut self) -> Result<Arc<str>> {
        let number = usize::try_from(self.number()?).ok();
        let text = number.and_then(|number| self.strings.get(number));
        text.cloned().ok_or(Error::Damaged("unknown text"))
    }
}

impl Encode for u64 {
    fn write(&self, writer: &mut Writer) {
        writer.number(*self);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        reader.number()
    }
}

impl Encode for u32 {
    fn write(&self, writer: &mut Writer) {
        writer.number(u64::from(*self));
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let number = Self::try_from(reader.number()?);
        number.map_err(|_| Error::Damaged("a number is too large"))
    }
}

impl Encode for u16 {
    fn write(&self, writer: &mut Writer) {
        writer.number(u64::from(*self));
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let number = Self::try_from(reader.number()?);
        number.map_err(|_| Error::Damaged("a number is too large"))
    }
}

impl Encode for bool {
    fn write(&self, writer: &mut Writer) {
        writer.number(u64::from(*self));
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        match reader.number()? {
            0 => Ok(false),
            1 => Ok(true),
            2.. => Err(Error::Damaged("a number is too large")),
        }
    }
}

impl Encode for Nanos {
    fn write(&self, writer: &mut Writer) {
        writer.number(self.0);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        reader.number().map(Self)
    }
}

impl Encode for Arc<str> {
    fn write(&self, writer: &mut Writer) {
        writer.string(self);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        reader.string()
    }
}

impl<T: Encode> Encode for Option<T> {
    fn write(&self, writer: &mut Writer) {
        self.is_some().write(writer);
        if let Some(value) = self {
            value.write(writer);
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let is_some = bool::read(reader)?;
        is_some.then(|| T::read(reader)).transpose()
    }
}

impl<T: Encode> Encode for Vec<T> {
    fn write(&self, writer: &mut Writer) {
        writer.number(self.len() as u64);
        for value in self {
            value.write(writer);
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let length = reader.length()?;
        let mut values = Self::with_capacity(length.min(TRUSTED_LENGTH));
        for _ in 0..length {
            values.push(T::read(reader)?);
        }
        Ok(values)
    }
}

impl<T: Encode + Copy + Default, const N: usize> Encode for [T; N] {
    fn write(&self, writer: &mut Writer) {
        for value in self {
            value.write(writer);
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let mut values = [T::default(); N];
        for value in &mut values {
            *value = T::read(reader)?;
        }
        Ok(values)
    }
}

impl<A: Encode, B: Encode> Encode for (A, B) {
    fn write(&self, writer: &mut Writer) {
        self.0.write(writer);
        self.1.write(writer);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        Ok((A::read(reader)?, B::read(reader)?))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Sample = Vec<(Arc<str>, Option<u64>)>;

    #[test]
    fn numbers_of_all_sizes_come_back() {
        let numbers: Vec<u64> = (0..64).map(|bit| u64::MAX >> bit).chain([0]).collect();
        assert_eq!(from_bytes::<Vec<u64>>(&to_bytes(&numbers)), Ok(numbers));
    }

    #[test]
    fn a_length_beyond_the_file_is_an_error_before_it_is_allocated() {
        let mut writer = Writer::default();
        writer.number(0);
        writer.number(u64::MAX >> 1);
        let mut bytes = [MAGIC, &[VERSION], &writer.body].concat();
        bytes.extend(checksum(&bytes).to_le_bytes());
        let error = from_bytes::<Vec<u64>>(&bytes).unwrap_err();
        assert_eq!(error, Error::Damaged("a list is longer than the file"));
    }

    #[test]
    fn other_files_and_versions_are_told_apart() {
        let mut bytes = to_bytes(&7_u64);
        assert_eq!(
            from_bytes::<u64>(b"{\"traceEvents\": []}"),
            Err(Error::Foreign)
        );
        assert_eq!(from_bytes::<u64>(b""), Err(Error::Foreign));
        bytes[MAGIC.len()] = 9;
        let error = from_bytes::<u64>(&bytes).unwrap_err();
        assert!(matches!(error, Error::Version { found: 9, .. }));
    }

    proptest! {
        #[test]
        fn any_altered_byte_and_any_cut_is_found(
            values in proptest::collection::vec(("[a-c]{0,3}", proptest::option::of(any::<u64>())), 0..20),
            place in any::<prop::sample::Index>(),
            flip in 1_u8..,
        ) {
            let values: Sample = values.into_iter().map(|(text, number)| (text.into(), number)).collect();
            let bytes = to_bytes(&values);
            let read = from_bytes::<Sample>(&bytes);
            prop_assert_eq!(read.as_ref(), Ok(&values));
            let place = place.index(bytes.len());
            let mut altered = bytes.clone();
            altered[place] ^= flip;
            prop_assert!(from_bytes::<Sample>(&altered).is_err());
            prop_assert!(from_bytes::<Sample>(&bytes[..place]).is_err());
        }

        #[test]
        fn no_bytes_make_the_reader_panic(content in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut bytes = [MAGIC, &[VERSION], &content].concat();
            bytes.extend(checksum(&bytes).to_le_bytes());
            let _ = from_bytes::<Sample>(&bytes);
        }
    }
}
