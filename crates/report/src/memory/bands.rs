//! What a device's memory is divided into for eyes: the categories, or one "not known" where a
//! trace tells none, and what only the allocator knows of.

use mindprof_analyze::{MemoryCategory, MemoryDoubt, MemoryPeak, MemoryPrecision};
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

/// Returns an amount as far as it is known.
pub(super) fn amount_text(peak: &MemoryPeak, bytes: i64) -> String {
    let amount = memory_text(bytes);
    let amount = amount.trim();
    let precision = peak.precision();
    match precision {
        MemoryPrecision::Exact => amount.into(),
        MemoryPrecision::AtLeast => format!("{} {amount}", precision.name()),
        MemoryPrecision::AsFarAsKnown => format!("{amount} {}", precision.name()),
    }
}

/// Says why amounts are not exact, if they are not.
pub(super) fn doubt_texts(peak: &MemoryPeak) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for doubt in &peak.doubts {
        let text = match doubt {
            MemoryDoubt::OldBlocks => {
                "blocks of before the window count to its end, since torch does not tell when they are given back"
            }
            MemoryDoubt::LostEvents => {
                "events were lost: blocks that were taken or given back may be among them"
            }
            MemoryDoubt::MissingReleases => {
                "the allocator had handed out less: some memory was given back where nobody recorded"
            }
            MemoryDoubt::Untimed => {
                texts.extend(untimed_texts(peak));
                continue;
            }
            MemoryDoubt::Before => "the trace does not tell what was in use before the window",
            MemoryDoubt::Unrecorded => {
                "some memory was taken where nobody recorded, as on other threads"
            }
        };
        texts.push(text.into());
    }
    if let Some(first) = texts.first_mut() {
        first.insert_str(0, &format!("{}: ", peak.precision().name()));
    }
    texts
}

/// Says what is not known of blocks that threads may have taken or given back whose memory nobody
/// recorded.
fn untimed_texts(peak: &MemoryPeak) -> [String; 2] {
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
