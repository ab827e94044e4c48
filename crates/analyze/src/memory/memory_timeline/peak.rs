//! The peak of memory use, and the holders of memory at that time.

use mindprof_model::{HostTotals, LossCause, Nanos, Profile, StackId, StringId};
use rustc_hash::FxHashMap;

use super::MemoryTimeline;
use super::change::{
    CategoryBytes, MemoryAction, MemoryCategory, MemoryChange, MemoryDevice, MemoryPlace,
};
use crate::analysis::Analysis;

/// The time at which a place had the most memory in use, and the holders of that memory.
///
/// Recordings rarely see every allocation, so the peak also says how far its amounts can be trusted
/// ([`Self::doubts`], [`Self::precision`]). [`MemoryTimeline::peak`] finds it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryPeak {
    /// The time of the peak, or `None` if it was before the window.
    pub time: Option<Nanos>,
    /// The memory in use at the peak, by category.
    pub bytes: CategoryBytes,
    /// The memory in use at the end of the window, by category.
    pub at_end: CategoryBytes,
    /// Memory that the allocator counted beyond that, or `None` if its totals are not known.
    pub unseen: Option<UnseenMemory>,
    /// The blocks that are counted only while they were seen in use.
    pub untimed: UntimedMemory,
    /// The reasons why the amounts are not exact.
    pub doubts: Vec<MemoryDoubt>,
    /// Whether the category of any block is known.
    pub are_categories_known: bool,
    /// The holders of the memory at the peak, largest first.
    pub holders: Vec<MemoryHolder>,
}

/// A reason why the amounts of a peak are not exact.
///
/// Most reasons make the amounts too small, some may make them too large;
/// [`MemoryPeak::precision`] sums them up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryDoubt {
    /// Blocks from before the window are counted to its end, but may have been freed unrecorded.
    OldBlocks,
    /// Events were lost, which may include allocations and releases.
    LostEvents,
    /// The allocator's total is below the sum of the blocks, so some releases were not recorded.
    MissingReleases,
    /// Blocks are counted only while they were seen in use, but may have existed for longer.
    Untimed,
    /// The memory in use before the window is not known.
    Before,
    /// Memory was allocated on threads that were not recorded.
    Unrecorded,
}

impl MemoryDoubt {
    /// Returns whether the amounts may be too large as well as too small.
    const fn may_be_too_much(self) -> bool {
        matches!(
            self,
            Self::OldBlocks | Self::LostEvents | Self::MissingReleases
        )
    }
}

/// The precision of the amounts of a peak, which tables and files state next to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryPrecision {
    /// Exactly this much memory was in use.
    Exact,
    /// At least this much memory was in use.
    AtLeast,
    /// More or less memory may have been in use.
    AsFarAsKnown,
}

impl MemoryPrecision {
    /// Returns the name that tables and files show.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::AtLeast => "at least",
            Self::AsFarAsKnown => "as far as known",
        }
    }
}

/// Memory that an allocator counted but that is in no block of the profile.
///
/// Memory records carry the allocator's total, so blocks from before the window or from threads
/// that were not recorded show up as a difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnseenMemory {
    /// The amount at the peak.
    pub at_peak: i64,
    /// The amount at the end of the window.
    pub at_end: i64,
    /// Whether all of it was allocated before the window opened and stayed, so that the amount never
    /// changes. If not, some of it was allocated on threads that were not recorded.
    pub is_from_before: bool,
}

/// Blocks whose allocation or release was not recorded.
///
/// A peak counts them only while they were seen in use, and reports here how many they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UntimedMemory {
    /// The number of blocks.
    pub blocks: u64,
    /// Their total size.
    pub bytes: u64,
}

/// The time at which the blocks of a holder were allocated, relative to the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryOrigin {
    /// They were allocated within the window.
    Window,
    /// They were allocated before the window opened.
    Before,
    /// They were allocated before the window, or by a thread whose memory was not recorded.
    NotTold,
    /// The allocator states its total alone, and this is the part of it that is in no known block.
    Total,
}

/// Blocks in use at the peak that have the same owner, stack, category and origin.
///
/// Grouping turns thousands of blocks into the few lines that explain a peak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryHolder {
    /// The name of the operator or range that allocated them, or `None` if they were allocated
    /// outside all of them or before the window.
    pub owner: Option<StringId>,
    /// The stack of the allocations.
    pub stack: StackId,
    /// The category of the blocks.
    pub category: MemoryCategory,
    /// Whether they were allocated within the window.
    pub origin: MemoryOrigin,
    /// Their total size.
    pub bytes: u64,
    /// The number of blocks, which is zero if only their total is known.
    pub blocks: u64,
}

impl MemoryPeak {
    /// Returns the memory in use at the peak, including unseen memory.
    pub fn total(&self) -> i64 {
        self.bytes.iter().sum::<i64>() + self.unseen.map_or(0, |unseen| unseen.at_peak)
    }

    /// Returns the memory in use at the end of the window, including unseen memory.
    pub fn total_at_end(&self) -> i64 {
        self.at_end.iter().sum::<i64>() + self.unseen.map_or(0, |unseen| unseen.at_end)
    }

    /// Returns how precise the amounts are.
    pub fn precision(&self) -> MemoryPrecision {
        if self.doubts.is_empty() {
            MemoryPrecision::Exact
        } else if self.doubts.iter().any(|doubt| doubt.may_be_too_much()) {
            MemoryPrecision::AsFarAsKnown
        } else {
            MemoryPrecision::AtLeast
        }
    }

    /// Finds the peak: the first time after whose changes the most memory is in use.
    ///
    /// ```text
    ///            ┌──┐
    ///        ┌───┘  └──┐ ┌──┐
    ///   ─────┘         └─┘  └──
    ///            ^ here
    /// ░░░░░░░░░░░░░░░░░░░░░░░░░   memory that only the allocator counted
    /// ```
    pub(super) fn find(timeline: &MemoryTimeline, analysis: &Analysis, place: MemoryPlace) -> Self {
        let changes: Vec<&MemoryChange> = timeline.certain_changes_in(place).collect();
        let mut peak = Self {
            untimed: timeline.untimed(place),
            ..Self::default()
        };
        let totals = timeline.totals(analysis, place);
        let mut bytes = CategoryBytes::default();
        let mut upto = 0;
        let mut most = 0;
        let mut range: Option<(i64, i64)> = None;
        let mut at_end = 0;
        let mut is_missing_releases = false;
        for (index, change) in changes.iter().enumerate() {
            change.apply(&mut bytes);
            let is_moment_over = changes
                .get(index + 1)
                .is_none_or(|next| next.time != change.time);
            if !is_moment_over {
                continue;
            }
            let beyond = totals
                .as_ref()
                .map(|totals| totals.beyond(change.time, &bytes));
            is_missing_releases |= beyond.is_some_and(|beyond| beyond < 0);
            let unseen = beyond.map(|beyond| beyond.max(0));
            if let Some(unseen) = unseen {
                let (least, highest) = range.unwrap_or((unseen, unseen));
                range = Some((least.min(unseen), highest.max(unseen)));
                at_end = unseen;
            }
            let total = bytes.iter().sum::<i64>() + unseen.unwrap_or_default();
            if total > most {
                most = total;
                peak.bytes = bytes;
                peak.unseen = unseen.map(|at_peak| UnseenMemory {
                    at_peak,
                    ..UnseenMemory::default()
                });
                peak.time = change.time;
                upto = index + 1;
            }
        }
        peak.at_end = bytes;
        if let Some(unseen) = &mut peak.unseen {
            unseen.at_end = at_end;
            unseen.is_from_before = range.is_none_or(|(least, highest)| least == highest);
        }
        peak.doubts = peak.find_doubts(analysis.profile());
        if is_missing_releases {
            peak.doubts.insert(0, MemoryDoubt::MissingReleases);
        }
        if is_counted_late(analysis.profile(), place)
            && holders(timeline, analysis, &changes)
                .iter()
                .any(MemoryHolder::may_be_gone)
        {
            peak.doubts.insert(0, MemoryDoubt::OldBlocks);
        }
        peak.are_categories_known = changes.iter().any(|change| {
            [change.category, change.after] != [MemoryCategory::Unknown, MemoryCategory::Unknown]
        });
        peak.holders = holders(timeline, analysis, &changes[..upto]);
        peak
    }

    /// Finds the doubts that follow from lost events, untimed blocks and unseen memory.
    fn find_doubts(&self, profile: &Profile) -> Vec<MemoryDoubt> {
        let mut doubts = Vec::new();
        let loss = profile.loss();
        if loss.count(LossCause::Budget) + loss.count(LossCause::Damaged) > 0 {
            doubts.push(MemoryDoubt::LostEvents);
        }
        match self.unseen {
            _ if self.untimed.blocks > 0 => doubts.push(MemoryDoubt::Untimed),
            None => doubts.push(MemoryDoubt::Before),
            Some(unseen) if !unseen.is_from_before => doubts.push(MemoryDoubt::Unrecorded),
            Some(_) => {}
        }
        doubts
    }
}

/// Returns whether the allocator of a place counts only the blocks that were allocated while a
/// profiler was active, as torch's CPU allocator does. Its totals then do not cover older blocks.
/// torch's own traces are recognized by their lack of tensor addresses.
pub(super) fn is_counted_late(profile: &Profile, place: MemoryPlace) -> bool {
    let since = HostTotals::read(profile.metadata());
    place.device == MemoryDevice::HOST
        && (profile.storages().is_empty() || since == Some(HostTotals::SinceFirstProfiler))
}

impl MemoryHolder {
    /// Returns whether the blocks may have been freed without a record, given that releases of
    /// older blocks are not recorded. Parameters and optimizer states are assumed to stay.
    fn may_be_gone(&self) -> bool {
        let is_trained = matches!(
            self.category,
            MemoryCategory::Parameter | MemoryCategory::OptimizerState
        );
        self.origin == MemoryOrigin::Before && !is_trained
    }
}

fn holders(
    timeline: &MemoryTimeline,
    analysis: &Analysis,
    changes: &[&MemoryChange],
) -> Vec<MemoryHolder> {
    let mut live: FxHashMap<u32, (MemoryCategory, u64)> = FxHashMap::default();
    for change in changes {
        if change.action == MemoryAction::Destroy {
            live.remove(&change.block);
        } else {
            live.insert(change.block, (change.after, change.bytes));
        }
    }
    let mut groups: FxHashMap<_, MemoryHolder> = FxHashMap::default();
    for (block, (category, bytes)) in live {
        let block = &timeline.blocks[block as usize];
        if bytes == 0 && block.is_rest_of_total() {
            continue;
        }
        let owner = block
            .owner
            .map(|event| analysis.profile().event(event).name);
        let origin = match block.created {
            _ if block.is_rest_of_total() => MemoryOrigin::Total,
            Some(_) => MemoryOrigin::Window,
            None if block.are_times_known => MemoryOrigin::Before,
            None => MemoryOrigin::NotTold,
        };
        let key = (owner, block.stack, category, origin);
        let holder = groups.entry(key).or_insert(MemoryHolder {
            owner,
            stack: block.stack,
            category,
            origin,
            bytes: 0,
            blocks: 0,
        });
        holder.bytes += bytes;
        holder.blocks += u64::from(origin != MemoryOrigin::Total);
    }
    let mut holders: Vec<_> = groups.into_values().collect();
    let order = |holder: &MemoryHolder| {
        let MemoryHolder {
            owner,
            stack,
            category,
            origin,
            bytes,
            ..
        } = *holder;
        (std::cmp::Reverse(bytes), category, owner, stack, origin)
    };
    holders.sort_unstable_by_key(order);
    holders
}
