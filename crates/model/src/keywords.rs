//! The keyword arguments of an event: names and plain values at the end of its list of inputs.
//!
//! They come from a framework that opens a range with them, and go to traces and to readers of the
//! event. After the keywords' header, which `inputs` describes, each of them is encoded as follows.
//!
//! ```text
//! name: a text      value: kind | count << 8, then by kind
//!   None    nothing       Int, Float, Bool         one word
//!   Text    the text      Ints, Floats, Bools      count words       Texts   count texts
//!
//! text: its length in bytes, then the bytes, eight per word
//! ```

/// The value of a keyword argument. Only plain values and flat lists of them are recorded;
/// everything else becomes `None`.
#[derive(Clone, Debug, PartialEq)]
pub enum KeywordValue {
    /// `None`, or a value that is not recorded.
    None,
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A boolean.
    Bool(bool),
    /// A string.
    Text(String),
    /// A list of integers.
    Ints(Vec<i64>),
    /// A list of floating-point numbers.
    Floats(Vec<f64>),
    /// A list of booleans.
    Bools(Vec<bool>),
    /// A list of strings; also the empty list.
    Texts(Vec<String>),
}

mod kind {
    pub(super) const NONE: u64 = 0;
    pub(super) const INT: u64 = 1;
    pub(super) const FLOAT: u64 = 2;
    pub(super) const BOOL: u64 = 3;
    pub(super) const TEXT: u64 = 4;
    pub(super) const INTS: u64 = 5;
    pub(super) const FLOATS: u64 = 6;
    pub(super) const BOOLS: u64 = 7;
    pub(super) const TEXTS: u64 = 8;
}

/// Encodes keyword arguments.
pub(crate) fn encode(keywords: &[(String, KeywordValue)]) -> Vec<u64> {
    let mut words = Vec::new();
    for (name, value) in keywords {
        encode_text(&mut words, name);
        encode_value(&mut words, value);
    }
    words
}

fn encode_value(words: &mut Vec<u64>, value: &KeywordValue) {
    let head = |kind: u64, count: usize| kind | (count as u64) << 8;
    match value {
        KeywordValue::None => words.push(kind::NONE),
        KeywordValue::Int(value) => words.extend([kind::INT, *value as u64]),
        KeywordValue::Float(value) => words.extend([kind::FLOAT, value.to_bits()]),
        KeywordValue::Bool(value) => words.extend([kind::BOOL, u64::from(*value)]),
        KeywordValue::Text(text) => {
            words.push(kind::TEXT);
            encode_text(words, text);
        }
        KeywordValue::Ints(values) => {
            words.push(head(kind::INTS, values.len()));
            words.extend(values.iter().map(|&value| value as u64));
        }
        KeywordValue::Floats(values) => {
            words.push(head(kind::FLOATS, values.len()));
            words.extend(values.iter().map(|value| value.to_bits()));
        }
        KeywordValue::Bools(values) => {
            words.push(head(kind::BOOLS, values.len()));
            words.extend(values.iter().map(|&value| u64::from(value)));
        }
        KeywordValue::Texts(texts) => {
            words.push(head(kind::TEXTS, texts.len()));
            for text in texts {
                encode_text(words, text);
            }
        }
    }
}

fn encode_text(words: &mut Vec<u64>, text: &str) {
    words.push(text.len() as u64);
    words.extend(text.as_bytes().chunks(8).map(|bytes| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    }));
}

/// Decodes keyword arguments. A truncated encoding yields those that are complete.
pub(crate) fn decode(words: &[u64]) -> Vec<(String, KeywordValue)> {
    let mut reader = Reader { words };
    std::iter::from_fn(|| reader.keyword()).collect()
}

struct Reader<'a> {
    words: &'a [u64],
}

impl<'a> Reader<'a> {
    fn keyword(&mut self) -> Option<(String, KeywordValue)> {
        let name = self.text()?;
        Some((name, self.value()?))
    }

    fn value(&mut self) -> Option<KeywordValue> {
        let head = self.one()?;
        let count = usize::try_from(head >> 8).ok()?;
        Some(match head & 0xff {
            kind::INT => KeywordValue::Int(self.one()? as i64),
            kind::FLOAT => KeywordValue::Float(f64::from_bits(self.one()?)),
            kind::BOOL => KeywordValue::Bool(self.one()? != 0),
            kind::TEXT => KeywordValue::Text(self.text()?),
            kind::INTS => KeywordValue::Ints(self.list(count, |word| word as i64)?),
            kind::FLOATS => KeywordValue::Floats(self.list(count, f64::from_bits)?),
            kind::BOOLS => KeywordValue::Bools(self.list(count, |word| word != 0)?),
            kind::TEXTS => {
                KeywordValue::Texts((0..count).map(|_| self.text()).collect::<Option<_>>()?)
            }
            _ => KeywordValue::None,
        })
    }

    fn text(&mut self) -> Option<String> {
        let count = usize::try_from(self.one()?).ok()?;
        let words = self.take(count.div_ceil(8))?;
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.truncate(count);
        String::from_utf8(bytes).ok()
    }

    fn list<T>(&mut self, count: usize, value: impl Fn(u64) -> T) -> Option<Vec<T>> {
        Some(self.take(count)?.iter().map(|&word| value(word)).collect())
    }

    fn one(&mut self) -> Option<u64> {
        self.take(1).map(|words| words[0])
    }

    fn take(&mut self, count: usize) -> Option<&'a [u64]> {
        let (head, tail) = self.words.split_at_checked(count)?;
        self.words = tail;
        Some(head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, Input, InputsEncoder, InputsIter};

    fn keywords() -> Vec<(String, KeywordValue)> {
        [
            ("none", KeywordValue::None),
            ("int", KeywordValue::Int(-1)),
            ("float", KeywordValue::Float(1.5)),
            ("bool", KeywordValue::Bool(true)),
            ("text", KeywordValue::Text("nine byte".into())),
            ("", KeywordValue::Text(String::new())),
            ("ints", KeywordValue::Ints(vec![1, -2])),
            ("floats", KeywordValue::Floats(vec![0.5])),
            ("bools", KeywordValue::Bools(vec![true, false])),
            (
                "texts",
                KeywordValue::Texts(vec!["ä".into(), String::new()]),
            ),
            ("empty", KeywordValue::Texts(Vec::new())),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    #[test]
    fn keywords_are_decoded_as_they_were_encoded() {
        let mut encoder = InputsEncoder::default();
        encoder.tensor(DType::F32, &[3], &[1]);
        encoder.int(4);
        encoder.keywords(&keywords());
        let inputs = InputsIter::new(encoder.words());
        assert_eq!(inputs.clone().keywords(), keywords());
        let kinds: Vec<Input<'_>> = inputs.collect();
        assert!(matches!(kinds[..], [Input::Tensor { .. }, Input::Int(4)]));
    }

    #[test]
    fn a_list_without_keywords_has_none() {
        let mut encoder = InputsEncoder::default();
        encoder.int(4);
        assert_eq!(InputsIter::new(encoder.words()).keywords(), []);
        assert_eq!(InputsIter::new(&[]).keywords(), []);
    }

    #[test]
    fn cut_keywords_end_instead_of_panicking() {
        let words = encode(&keywords());
        for cut in 0..words.len() {
            let whole = decode(&words[..cut]);
            assert_eq!(whole, keywords()[..whole.len()]);
        }
        assert_eq!(decode(&[u64::MAX]), []);
        assert_eq!(decode(&[0, kind::TEXTS | u64::MAX << 8]), []);
    }
}
