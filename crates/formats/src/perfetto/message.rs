//! Protobuf messages, written as bytes: tags, varints and nested lengths.
//!
//! A trace is millions of small packets with a handful of fields, so they are written straight into one buffer; the tests decode
//! them with an independent library.

/// Writes the fields of one message after the other.
#[derive(Debug, Default)]
pub(super) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// Adds an unsigned number, or a truth value, or a member of an enumeration.
    pub(super) fn number(&mut self, field: u32, value: u64) -> &mut Self {
        self.varint(u64::from(field) << 3);
        self.varint(value);
        self
    }

    /// Adds a text.
    pub(super) fn text(&mut self, field: u32, value: &str) -> &mut Self {
        self.bytes(field, value.as_bytes())
    }

    /// Adds a nested message.
    pub(super) fn message(&mut self, field: u32, fill: impl FnOnce(&mut Self)) -> &mut Self {
        let mut inner = Self::default();
        fill(&mut inner);
        self.nested(field, &inner)
    }

    /// Adds a nested message that was written apart.
    pub(super) fn nested(&mut self, field: u32, inner: &Self) -> &mut Self {
        self.bytes(field, &inner.bytes)
    }

    /// Forgets what was written, keeping the memory.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Returns what was written so far.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn bytes(&mut self, field: u32, value: &[u8]) -> &mut Self {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(value.len() as u64);
        self.bytes.extend_from_slice(value);
        self
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_written_as_the_wire_format_says() {
        let mut message = Message::default();
        message.number(1, 150).text(2, "testing");
        message.message(4, |inner| {
            inner.number(1, 0);
        });
        let expected = b"\x08\x96\x01\x12\x07testing\x22\x02\x08\0";
        assert_eq!(message.as_bytes(), expected);
    }
}
