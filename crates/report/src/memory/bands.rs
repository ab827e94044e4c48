//! What a device's memory is divided into for eyes: the categories, or one "not known" where a
//! trace tells none, and what only the allocator knows of.

use mindprof_analyze::{MemoryCategory, MemoryOrigin, MemoryPeak};
use mindprof_formats::{memory_category_name, unseen_name};

use crate::number::memory_text;

/// One layer of the chart, one row of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Band {
    /// What the allocator counted and no block of the profile accounts for.
    Unseen,
    /// What blocks were for.
    Category(MemoryCategory),
}

impl Band {
    /// Returns the bands that there is something to say of, from the bottom to the top.
    pub(super) fn all(peak: &MemoryPeak) -> Vec<Self> {
        let is_unseen = peak.unseen.is_some_and(|unseen| {
            !unseen.is_from_before || unseen.at_peak != 0 || unseen.at_end != 0
        });
        let unseen = is_unseen.then_some(Self::Unseen);
        let categories = MemoryCategory::ALL
            .into_iter()
            .filter(|&category| peak.are_categories_known || category == MemoryCategory::Unknown);
        unseen
            .into_iter()
            .chain(categories.map(Self::Category))
            .collect()
    }

    /// Returns what people read.
    pub(super) fn name(self, peak: &MemoryPeak) -> String {
        match self {
            Self::Unseen => unseen_name(peak.unseen.unwrap_or_default()).into(),
            Self::Category(MemoryCategory::Unknown) if !peak.are_categories_known => {
                "not known".into()
            }
            Self::Category(category) => memory_category_name(category).to_lowercase(),
        }
    }

    /// Returns which colour the band has: those of categories by their places, then one more.
    pub(super) const fn colour(self) -> usize {
        match self {
            Self::Unseen => MemoryCategory::ALL.len(),
            Self::Category(category) => category.index(),
        }
    }

    pub(super) fn at_peak(self, peak: &MemoryPeak) -> i64 {
        match self {
            Self::Unseen => peak.unseen.map_or(0, |unseen| unseen.at_peak),
            Self::Category(category) => peak.bytes[category.index()],
        }
    }

    pub(super) fn at_end(self, peak: &MemoryPeak) -> i64 {
        match self {
            Self::Unseen => peak.unseen.map_or(0, |unseen| unseen.at_end),
            Self::Category(category) => peak.at_end[category.index()],
        }
    }
}

/// Returns what stands before an amount that is a bound.
pub(super) fn at_least(peak: &MemoryPeak) -> &'static str {
    if peak.is_lower_bound { "at least " } else { "" }
}

/// Says why amounts are bounds, if they are.
pub(super) fn bound_texts(peak: &MemoryPeak) -> Vec<String> {
    if !peak.is_lower_bound {
        return Vec::new();
    }
    let reason = match peak.unseen {
        _ if peak.untimed.blocks > 0 => return untimed_texts(peak),
        None => "at least: the trace does not tell what was in use before the window",
        Some(unseen) if !unseen.is_from_before => {
            "at least: some memory was taken where nobody recorded, as on other threads"
        }
        Some(_) => return uncounted_texts(peak),
    };
    vec![reason.into()]
}

/// Says what is not known where the host's allocator does not count all of its memory.
fn uncounted_texts(peak: &MemoryPeak) -> Vec<String> {
    let reason = "at least: the host's allocator counts only what was taken while someone profiled";
    let mut texts = vec![reason.into()];
    let mut origins = peak.holders.iter().map(|holder| holder.origin);
    if origins.any(|origin| origin == MemoryOrigin::Before) {
        texts.push(
            "blocks of before the window count until their release is told, which torch does not always do"
                .into(),
        );
    }
    texts
}

/// Says what is not known of blocks that threads may have taken or given back whose memory nobody
/// recorded.
fn untimed_texts(peak: &MemoryPeak) -> Vec<String> {
    let bytes = memory_text(peak.untimed.bytes as i64);
    let (blocks, are) = match peak.untimed.blocks {
        1 => ("1 block".into(), "is"),
        blocks => (format!("{blocks} blocks"), "are"),
    };
    vec![
        format!(
            "at least: {blocks} ({}) {are} counted only while seen in use, and may have been there for longer",
            bytes.trim()
        ),
        "when they were taken or given back is not known: torch does not tell of memory of all threads"
            .into(),
    ]
}
