//! Where the words of encoded inputs go: into a list of their own, or over those of another.

/// Where words go, one after the other.
pub trait WordSink {
    /// Adds words.
    fn put<const N: usize>(&mut self, words: [u64; N]);

    /// Adds any number of words.
    fn extend(&mut self, words: impl Iterator<Item = u64>);

    /// Adds words that lie side by side.
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
