//! The text of a CSV file: its encoding, the separator of its columns, and whether it ends in a line.
//!
//! Profilers write UTF-8 and commas. Programs that store such files again may write UTF-16, as
//! PowerShell and spreadsheets do, and semicolons or tabs.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read};
use std::rc::Rc;

/// The encoding of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Utf8,
    Utf16 { is_little: bool },
}

impl Encoding {
    /// Returns the encoding of a file that begins with these bytes.
    pub(super) const fn of(head: &[u8]) -> Self {
        match head {
            [0xff, 0xfe, ..] => Self::Utf16 { is_little: true },
            [0xfe, 0xff, ..] => Self::Utf16 { is_little: false },
            [first, 0, ..] if first.is_ascii_alphabetic() => Self::Utf16 { is_little: true },
            [0, second, ..] if second.is_ascii_alphabetic() => Self::Utf16 { is_little: false },
            _ => Self::Utf8,
        }
    }

    /// Returns the beginning of a file as text.
    pub(super) fn text(self, head: &[u8]) -> String {
        match self {
            Self::Utf8 => String::from_utf8_lossy(head).into_owned(),
            Self::Utf16 { is_little } => {
                let pairs = head.as_chunks().0.iter();
                let units = pairs.map(|&pair| unit(pair, is_little));
                let text = char::decode_utf16(units).map(|found| found.unwrap_or('\u{fffd}'));
                text.collect::<String>()
                    .trim_start_matches('\u{feff}')
                    .to_owned()
            }
        }
    }
}

const fn unit(pair: [u8; 2], is_little: bool) -> u16 {
    if is_little {
        u16::from_le_bytes(pair)
    } else {
        u16::from_be_bytes(pair)
    }
}

/// The bytes of a file as UTF-8. It notes the last byte that it read.
pub(super) struct Utf8<R> {
    input: BufReader<R>,
    encoding: Encoding,
    last: Rc<Cell<Option<u8>>>,
    /// Text that was decoded and not yet read.
    decoded: Vec<u8>,
    begin: usize,
}

impl<R: Read> Utf8<R> {
    /// Opens a file. Returns the beginning of its text, too.
    pub(super) fn open(input: R) -> io::Result<(Self, String)> {
        let mut input = BufReader::with_capacity(1 << 16, input);
        let head = input.fill_buf()?;
        let encoding = Encoding::of(head);
        let text = encoding.text(head);
        let opened = Self {
            input,
            encoding,
            last: Rc::default(),
            decoded: Vec::new(),
            begin: 0,
        };
        Ok((opened, text))
    }

    /// Returns a place that holds the last byte that was read.
    pub(super) fn last(&self) -> Rc<Cell<Option<u8>>> {
        Rc::clone(&self.last)
    }

    /// Decodes more text. At the end of the file nothing is decoded.
    fn decode(&mut self, is_little: bool) -> io::Result<()> {
        const UNITS: u64 = 1 << 14;
        let mut bytes = Vec::new();
        self.input
            .by_ref()
            .take(2 * UNITS)
            .read_to_end(&mut bytes)?;
        // A character beyond the first plane has two units, which belong together.
        let ends_high = |bytes: &[u8]| {
            let last = bytes.as_chunks().0.last();
            last.is_some_and(|&pair| (0xd800..0xdc00).contains(&unit(pair, is_little)))
        };
        if ends_high(&bytes) {
            self.input.by_ref().take(2).read_to_end(&mut bytes)?;
        }
        self.decoded = Encoding::Utf16 { is_little }.text(&bytes).into_bytes();
        self.begin = 0;
        Ok(())
    }
}

impl<R: Read> Read for Utf8<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = match self.encoding {
            Encoding::Utf8 => self.input.read(buffer)?,
            Encoding::Utf16 { is_little } => {
                if self.begin == self.decoded.len() {
                    self.decode(is_little)?;
                }
                let mut left = &self.decoded[self.begin..];
                let count = left.read(buffer)?;
                self.begin += count;
                count
            }
        };
        if let Some(&last) = buffer[..count].last() {
            self.last.set(Some(last));
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_all_encodings_are_the_same() {
        // Long enough for several rounds, with a character of two units at each place.
        let text = "a\u{1f40d}".repeat(20_000) + "z\n";
        for shift in 0..3 {
            let text = format!("{}{text}", "b".repeat(shift));
            for is_little in [true, false] {
                let units = "\u{feff}".encode_utf16().chain(text.encode_utf16());
                let bytes: Vec<u8> = units
                    .flat_map(|unit| {
                        if is_little {
                            unit.to_le_bytes()
                        } else {
                            unit.to_be_bytes()
                        }
                    })
                    .collect();
                let (mut input, head) = Utf8::open(bytes.as_slice()).unwrap();
                assert!(text.starts_with(head.trim_end_matches('\u{fffd}')));
                let mut read = String::new();
                input.read_to_string(&mut read).unwrap();
                assert!(read == text, "{shift} {is_little}");
                assert_eq!(input.last().get(), Some(b'\n'));
            }
        }
    }
}
