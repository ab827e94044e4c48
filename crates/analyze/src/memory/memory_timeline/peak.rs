//! When the most memory was in use, and who held it then.

use mindprof_model::{HostTotals, LossCause, Nanos, Profile, StackId, StringId};
use rustc_hash::FxHashMap;

use super::MemoryTimeline;
use super::change::{
    CategoryBytes, MemoryAction, MemoryCategory, MemoryChange, MemoryDevice, MemoryPlace,
};
use crate::analysis::Analysis;

/// The moment at which a place held the most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryPeak {
    /// When it was; none if it was before the window.
    pub time: Option<Nanos>,
    /// What was in use then, by category.
    pub bytes: CategoryBytes,
    /// What was in use at the end of the window, by category.
    pub at_end: CategoryBytes,
    /// What the device's allocator had handed out beyond that; none if the profile does not tell.
    pub unseen: Option<UnseenMemory>,
    /// The blocks that are counted only where they were seen.
    pub untimed: UntimedMemory,
    /// Why the amounts are not exact.
    pub doubts: Vec<MemoryDoubt>,
    /// Whether the profile tells of any block what it was for.
    pub are_categories_known: bool,
    /// Who held it, the largest first.
    pub holders: Vec<MemoryHolder>,
}

/// What is not known of amounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryDoubt {
    /// Blocks of before the window are counted to its end, and may be gone: nobody tells.
    OldBlocks,
    /// Events were lost, among which blocks may have been taken or given back.
    LostEvents,
    /// The allocator had handed out less than is known: something was given back unseen.
    MissingReleases,
    /// Blocks are counted only while they were seen, and may have been there for longer.
    Untimed,
    /// What was in use before the window is not told.
    Before,
    /// Something was taken where nobody recorded.
    Unrecorded,
}

impl MemoryDoubt {
    /// Returns whether less may have been in use than is counted, beside more.
    const fn may_be_too_much(self) -> bool {
        matches!(
            self,
            Self::OldBlocks | Self::LostEvents | Self::MissingReleases
        )
    }
}

/// How amounts are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryPrecision {
    /// So much was in use.
    Exact,
    /// More may have been in use.
    AtLeast,
    /// More may have been in use, or less.
    AsFarAsKnown,
}

impl MemoryPrecision {
    /// Returns what people and programs read.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::AtLeast => "at least",
            Self::AsFarAsKnown => "as far as known",
        }
    }
}

/// Memory that an allocator counted but that lies in no block of the profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnseenMemory {
    /// How much of it there was at the peak.
    pub at_peak: i64,
    /// How much of it there was at the end of the window.
    pub at_end: i64,
    /// Whether it was all there before the window opened, and stayed: it never changes. Otherwise
    /// some of it was taken where nobody recorded.
    pub is_from_before: bool,
}

/// Blocks of which the profile does not tell when they were taken or given back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UntimedMemory {
    /// How many they are.
    pub blocks: u64,
    /// How large they are together.
    pub bytes: u64,
}

/// Where blocks are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryOrigin {
    /// They were taken in the window, as the profile tells.
    Window,
    /// They were there before the window opened.
    Before,
    /// They were there before, or a thread took them whose memory nobody recorded.
    NotTold,
}

/// Blocks that live at the same time, are for the same thing and were taken at the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryHolder {
    /// The operator or range that took them; none if that was outside of all, or before the
    /// window.
    pub owner: Option<StringId>,
    /// Who called for them.
    pub stack: StackId,
    /// What they are for.
    pub category: MemoryCategory,
    /// Where they are from.
    pub origin: MemoryOrigin,
    /// How large they are together.
    pub bytes: u64,
    /// How many they are.
    pub blocks: u64,
}

impl MemoryPeak {
    /// Returns what was in use at the peak.
    pub fn total(&self) -> i64 {
        self.bytes.iter().sum::<i64>() + self.unseen.map_or(0, |unseen| unseen.at_peak)
    }

    /// Returns what was in use at the end of the window.
    pub fn total_at_end(&self) -> i64 {
        self.at_end.iter().sum::<i64>() + self.unseen.map_or(0, |unseen| unseen.at_end)
    }

    /// Returns how the amounts are meant.
    pub fn precision(&self) -> MemoryPrecision {
        if self.doubts.is_empty() {
            MemoryPrecision::Exact
        } else if self.doubts.iter().any(|doubt| doubt.may_be_too_much()) {
            MemoryPrecision::AsFarAsKnown
        } else {
            MemoryPrecision::AtLeast
        }
    }

    /// Finds the peak: the first moment after whose changes the most is in use.
    ///
    /// ```text
    ///            ┌──┐
    ///        ┌───┘  └──┐ ┌──┐
    ///   ─────┘         └─┘  └──
    ///            ^ here
    /// ░░░░░░░░░░░░░░░░░░░░░░░░░   what only the allocator knows of
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

    /// Finds what is not known once all else is.
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

/// Returns whether a place is that of an allocator that counts what was taken while someone
/// profiled, and of that only what was given back meanwhile: torch's of the host. Its totals tell
/// nothing of other times. torch's own traces are known by this: they never tell where tensors lie.
pub(super) fn is_counted_late(profile: &Profile, place: MemoryPlace) -> bool {
    let since = HostTotals::read(profile.metadata());
    place.device == MemoryDevice::HOST
        && (profile.storages().is_empty() || since == Some(HostTotals::SinceFirstProfiler))
}

impl MemoryHolder {
    /// Returns whether blocks that nobody was seen to give back may be gone nevertheless, where
    /// releases of what was there before are not told. What is trained is taken to stay.
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
        let owner = block
            .owner
            .map(|event| analysis.profile().event(event).name);
        let origin = match block.created {
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
        holder.blocks += 1;
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
