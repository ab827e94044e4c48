//! Encodes Protobuf messages: tags, varints and nested lengths.
//!
//! A trace consists of millions of small packets with a handful of fields, so they are written
//! straight into one buffer; the tests decode them with an independent library.

/// Encodes the fields of a message one after the other.
#[derive(Debug, Default)]
pub(super) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// Adds an unsigned integer, a boolean or an enum value.
    pub(super) fn number(&mut self, field: u32, value: u64) -> &mut Self {
        self.varint(u64::from(field) << 3);
        self.varint(value);
        self
    }

    /// Adds a fixed 64-bit number.
    pub(super) fn fixed(&mut self, field: u32, value: u64) -> &mut Self {
        self.varint(u64::from(field) << 3 | 1);
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Adds a string.
    pub(super) fn text(&mut self, field: u32, value: &str) -> &mut Self {
        self.bytes(field, value.as_bytes())
    }

    /// Adds bytes, or a nested message that is already encoded.
    pub(super) fn bytes(&mut self, field: u32, value: &[u8]) -> &mut Self {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(value.len() as u64);
        self.bytes.extend_from_slice(value);
        self
    }

    /// Adds fields that are already encoded.
    pub(super) fn append(&mut self, fields: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(fields);
        self
    }

    /// Adds a nested message, encoded in place. Its length is inserted once it is known.
    pub(super) fn message(&mut self, field: u32, write: impl FnOnce(&mut Self)) -> &mut Self {
        self.varint(u64::from(field) << 3 | 2);
        let place = self.bytes.len();
        self.bytes.push(0);
        write(self);
        let length = self.bytes.len() - place - 1;
        if length < 0x80 {
            self.bytes[place] = length as u8;
        } else {
            let mut prefix = Self::default();
            prefix.varint(length as u64);
            self.bytes.splice(place..=place, prefix.bytes);
        }
        self
    }

    /// Clears the message but keeps its memory.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Returns the bytes encoded so far.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes
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
        message.number(1, 150).text(2, "testing").fixed(3, 1);
        message.message(4, |inner| {
            inner.number(1, 0);
        });
        let expected = b"\x08\x96\x01\x12\x07testing\x19\x01\0\0\0\0\0\0\0\x22\x02\x08\0";
        assert_eq!(message.as_bytes(), expected);
    }

    #[test]
    fn long_messages_have_long_lengths() {
        let mut message = Message::default();
        message.message(1, |inner| {
            inner.text(1, &"x".repeat(300));
        });
        assert_eq!(&message.as_bytes()[..6], b"\x0a\xaf\x02\x0a\xac\x02");
        assert_eq!(message.as_bytes().len(), 306);
    }
}
