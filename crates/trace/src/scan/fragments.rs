//! Interned fragments of JSON text.
//!
//! A trace repeats the same few texts many times. The next fragment is predicted from the ones that
//! came before it, so that most of the text is compared as a whole instead of scanned byte by byte.

use std::hash::{BuildHasher, Hasher};

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use super::{Cursor, Scan};

/// The id of a text in [`Fragments`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Fragment(u32);

impl Fragment {
    /// The id of a missing value.
    pub(crate) const NONE: Self = Self(0);

    /// Returns the index for tables by fragment.
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The number of history bits that each value shifts out, of 32: the last three values count.
const FORGETS_BITS: u32 = 11;
/// The number of predictions kept for each kind of value.
const GUESSES: usize = 1 << 12;

/// Interned texts, with a predictor for the next one.
///
/// `KINDS` is the number of kinds of values, which are predicted independently.
pub(crate) struct Fragments<const KINDS: usize> {
    bytes: Vec<u8>,
    /// The start and end of each text in the buffer.
    places: Vec<(usize, usize)>,
    numbers: HashTable<u32>,
    guesses: Vec<[Fragment; GUESSES]>,
    /// A hash of the last few fragments of each kind.
    histories: [u32; KINDS],
}

impl<const KINDS: usize> Fragments<KINDS> {
    pub(crate) fn new() -> Self {
        Self {
            bytes: Vec::new(),
            places: vec![(0, 0)],
            numbers: HashTable::new(),
            guesses: vec![[Fragment::NONE; GUESSES]; KINDS],
            histories: [0; KINDS],
        }
    }

    /// Returns the text of a fragment, which is empty for [`Fragment::NONE`].
    pub(crate) fn text(&self, fragment: Fragment) -> &[u8] {
        let (begin, end) = self.places[fragment.index()];
        &self.bytes[begin..end]
    }

    /// Passes the next value and returns its id.
    ///
    /// `kind` is the kind of the value, and `context` a fragment that correlates with it.
    #[inline]
    pub(crate) fn scan(
        &mut self,
        cursor: &mut Cursor<'_>,
        kind: usize,
        context: Fragment,
    ) -> Scan<Fragment> {
        let history = self.histories[kind];
        let slot = slot(context, history);
        let guess = self.guesses[kind][slot];
        // A matching prefix is a whole value only if the text marks its own end.
        if guess != Fragment::NONE && cursor.pass_text(self.text(guess)) {
            self.histories[kind] = followed(history, guess);
            return Ok(guess);
        }
        self.scan_unforeseen(cursor, kind, slot)
    }

    fn scan_unforeseen(
        &mut self,
        cursor: &mut Cursor<'_>,
        kind: usize,
        slot: usize,
    ) -> Scan<Fragment> {
        let text = cursor.value()?;
        let fragment = self.intern(text);
        if matches!(text[0], b'"' | b'[' | b'{') {
            self.guesses[kind][slot] = fragment;
        }
        self.histories[kind] = followed(self.histories[kind], fragment);
        Ok(fragment)
    }

    /// Interns a text.
    pub(crate) fn intern(&mut self, text: &[u8]) -> Fragment {
        let (bytes, places) = (&self.bytes, &self.places);
        let text_of = |number: u32| {
            let (begin, end) = places[number as usize];
            &bytes[begin..end]
        };
        let found = self
            .numbers
            .find(text_hash(text), |&number| text_of(number) == text);
        if let Some(&number) = found {
            return Fragment(number);
        }
        let number = u32::try_from(self.places.len()).expect("fewer texts than events");
        self.numbers
            .insert_unique(text_hash(text), number, |&number| {
                text_hash(text_of(number))
            });
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(text);
        self.places.push((begin, self.bytes.len()));
        Fragment(number)
    }
}

/// Returns the hash of a text.
pub(crate) fn text_hash(text: &[u8]) -> u64 {
    let mut hasher = FxBuildHasher.build_hasher();
    hasher.write(text);
    hasher.finish()
}

const fn slot(context: Fragment, history: u32) -> usize {
    let mixed = (context.0.wrapping_mul(0x9e37_79b1)) ^ history.wrapping_mul(0x85eb_ca6b);
    (mixed >> 20) as usize
}

/// Returns a history extended by one fragment, without its oldest one.
const fn followed(history: u32, by: Fragment) -> u32 {
    (history << FORGETS_BITS) ^ by.0
}

const _: () = assert!(GUESSES == 1 << (32 - 20));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_share_a_number_whether_guessed_or_not() {
        let mut fragments = Fragments::<1>::new();
        let text = b"[1, 2] \"a\" [1, 2] \"a\" \"ab\" 1 12 1 ";
        let mut cursor = Cursor::new(text);
        let mut found = Vec::new();
        while let Ok(fragment) = fragments.scan(&mut cursor, 0, Fragment::NONE) {
            let _ = cursor.peek();
            found.push(fragments.text(fragment).to_vec());
        }
        let expected = [
            "[1, 2]", "\"a\"", "[1, 2]", "\"a\"", "\"ab\"", "1", "12", "1",
        ];
        assert_eq!(found, expected.map(|text| text.as_bytes().to_vec()));
        assert_eq!(fragments.intern(b"12"), fragments.intern(b"12"));
        assert_ne!(fragments.intern(b"12"), fragments.intern(b"1"));
    }
}
