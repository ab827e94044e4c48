//! The records of cuts that `mindprof slim` writes into the metadata of a trace.

use mindprof_analyze::SLIM_KEY;
use mindprof_model::Profile;
use serde::Deserialize;

/// The record of a cut that `mindprof slim` writes, as far as it matters here, or those of the ranks
/// of a merged profile.
#[derive(Deserialize)]
#[serde(untagged)]
enum CutDocument {
    One {
        events: u64,
        kept: u64,
        clipped: u64,
        #[serde(default)]
        cut: CutCauses,
        earlier: Option<Box<Self>>,
    },
    Merged {
        parts: Vec<Self>,
    },
}

/// The numbers of events that were removed for other causes than their time. Such a cut leaves gaps
/// between the events that it keeps, whereas a window of time keeps all that happens in it.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct CutCauses {
    threads: u64,
    duration: u64,
    size: u64,
}

/// The counts of one or more cuts. Sums saturate, because a file may contain any numbers.
#[derive(Default)]
struct CutCounts {
    kept: u64,
    removed: u64,
    is_clipped: bool,
    is_thinned: bool,
}

impl CutDocument {
    fn counts(&self) -> Result<CutCounts, UnreadableCut> {
        match self {
            Self::One {
                events,
                kept,
                clipped,
                cut,
                earlier,
            } => {
                let removed = events.checked_sub(*kept).ok_or(UnreadableCut)?;
                let earlier = match earlier {
                    Some(earlier) => earlier.counts()?,
                    None => CutCounts::default(),
                };
                Ok(CutCounts {
                    kept: *kept,
                    removed: removed.saturating_add(earlier.removed),
                    is_clipped: earlier.is_clipped || *clipped > 0,
                    is_thinned: earlier.is_thinned
                        || cut.threads.max(cut.duration).max(cut.size) > 0,
                })
            }
            Self::Merged { parts } => parts.iter().try_fold(CutCounts::default(), |sum, part| {
                let part = part.counts()?;
                Ok(CutCounts {
                    kept: sum.kept.saturating_add(part.kept),
                    removed: sum.removed.saturating_add(part.removed),
                    is_clipped: sum.is_clipped || part.is_clipped,
                    is_thinned: sum.is_thinned || part.is_thinned,
                })
            }),
        }
    }
}

/// The record of a cut has an unknown form.
pub(super) struct UnreadableCut;

/// The outcome of all cuts of a profile.
#[derive(Clone, Copy, Debug)]
pub(super) struct CutRecord {
    /// The number of events that are left.
    pub(super) kept: u64,
    /// The number of events before the cuts.
    pub(super) found: u64,
    /// Whether events are missing from the time that was kept.
    pub(super) is_thinned: bool,
}

impl CutRecord {
    /// Reads the record of a profile. Returns `None` if nothing was removed.
    pub(super) fn read(profile: &Profile) -> Result<Option<Self>, UnreadableCut> {
        let Some(text) = profile.metadata().get(SLIM_KEY) else {
            return Ok(None);
        };
        let cuts: CutDocument = serde_json::from_str(text).map_err(|_| UnreadableCut)?;
        let counts = cuts.counts()?;
        let record = Self {
            kept: counts.kept,
            found: counts.kept.saturating_add(counts.removed),
            is_thinned: counts.is_thinned,
        };
        Ok((counts.removed > 0 || counts.is_clipped).then_some(record))
    }
}
