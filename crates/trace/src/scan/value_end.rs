//! Finds the ends of JSON values, eight bytes at a time.

/// Returns the length of the next number, if it is short and consists of digits, points and signs,
/// as nearly all do.
#[inline]
pub(super) fn plain_number(bytes: &[u8]) -> Option<usize> {
    const WORDS: usize = 3;
    let near = bytes.first_chunk::<{ 8 * WORDS }>()?;
    if !matches!(near[0], b'0'..=b'9' | b'-') {
        return None;
    }
    let (words, _) = near.as_chunks::<8>();
    let mut before = 0;
    for word in words {
        let strange = outside_numbers(u64::from_le_bytes(*word));
        if strange != 0 {
            let length = before + (strange.trailing_zeros() / 8) as usize;
            return (!IS_WORD[usize::from(bytes[length])]).then_some(length);
        }
        before += 8;
    }
    None
}

/// The bytes that numbers and words consist of.
pub(super) static IS_WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let character = byte as u8;
        table[byte] = character.is_ascii_alphanumeric() || matches!(character, b'.' | b'-' | b'+');
        byte += 1;
    }
    table
};

/// Returns the position after a number or a word. `None` at the end of the window, where it may
/// continue.
pub(super) fn word_end(bytes: &[u8], from: usize) -> Option<usize> {
    let length = bytes[from..]
        .iter()
        .position(|&byte| !IS_WORD[usize::from(byte)])?;
    Some(from + length)
}

/// Sets the high bit of each byte that is not a digit, point or minus. Bytes above the first such
/// one may be wrong.
const fn outside_numbers(word: u64) -> u64 {
    // These characters are contiguous in ASCII, except for `/` among them.
    const BELOW: u64 = ONES * b'-' as u64;
    const ABOVE: u64 = ONES * (0x7f - b'9') as u64;
    let below = word.wrapping_sub(BELOW) & !word;
    let above = word.wrapping_add(ABOVE) | word;
    ((below | above) & HIGHS) | equal(word, b'/')
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Sets the high bit of each byte of `word` that equals `byte`. Bytes above the first such one may
/// be wrong.
const fn equal(word: u64, byte: u8) -> u64 {
    let difference = word ^ (ONES * byte as u64);
    difference.wrapping_sub(ONES) & !difference & HIGHS
}

/// Returns the position of the first byte for which `marks` sets a high bit, eight bytes at a time.
#[inline]
fn find(bytes: &[u8], from: usize, marks: impl Fn(u64) -> u64) -> Option<usize> {
    let mut at = from;
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let found = marks(u64::from_le_bytes(*chunk));
        if found != 0 {
            return Some(at + (found.trailing_zeros() / 8) as usize);
        }
        at += 8;
    }
    // The rest is padded with zeros, which no mark matches.
    let rest = bytes.get(at..)?;
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let found = marks(u64::from_le_bytes(last));
    (found != 0).then(|| at + (found.trailing_zeros() / 8) as usize)
}

/// Returns the position after the string whose contents begin at `from`.
#[inline]
pub(super) fn string_end(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at = find(bytes, at, |word| equal(word, b'"') | equal(word, b'\\'))?;
        if bytes[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// Returns the position after the object or array that begins at `from`.
pub(super) fn container_end(bytes: &[u8], from: usize) -> Option<usize> {
    // Brackets and braces differ in a single bit, which quotes have set too.
    const BIT: u64 = ONES * 0x20;
    let marks = |word: u64| {
        let word = word | BIT;
        equal(word, b'{') | equal(word, b'}') | equal(word, b'"')
    };
    let mut depth = 0_usize;
    let mut at = from;
    loop {
        at = find(bytes, at, marks)?;
        match bytes[at] {
            b'"' => at = string_end(bytes, at + 1)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth -= 1;
                at += 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            // A control character that looks like a quote with the bit set.
            _ => at += 1,
        }
    }
}
