//! The destination of encoded inputs: a new list, or an existing one that is overwritten.

/// A destination for words that are written one after another. The two implementors are a plain
/// vector and the recorder's writer, which compares each word with the one it overwrites.
pub trait WordSink {
    /// Appends a fixed number of words.
    fn put<const N: usize>(&mut self, words: [u64; N]);

    /// Appends any number of words.
    fn extend(&mut self, words: impl Iterator<Item = u64>);

    /// Appends a slice of words.
    fn copy(&mut self, words: &[u64]);
}

impl WordSink for Vec<u64> {
    #[inline]
    fn put<const N: usize>(&mut self, words: [u64; N]) {
        self.extend_from_slice(&words);
    }

    #[inline]
    fn extend(&mut self, words: impl Iterator<Item = u64>) {
        Extend::extend(self, words);
    }

    #[inline]
    fn copy(&mut self, words: &[u64]) {
        self.extend_from_slice(words);
    }
}
