//! The text of a trace while it is assembled: one buffer that is written in large chunks.

use std::io::Write;

use crate::error::Result;

/// The size of a chunk, small enough to stay in the cache until it is written.
const CHUNK_BYTES: usize = 1 << 18;

/// A buffer of JSON text.
#[derive(Debug)]
pub(super) struct Text {
    bytes: Vec<u8>,
}

impl Text {
    pub(super) fn new() -> Self {
        // 16 KiB of slack: few events are longer.
        let capacity = CHUNK_BYTES + (1 << 14);
        Self {
            bytes: Vec::with_capacity(capacity),
        }
    }

    #[inline]
    pub(super) fn push(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }

    pub(super) fn push_number(&mut self, number: impl itoa::Integer) {
        self.push(itoa::Buffer::new().format(number));
    }

    /// Appends `"key":value,`. The key must need no escaping.
    pub(super) fn push_argument(&mut self, key: &str, value: impl itoa::Integer) {
        self.push("\"");
        self.push(key);
        self.push("\":");
        self.push_number(value);
        self.push(",");
    }

    /// Removes a trailing comma.
    pub(super) fn pop_comma(&mut self) {
        if self.bytes.last() == Some(&b',') {
            self.bytes.pop();
        }
    }

    /// Appends nanoseconds as microseconds with exactly three decimals.
    pub(super) fn push_microseconds(&mut self, nanoseconds: u64) {
        let mut buffer = itoa::Buffer::new();
        let digits = buffer.format(nanoseconds).as_bytes();
        let (whole, fraction) = digits.split_at(digits.len().saturating_sub(3));
        // A `u64` has at most twenty digits; the zeros pad short fractions.
        let mut text = *b"000000000000000000000.000";
        let end = text.len();
        text[end - fraction.len()..].copy_from_slice(fraction);
        let dot = end - 4;
        let start = dot - whole.len().max(1);
        text[dot - whole.len()..dot].copy_from_slice(whole);
        self.bytes.extend_from_slice(&text[start..]);
    }

    /// Writes the text to `out` if it fills a chunk.
    pub(super) fn flush_if_full(&mut self, out: &mut impl Write) -> Result<()> {
        if self.bytes.len() >= CHUNK_BYTES {
            self.flush(out)?;
        }
        Ok(())
    }

    /// Writes the text to `out`.
    pub(super) fn flush(&mut self, out: &mut impl Write) -> Result<()> {
        out.write_all(&self.bytes)?;
        self.bytes.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(nanoseconds: u64) -> String {
        let mut text = Text::new();
        text.push_microseconds(nanoseconds);
        String::from_utf8(text.bytes).unwrap()
    }

    #[test]
    fn microseconds_have_three_digits() {
        for (nanoseconds, expected) in [
            (0, "0.000"),
            (7, "0.007"),
            (999, "0.999"),
            (1_000, "1.000"),
            (47_390, "47.390"),
            (u64::MAX, "18446744073709551.615"),
        ] {
            assert_eq!(shown(nanoseconds), expected);
        }
    }

    proptest! {
        #[test]
        fn microseconds_are_exact(nanoseconds: u64) {
            let expected = format!("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
            prop_assert_eq!(shown(nanoseconds), expected);
        }
    }
}
