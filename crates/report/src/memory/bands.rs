//! What a device's memory is divided into for eyes: the categories, or one "not known" where a
//! trace tells none, and what only the allocator knows of.

use mindprof_analyze::{MemoryCategory, MemoryPeak, MemoryPrecision};
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

/// Returns what stands before an amount that is not exact.
pub(super) fn precision_text(peak: &MemoryPeak) -> String {
    match peak.precision {
        MemoryPrecision::Exact => String::new(),
        precision => format!("{} ", precision.name()),
    }
}

/// Says why amounts are not exact, if they are not.
pub(super) fn precision_reasons(peak: &MemoryPeak) -> Vec<String> {
    if peak.precision == MemoryPrecision::Exact {
        return Vec::new();
    }
    let mut reasons = Vec::new();
    if peak.precision == MemoryPrecision::About {
        reasons.push(
            "blocks of before the window count to its end, since torch does not tell when they are given back"
                .into(),
        );
    }
    match peak.unseen {
        _ if peak.untimed.blocks > 0 => reasons.extend(untimed_reasons(peak)),
        None => {
            reasons.push("the trace does not tell what was in use before the window".into());
        }
        Some(unseen) if !unseen.is_from_before => {
            reasons.push("some memory was taken where nobody recorded, as on other threads".into());
        }
        Some(_) => {
            reasons.push(
                "the host's allocator counts only what was taken while someone profiled".into(),
            );
        }
    }
    reasons[0].insert_str(0, &format!("{}: ", peak.precision.name()));
    reasons
}

/// Says what is not known of blocks that threads may have taken or given back whose memory nobody
/// recorded.
fn untimed_reasons(peak: &MemoryPeak) -> [String; 2] {
    let bytes = memory_text(peak.untimed.bytes as i64);
    let (blocks, are) = match peak.untimed.blocks {
        1 => ("1 block".into(), "is"),
        blocks => (format!("{blocks} blocks"), "are"),
    };
    [
        format!(
            "{blocks} ({}) {are} counted only while seen in use, and may have been there for longer",
            bytes.trim()
        ),
        "when they were taken or given back is not known: torch does not tell of memory of all threads"
            .into(),
    ]
}
