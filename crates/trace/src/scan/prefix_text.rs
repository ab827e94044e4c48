//! The text of a prefix, laid out for fast comparison.

/// A text of at most [`Self::LONGEST`] bytes, laid out for comparison in words of sixteen bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PrefixText {
    bytes: Box<[u8]>,
    /// The first word, and the mask of its bits that belong to the text.
    first: u128,
    mask: u128,
}

impl PrefixText {
    pub(crate) const LONGEST: usize = 256;
    const WORD: usize = 16;

    /// Lays out a text. `None` if it is too long.
    pub(crate) fn new(text: &[u8]) -> Option<Self> {
        if text.len() > Self::LONGEST {
            return None;
        }
        let length = text.len().min(Self::WORD);
        let mut first = [0; Self::WORD];
        first[..length].copy_from_slice(&text[..length]);
        Some(Self {
            bytes: text.into(),
            first: u128::from_le_bytes(first),
            mask: u128::MAX.checked_shr(128 - 8 * length as u32).unwrap_or(0),
        })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns whether `rest` begins with the text.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "it is most of what reading a trace is"
    )]
    pub(super) fn begins(&self, rest: &[u8]) -> bool {
        let Some(first) = rest.first_chunk() else {
            return rest.starts_with(&self.bytes);
        };
        if (u128::from_le_bytes(*first) ^ self.first) & self.mask != 0 {
            return false;
        }
        if self.bytes.len() <= Self::WORD {
            return true;
        }
        let Some(next) = rest.get(..self.bytes.len()) else {
            return false;
        };
        let (blocks, rest) = next.as_chunks::<{ 2 * Self::WORD }>();
        let (own_blocks, own_rest) = self.bytes.as_chunks::<{ 2 * Self::WORD }>();
        if blocks
            .iter()
            .zip(own_blocks)
            .any(|(block, own)| block != own)
        {
            return false;
        }
        // The rest lies in the last words, which overlap the blocks.
        (rest.len() <= Self::WORD
            || rest.first_chunk::<{ Self::WORD }>() == own_rest.first_chunk::<{ Self::WORD }>())
            && next.last_chunk::<{ Self::WORD }>() == self.bytes.last_chunk::<{ Self::WORD }>()
    }
}
