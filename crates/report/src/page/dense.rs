//! Bytes as text with seven bits in each byte, for large data blocks: base64 has six.
//!
//! ```text
//! dense LENGTH ; groups of seven bits, the first bit first
//! ```
//!
//! A group is the ASCII character of its value. The values in `REPLACED` would be changed or taken
//! for markup by what reads pages; one of them and the group after it are one character of two bytes.

/// The characters that do not stand for themselves: ends of lines, other control characters that
/// programs interpret, quotes and markup. `columns.js` has the same list.
const REPLACED: &[u8; 14] = b"\0\x08\n\x0b\x0c\r\x1a\x1b\"&'<>\\";

/// The first character of two bytes. The ones before are control characters and Latin letters.
const FIRST_PAIR: u32 = 0x100;

/// Returns bytes as dense text.
pub(super) fn dense(bytes: &[u8]) -> String {
    let mut text = format!("dense{};", bytes.len());
    text.reserve(bytes.len() / 7 * 8 + 16);
    let mut groups = Groups::new(bytes);
    while let Some(group) = groups.next() {
        match REPLACED.iter().position(|&replaced| replaced == group) {
            None => text.push(char::from(group)),
            Some(index) => {
                let pair = (index as u32) << 7 | u32::from(groups.next().unwrap_or(0));
                text.extend(char::from_u32(FIRST_PAIR + pair));
            }
        }
    }
    text
}

/// The bits of bytes in groups of seven. The last one is filled up with zeros.
struct Groups<'a> {
    bytes: std::slice::Iter<'a, u8>,
    bits: u32,
    count: u32,
}

impl<'a> Groups<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes: bytes.iter(),
            bits: 0,
            count: 0,
        }
    }
}

impl Iterator for Groups<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        if self.count < 7 {
            match self.bytes.next() {
                Some(&byte) => {
                    self.bits = self.bits << 8 | u32::from(byte);
                    self.count += 8;
                }
                None if self.count == 0 => return None,
                None => {
                    self.bits <<= 7 - self.count;
                    self.count = 7;
                }
            }
        }
        self.count -= 7;
        Some((self.bits >> self.count & 0x7F) as u8)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Decodes as `columns.js` does.
    fn decoded(text: &str) -> Vec<u8> {
        let (length, groups) = text
            .strip_prefix("dense")
            .and_then(|rest| rest.split_once(';'))
            .unwrap();
        let mut bits = Vec::new();
        let mut push = |group: u32| bits.extend((0..7).rev().map(|shift| group >> shift & 1));
        for letter in groups.chars().map(u32::from) {
            if letter < 128 {
                push(letter);
            } else {
                let pair = letter - FIRST_PAIR;
                push(REPLACED[(pair >> 7) as usize].into());
                push(pair & 0x7F);
            }
        }
        let byte = |bits: &[u32]| bits.iter().fold(0, |byte, bit| byte << 1 | *bit as u8);
        let bytes = bits.chunks_exact(8).map(byte);
        bytes.take(length.parse().unwrap()).collect()
    }

    proptest! {
        #[test]
        fn bytes_come_back(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let text = dense(&bytes);
            prop_assert_eq!(decoded(&text), bytes);
        }

        #[test]
        fn nothing_in_it_is_markup_or_changed(bytes in proptest::collection::vec(0..64_u8, 0..300)) {
            let text = dense(&bytes);
            prop_assert!(!text.bytes().any(|byte| REPLACED.contains(&byte)));
            prop_assert!(text.len() <= 16 + bytes.len() * 8 / 7 + 2);
        }
    }

    #[test]
    fn the_example_of_the_scripts() {
        // tests/page/columns.test.js decodes the same text.
        assert_eq!(dense(&[0, 1, 2, 253, 254, 255]), "dense6;\u{100} /o{~");
    }
}
