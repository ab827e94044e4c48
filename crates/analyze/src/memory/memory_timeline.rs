//! Who held memory when, and what for: the blocks of a profile, their lives, and the categories
//! that follow from how data flowed through operators.
//!
//! `blocks` tells storages apart, `flow` finds what each operator read, wrote, made and dropped,
//! `categories` concludes what each block was for; here the three become one list of changes,
//! ordered by time. `presence` finds what of it is certain where not all threads tell their memory.

mod blocks;
mod categories;
mod change;
mod flow;
mod peak;
mod presence;
mod schema;
mod totals;

#[cfg(test)]
mod tests;

use mindprof_model::MemoryRecords;

use crate::analysis::Analysis;
use blocks::Blocks;
use categories::Categories;
use change::MemoryBlock;
pub use change::{
    CategoryBytes, MemoryAction, MemoryCategory, MemoryChange, MemoryDevice, MemoryPlace,
};
use flow::Flow;
pub use peak::{
    MemoryDoubt, MemoryHolder, MemoryOrigin, MemoryPeak, MemoryPrecision, UnseenMemory,
};
use peak::{UntimedMemory, is_counted_late};
use presence::Presence;
use totals::AllocatorTotals;

/// The memory of a profile over time, of every process on every device.
#[derive(Clone, Debug, Default)]
pub struct MemoryTimeline {
    blocks: Vec<MemoryBlock>,
    changes: Vec<MemoryChange>,
    /// The changes without what is not certain of them; none if all is.
    certain: Option<Vec<MemoryChange>>,
}

impl MemoryTimeline {
    /// Builds the timeline in time linear in the events and records, but for the sort of the
    /// changes by time.
    ///
    /// Blocks whose tensors no operator was seen to use, or a profile that does not tell where
    /// tensors lie, leave all as [`MemoryCategory::Unknown`]; times and sizes are right even
    /// so.
    pub fn build(analysis: &Analysis) -> Self {
        let blocks = Blocks::build(analysis.profile());
        let flow = Flow::build(analysis, &blocks);
        let categories = Categories::build(analysis, &blocks, &flow);
        let records = analysis.profile().memory();
        let changes = changes(records, &blocks, &flow, &categories);
        let presence = Presence::build(analysis.profile(), &blocks);
        let certain = (!presence.is_whole()).then(|| presence.certain(&changes, &blocks));
        let is_untimed = |block| presence.is_untimed(block);
        Self {
            blocks: blocks.finish(analysis, is_untimed, |record| flow.owner(record)),
            changes,
            certain,
        }
    }

    /// Returns the blocks, in the order in which they were first seen.
    pub fn blocks(&self) -> &[MemoryBlock] {
        &self.blocks
    }

    /// Returns the changes in all places, ordered by time: what was there before comes first.
    pub fn changes(&self) -> &[MemoryChange] {
        &self.changes
    }

    /// Walks the changes in one place.
    pub fn changes_in(&self, place: MemoryPlace) -> impl Iterator<Item = &MemoryChange> {
        let is_there = move |block: u32| self.blocks[block as usize].place == place;
        let changes = self.changes.iter();
        changes.filter(move |change| is_there(change.block))
    }

    /// Walks the changes in one place, with blocks whose times are not known only where they were
    /// seen: the sum is never more than what was in use. Where such a block was not seen to be
    /// taken, it begins as [`MemoryAction::Preexisting`] at the time of its use.
    pub fn certain_changes_in(&self, place: MemoryPlace) -> impl Iterator<Item = &MemoryChange> {
        let is_there = move |block: u32| self.blocks[block as usize].place == place;
        let changes = self.certain.as_ref().unwrap_or(&self.changes).iter();
        changes.filter(move |change| is_there(change.block))
    }

    /// Returns the places that blocks lie in, those with the highest peaks first.
    pub fn places_by_peak(&self, analysis: &Analysis) -> Vec<MemoryPlace> {
        let mut places = self.places();
        places.sort_by_cached_key(|&place| -self.peak(analysis, place).total());
        places
    }

    /// Returns the places that blocks lie in, in order.
    pub fn places(&self) -> Vec<MemoryPlace> {
        let mut places = Vec::new();
        for block in &self.blocks {
            if !places.contains(&block.place) {
                places.push(block.place);
            }
        }
        places.sort_unstable();
        places
    }

    /// Returns what the allocator of a place said; nothing if it did not, or if it is the host's and
    /// does not count all that was taken and given back.
    pub fn totals(&self, analysis: &Analysis, place: MemoryPlace) -> Option<AllocatorTotals> {
        let is_partial = is_counted_late(analysis.profile(), place)
            || place.device == MemoryDevice::HOST && self.untimed(place).blocks > 0;
        let totals = (!is_partial).then(|| AllocatorTotals::build(analysis.profile(), place));
        totals.flatten()
    }

    /// Returns the blocks of a place whose times are not known.
    pub fn untimed(&self, place: MemoryPlace) -> UntimedMemory {
        let mut untimed = UntimedMemory::default();
        let blocks = self.blocks.iter();
        for block in blocks.filter(|block| block.place == place && !block.are_times_known) {
            untimed.blocks += 1;
            untimed.bytes += block.bytes;
        }
        untimed
    }

    /// Returns when the most memory of a place was in use, and who held it.
    pub fn peak(&self, analysis: &Analysis, place: MemoryPlace) -> MemoryPeak {
        MemoryPeak::find(self, analysis, place)
    }
}

/// Lists what happened to every block: its life from the memory records, its versions from the flow
/// of data.
///
/// ```text
/// block 1   (before)────────v1──────────v2──────     Preexisting, IncrementVersion, IncrementVersion
/// block 2           ├───────v1───┤                   Create, IncrementVersion, Destroy (of version 1)
/// ```
///
/// The memory records come in time order and the writes nearly so: that order is kept, because what is
/// sorted already costs the sort nothing.
fn changes(
    records: &MemoryRecords,
    blocks: &Blocks,
    flow: &Flow,
    categories: &Categories,
) -> Vec<MemoryChange> {
    let mut changes = Vec::with_capacity(blocks.len() + records.len());
    let change = |block: u32, version: u32, time, action| {
        let category = categories.of(flow, block, version);
        MemoryChange {
            time,
            action,
            block,
            version,
            bytes: blocks.bytes(block),
            category,
            after: category,
        }
    };
    let destroy = |block: u32| {
        let (_, destroyed) = blocks.life(block);
        change(
            block,
            flow.last_version(block),
            destroyed,
            MemoryAction::Destroy,
        )
    };
    for block in 0..blocks.len() as u32 {
        let (created, destroyed) = blocks.life(block);
        let is_known = || flow.touches(block) || categories.is_told(block);
        if created.is_none() && (destroyed.is_some() || is_known()) {
            changes.push(change(block, 0, None, MemoryAction::Preexisting));
        }
    }
    for (index, record) in records.iter().enumerate() {
        let block = blocks.of_record(index);
        changes.push(if record.bytes > 0 {
            change(block, 0, Some(record.time), MemoryAction::Create)
        } else {
            destroy(block)
        });
    }
    changes.extend(blocks.replaced().iter().map(|&block| destroy(block)));
    for node in flow.nodes() {
        for (block, version) in node.bumps() {
            // An operation on one thread may begin before another thread takes the block that it
            // then writes to.
            let time = blocks.life(block).0.max(Some(node.start));
            let mut written = change(block, version, time, MemoryAction::IncrementVersion);
            written.after = categories.of(flow, block, version + 1);
            changes.push(written);
        }
    }
    changes.sort_by_key(|change| (change.time, change.action));
    changes
}
