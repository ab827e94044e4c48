//! The memory timeline: the blocks of a profile, their lifetimes and their categories.
//!
//! `blocks` identifies blocks, `flow` finds which of them each operation reads and writes, and
//! `categories` concludes from that what they are for. This module merges the three into one list
//! of changes in time order; `presence` limits it to what is certain if some threads did not report
//! their memory.

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

/// The memory of a profile over time, for every process and device.
///
/// It answers what torch's `export_memory_timeline` answers (how many bytes each category had at
/// each time), and who held the memory at the peak. [`Analysis::memory_timeline`] builds it on
/// first use; files and the memory page are written from it.
#[derive(Clone, Debug, Default)]
pub struct MemoryTimeline {
    blocks: Vec<MemoryBlock>,
    changes: Vec<MemoryChange>,
    /// The changes that are certain, or `None` if all changes are.
    certain: Option<Vec<MemoryChange>>,
}

impl MemoryTimeline {
    /// Builds the timeline in time linear in the number of events and records, apart from sorting
    /// the changes by time.
    ///
    /// Blocks that no recorded operator used have the category [`MemoryCategory::Unknown`], and so
    /// has every block if the profile lacks the addresses of tensors. Times and sizes are right
    /// nevertheless.
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

    /// Returns the blocks, in the order of their first appearance.
    pub fn blocks(&self) -> &[MemoryBlock] {
        &self.blocks
    }

    /// Returns the changes in all places in time order. Blocks that existed before the window come
    /// first.
    pub fn changes(&self) -> &[MemoryChange] {
        &self.changes
    }

    /// Iterates over the changes in one place.
    pub fn changes_in(&self, place: MemoryPlace) -> impl Iterator<Item = &MemoryChange> {
        let is_there = move |block: u32| self.blocks[block as usize].place == place;
        let changes = self.changes.iter();
        changes.filter(move |change| is_there(change.block))
    }

    /// Iterates over the changes in one place, counting a block of unknown lifetime only while it
    /// was certainly there, so that the sum never exceeds the memory in use.
    ///
    /// If the allocation of such a block was not recorded, the block begins as
    /// [`MemoryAction::Preexisting`] at the time of its first use.
    pub fn certain_changes_in(&self, place: MemoryPlace) -> impl Iterator<Item = &MemoryChange> {
        let is_there = move |block: u32| self.blocks[block as usize].place == place;
        let changes = self.certain.as_ref().unwrap_or(&self.changes).iter();
        changes.filter(move |change| is_there(change.block))
    }

    /// Returns the places that have blocks, those with the highest peaks first.
    pub fn places_by_peak(&self, analysis: &Analysis) -> Vec<MemoryPlace> {
        let mut places = self.places();
        places.sort_by_cached_key(|&place| -self.peak(analysis, place).total());
        places
    }

    /// Returns the places that have blocks, sorted.
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

    /// Returns the totals that the allocator of a place reported. `None` if it reported none, or if
    /// it is the CPU's and does not count every allocation and free.
    pub fn totals(&self, analysis: &Analysis, place: MemoryPlace) -> Option<AllocatorTotals> {
        let is_partial = is_counted_late(analysis.profile(), place)
            || place.device == MemoryDevice::HOST && self.untimed(place).blocks > 0;
        let totals = (!is_partial).then(|| AllocatorTotals::build(analysis.profile(), place));
        totals.flatten()
    }

    /// Returns the number and size of a place's blocks whose lifetime is unknown.
    pub fn untimed(&self, place: MemoryPlace) -> UntimedMemory {
        let mut untimed = UntimedMemory::default();
        let blocks = self.blocks.iter();
        for block in blocks.filter(|block| block.place == place && !block.are_times_known) {
            untimed.blocks += 1;
            untimed.bytes += block.bytes;
        }
        untimed
    }

    /// Returns the time at which a place had the most memory in use, and the holders of that memory.
    pub fn peak(&self, analysis: &Analysis, place: MemoryPlace) -> MemoryPeak {
        MemoryPeak::find(self, analysis, place)
    }
}

/// Lists the changes to every block: its lifetime from the memory records, its versions from the
/// data flow.
///
/// ```text
/// block 1   (before)────────v1──────────v2──────     Preexisting, IncrementVersion, IncrementVersion
/// block 2           ├───────v1───┤                   Create, IncrementVersion, Destroy (of version 1)
/// ```
///
/// The memory records are in time order and the writes nearly so. They are appended in that order,
/// because sorting runs that are already sorted costs almost nothing.
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
        let is_known = || flow.touches(block) || categories.has_category(block);
        if created.is_none() && (destroyed.is_some() || is_known()) {
            changes.push(change(block, 0, None, MemoryAction::Preexisting));
        }
    }
    for (index, record) in records.iter().enumerate() {
        let block = blocks.of_record(index);
        changes.push(if record.bytes > 0 || record.is_total() {
            change(block, 0, Some(record.time), MemoryAction::Create)
        } else {
            destroy(block)
        });
    }
    let ended = blocks.replaced().iter().chain(blocks.ended_points());
    changes.extend(ended.map(|&block| destroy(block)));
    for node in flow.nodes() {
        for (block, version) in node.bumps() {
            // An operation on one thread may begin before another thread allocates the block
            // that it then writes to.
            let time = blocks.life(block).0.max(Some(node.start));
            let mut written = change(block, version, time, MemoryAction::IncrementVersion);
            written.after = categories.of(flow, block, version + 1);
            changes.push(written);
        }
    }
    changes.sort_by_key(|change| (change.time, change.action));
    changes
}
