//! The bands that the memory of a device is divided into: its categories, or a single one called "not
//! known", and the memory that only the allocator reports. Also the notes on uncertain amounts.

use mindprof_analyze::{MemoryCategory, MemoryDoubt, MemoryPeak, MemoryPrecision};
use mindprof_formats::{memory_category_name, unseen_name};

use crate::number::memory_text;

/// A layer of the chart and a row of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Band {
    /// Memory that the allocator counts but no block of the profile accounts for.
    Unseen,
    /// The blocks of one category.
    Category(MemoryCategory),
}

impl Band {
    /// Returns the bands to show, from the bottom to the top.
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

    /// Returns the name to show.
    pub(super) fn name(self, peak: &MemoryPeak) -> String {
        match self {
            Self::Unseen => unseen_name(peak.unseen.unwrap_or_default()).into(),
            Self::Category(MemoryCategory::Unknown) if !peak.are_categories_known => {
                "not known".into()
            }
            Self::Category(category) => memory_category_name(category).to_lowercase(),
        }
    }

    /// Returns the number of the colour: the index of the category, or the number after the last one.
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

/// Returns an amount as text, qualified if it is not exact.
pub(crate) fn amount_text(peak: &MemoryPeak, bytes: i64) -> String {
    let amount = memory_text(bytes);
    let amount = amount.trim();
    let precision = peak.precision();
    match precision {
        MemoryPrecision::Exact => amount.into(),
        MemoryPrecision::AtLeast => format!("{} {amount}", precision.name()),
        MemoryPrecision::AsFarAsKnown => format!("{amount} {}", precision.name()),
    }
}

/// Returns the reasons why amounts are not exact; empty if they are.
pub(super) fn doubt_texts(peak: &MemoryPeak) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for doubt in &peak.doubts {
        let text = match doubt {
            MemoryDoubt::OldBlocks => {
                "blocks from before the window are counted to its end, because torch does not report when they are freed"
            }
            MemoryDoubt::LostEvents => {
                "events were lost, which may include allocations and releases"
            }
            MemoryDoubt::MissingReleases => {
                "the allocator reports less memory in use: some was freed outside the recording"
            }
            MemoryDoubt::Untimed => {
                texts.extend(untimed_texts(peak));
                continue;
            }
            MemoryDoubt::Before => "the trace does not report the memory in use before the window",
            MemoryDoubt::Unrecorded => {
                "some memory was allocated outside the recording, for example on other threads"
            }
        };
        texts.push(text.into());
    }
    if let Some(first) = texts.first_mut() {
        first.insert_str(0, &format!("{}: ", peak.precision().name()));
    }
    texts
}

/// Describes the blocks whose allocation or release may have happened on threads whose memory was
/// not recorded.
fn untimed_texts(peak: &MemoryPeak) -> [String; 2] {
    let bytes = memory_text(peak.untimed.bytes as i64);
    let (blocks, are) = match peak.untimed.blocks {
        1 => ("1 block".into(), "is"),
        blocks => (format!("{blocks} blocks"), "are"),
    };
    [
        format!(
            "{blocks} ({}) {are} counted only while seen in use, and may have existed for longer",
            bytes.trim()
        ),
        "their allocation or release was not recorded: torch does not report the memory of all threads and libraries"
            .into(),
    ]
}
