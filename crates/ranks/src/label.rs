//! How answers name a rank.

use serde::Serialize;

use crate::summary::RankSummary;

/// The name of a rank in an answer: its number, its machine and its file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct RankLabel {
    /// The number of the rank, or `None` if it is not known.
    pub rank: Option<u32>,
    /// The machine that it ran on, if the trace tells.
    pub host: Option<String>,
    /// The name of its file.
    pub file: String,
}

impl RankLabel {
    pub(crate) fn of(summary: &RankSummary) -> Self {
        let identity = &summary.identity;
        Self {
            rank: identity.rank,
            host: identity.host.as_deref().map(Into::into),
            file: identity.file.to_string(),
        }
    }

    /// Returns a short text: `rank 3`, or the name of the file.
    pub fn text(&self) -> String {
        match self.rank {
            Some(rank) => format!("rank {rank}"),
            None => self.file.clone(),
        }
    }
}
