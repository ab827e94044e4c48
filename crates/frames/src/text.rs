//! Python's texts in memory.
//!
//! A text is an object with its length, a word of state and the characters, whose width depends on
//! the widest of them. The positions of the characters and of the bits of the state differ between
//! versions; they are found by comparing four texts that are known.

use crate::memory::{Memory, read_bytes, read_words};

/// The index of the word that holds the number of characters, and that of the state.
const LENGTH: usize = 2;
const STATE: usize = 4;

/// The words of an object that are searched for its characters.
const WORDS: usize = 16;

/// The longest text that is read, in characters.
const LONGEST: u64 = 4096;

/// The positions of the parts of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextLayout {
    /// The bit of the state that marks ASCII.
    ascii: u64,
    /// The position in the state of the width of a character: one, two or four bytes.
    width: u32,
    /// The offset of the characters of an ASCII text, in bytes, and of others.
    ascii_data: u64,
    other_data: u64,
}

impl TextLayout {
    /// The texts by which a layout is found: one for each width, and one in ASCII.
    pub const SAMPLES: [&'static str; 4] = [
        "mindprof reads frames",
        "mindprof reads \u{e9} frames",
        "mindprof reads \u{3042} frames",
        "mindprof reads \u{1f600} frames",
    ];

    /// Finds the layout, given the addresses of objects of the texts in [`Self::SAMPLES`].
    pub fn find(samples: [u64; 4]) -> Option<Self> {
        let words: Vec<[u64; WORDS]> =
            samples.into_iter().map(read_words).collect::<Option<_>>()?;
        let state = |sample: usize| words[sample][STATE] & 0xffff_ffff;
        let data = |sample: usize, width: usize| {
            let bytes: Vec<u8> = words[sample]
                .iter()
                .flat_map(|word| word.to_le_bytes())
                .collect();
            let text = encoded(Self::SAMPLES[sample], width);
            let start = text.get(..16)?;
            bytes.windows(16).position(|found| found == start)
        };
        let width = (0..25).find(|shift| {
            let width = |sample| state(sample) >> shift & 7;
            (width(0), width(1), width(2), width(3)) == (1, 1, 2, 4)
        })?;
        // After the width come a bit that is set in all texts of today and the one that marks
        // ASCII. Bits further up are not initialized.
        let ascii = 1 << (width + 4);
        let other_data = data(1, 1)?;
        let is_sound = [0, 1, 2, 3].map(|sample| state(sample) & ascii != 0)
            == [true, false, false, false]
            && data(2, 2) == Some(other_data)
            && data(3, 4) == Some(other_data);
        is_sound.then_some(Self {
            ascii,
            width,
            ascii_data: data(0, 1)? as u64,
            other_data: other_data as u64,
        })
    }

    /// Returns the text of the object at `address`, or `None` if it cannot be read.
    pub(crate) fn read(&self, address: u64) -> Option<String> {
        let words: [u64; STATE + 1] = read_words(address)?;
        let (length, state) = (words[LENGTH], words[STATE]);
        let width = state >> self.width & 7;
        if !matches!(width, 1 | 2 | 4) {
            return None;
        }
        let length = length.min(LONGEST);
        let offset = if state & self.ascii == 0 {
            self.other_data
        } else {
            self.ascii_data
        };
        let bytes = read_bytes(address + offset, (length * width) as usize)?;
        let character = |bytes: &[u8]| {
            let mut number = [0; 4];
            number[..bytes.len()].copy_from_slice(bytes);
            // Python's texts may hold lone surrogates.
            char::from_u32(u32::from_le_bytes(number)).unwrap_or(char::REPLACEMENT_CHARACTER)
        };
        Some(bytes.chunks(width as usize).map(character).collect())
    }
}

/// Returns the name of the class of an object: the text that its type points to.
pub fn class_name<M: Memory>(memory: &M, object: u64) -> Option<String> {
    const TYPE: usize = 1;
    const NAME: usize = 3;
    const LONGEST_NAME: u64 = 256;
    let [class] = memory.gather(object, [TYPE])?;
    let [name] = memory.gather(class, [NAME])?;
    let mut bytes = Vec::new();
    for offset in 0..LONGEST_NAME {
        // One by one: the text may end right before memory that cannot be read.
        match *read_bytes(name + offset, 1)?.first()? {
            0 => break,
            byte => bytes.push(byte),
        }
    }
    let text = String::from_utf8(bytes).ok()?;
    // Types of C modules are named with their module.
    Some(text.rsplit('.').next()?.to_owned())
}

/// Returns the characters of a text as numbers of `width` bytes.
fn encoded(text: &str, width: usize) -> Vec<u8> {
    let numbers = text.chars().map(u32::from);
    numbers
        .flat_map(|number| number.to_le_bytes().into_iter().take(width))
        .collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// Builds a text as an interpreter would: a header of `data` bytes, then the characters.
    fn object(text: &str, width: usize, ascii: bool, data: usize) -> Vec<u64> {
        let mut bytes = vec![0_u8; data];
        let length = text.chars().count() as u64;
        bytes[16..24].copy_from_slice(&length.to_le_bytes());
        let unused = (text.len() as u32) << 12;
        let state = (width as u32) << 2 | 1 << 5 | u32::from(ascii) << 6 | unused;
        bytes[32..36].copy_from_slice(&state.to_le_bytes());
        bytes.extend(encoded(text, width));
        bytes.resize(bytes.len().next_multiple_of(8).max(WORDS * 8), 0);
        let words = bytes
            .chunks(8)
            .map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
        words.collect()
    }

    #[test]
    fn a_layout_is_found_and_reads_texts_of_every_width() {
        let widths = [
            (1, true, 48),
            (1, false, 72),
            (2, false, 72),
            (4, false, 72),
        ];
        let samples: Vec<_> = TextLayout::SAMPLES
            .iter()
            .zip(widths)
            .map(|(text, (width, ascii, data))| object(text, width, ascii, data))
            .collect();
        let addresses = [0, 1, 2, 3].map(|index: usize| samples[index].as_ptr() as u64);
        let layout = TextLayout::find(addresses).unwrap();
        for (text, (width, ascii, data)) in ["f", "\u{e9}t\u{e9}", "\u{3042}", "\u{1f600}x"]
            .into_iter()
            .zip(widths)
        {
            let object = object(text, width, ascii, data);
            assert_eq!(layout.read(object.as_ptr() as u64).as_deref(), Some(text));
        }
        assert_eq!(layout.read(64), None, "no address");
        let [first, second, ..] = addresses;
        assert_eq!(TextLayout::find([first, first, second, second]), None);
    }
}
