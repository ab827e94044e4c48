//! The ranks of a job, merged from their summaries.

use crate::codec::{MAGIC, encode_fields, from_bytes, to_bytes};
use crate::error::Result;
use crate::summary::RankSummary;

/// The summaries of some ranks of a job, sorted.
///
/// Merging keeps every summary, so it is associative and commutative to the byte: any tree of
/// merges over the same parts gives the same bytes. Two equal summaries are kept both, and
/// [`crate::Roster`] reports them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranks {
    summaries: Vec<RankSummary>,
}
encode_fields!(Ranks { summaries });

impl Ranks {
    /// The first bytes of written ranks, by which they are told apart from traces.
    pub const MAGIC: &'static [u8] = MAGIC;

    /// Returns the ranks of all parts.
    pub fn merge(parts: impl IntoIterator<Item = Self>) -> Self {
        let parts = parts.into_iter();
        let mut summaries: Vec<RankSummary> = parts.flat_map(|part| part.summaries).collect();
        // Parts are sorted runs, which a stable sort finds; equal summaries have equal bytes.
        summaries.sort();
        Self { summaries }
    }

    /// Returns the summaries, sorted by rank.
    pub fn summaries(&self) -> &[RankSummary] {
        &self.summaries
    }

    /// Returns the bytes of the ranks. Equal ranks have equal bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        to_bytes(self)
    }

    /// Reads the bytes that [`Self::to_bytes`] returned.
    ///
    /// # Errors
    /// If the bytes are those of something else, of another version, or damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let ranks: Self = from_bytes(bytes)?;
        // Other programs may write summaries in any order.
        Ok(Self::merge([ranks]))
    }
}

impl From<RankSummary> for Ranks {
    fn from(summary: RankSummary) -> Self {
        Self {
            summaries: vec![summary],
        }
    }
}
