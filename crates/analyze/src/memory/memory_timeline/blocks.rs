//! The blocks of a profile: which block an address denotes at each time, and which tensors are in
//! which blocks.

use std::iter::{Enumerate, Peekable};
use std::slice::Iter;

use mindprof_model::{
    DType, DeviceKind, Event, EventId, Input, InputsId, MemoryRecord, MemoryRecordsIter, Nanos,
    Profile, RoleRecord, StackId, ThreadId,
};
use rustc_hash::FxHashMap;

use super::change::{MemoryBlock, MemoryDevice, MemoryPlace};
use crate::analysis::Analysis;

/// The block of a tensor that has no elements and is in no block.
pub(super) const NO_BLOCK: u32 = u32::MAX;

/// The block of a tensor without a storage, such as a sparse or a meta tensor.
const NO_STORAGE: u32 = u32::MAX - 1;

/// The creation record of a block that existed before the window.
const NO_RECORD: u32 = u32::MAX;

/// The blocks of a profile, and the block of each memory record, role and input tensor.
///
/// Memory records and tensors name addresses, and allocators reuse those all the time. A sweep over
/// the profile in time order turns addresses into blocks, which the other steps work with.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    list: Vec<MemoryBlock>,
    /// By block, whether a tensor was seen in it.
    hold_tensors: Vec<bool>,
    /// By block, the memory record of its allocation.
    creations: Vec<u32>,
    /// The block of each memory record.
    of_records: Vec<u32>,
    /// The block of each role.
    of_roles: Vec<u32>,
    /// The blocks that ended because another one was allocated at their address.
    replaced: Vec<u32>,
    /// The blocks that stand for a part of a total and ended with the next point of its curve.
    ended_points: Vec<u32>,
    /// The position in `inputs` of each event's first input, with one more entry at the end. Empty
    /// if the profile lacks the addresses of tensors.
    begins: Vec<u32>,
    inputs: Vec<TensorInput>,
}

/// An input tensor of an event.
#[derive(Clone, Copy, Debug)]
pub(super) struct TensorInput {
    block: u32,
    /// The position of its argument. The tensors of a list share one.
    pub(super) place: u16,
    /// The number of the event's arguments.
    pub(super) arguments: u16,
}

impl TensorInput {
    /// Returns the block that the tensor is in, if any.
    pub(super) fn block(self) -> Option<u32> {
        (self.block < NO_STORAGE).then_some(self.block)
    }

    /// Returns whether the tensor has a storage, possibly an empty one.
    pub(super) const fn has_storage(self) -> bool {
        self.block != NO_STORAGE
    }
}

impl Blocks {
    /// Finds the blocks with one sweep over events, memory records and roles, all in time order.
    ///
    /// ```text
    /// address 7   ──seen──free    alloc──seen──seen──free    alloc──
    /// block       0 (before)      1                          2
    /// ```
    pub(super) fn build(profile: &Profile) -> Self {
        let records = profile.memory().len();
        let mut sweep = Sweep {
            profile,
            blocks: Self {
                list: Vec::with_capacity(records / 2),
                hold_tensors: Vec::with_capacity(records / 2),
                creations: Vec::with_capacity(records / 2),
                of_records: Vec::with_capacity(records),
                ..Self::default()
            },
            live: FxHashMap::default(),
            unplaced: FxHashMap::default(),
            curves: FxHashMap::default(),
            records: profile.memory().iter().enumerate().peekable(),
            roles: profile.roles().iter().peekable(),
        };
        if !profile.storages().is_empty() {
            let tensors = TensorLists::build(profile);
            for (index, event) in profile.events().iter().enumerate() {
                sweep.advance(event.start);
                sweep.event(index, event, &tensors);
            }
            sweep.blocks.begins.push(sweep.blocks.inputs.len() as u32);
        }
        sweep.advance(Nanos(u64::MAX));
        sweep.blocks
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn bytes(&self, block: u32) -> u64 {
        self.list[block as usize].bytes
    }

    pub(super) fn place(&self, block: u32) -> MemoryPlace {
        self.list[block as usize].place
    }

    /// Returns the times of a block's allocation and release, as far as they are known.
    pub(super) fn life(&self, block: u32) -> (Option<Nanos>, Option<Nanos>) {
        let block = &self.list[block as usize];
        (block.created, block.destroyed)
    }

    /// Returns whether a tensor was seen in a block.
    pub(super) fn holds_tensor(&self, block: u32) -> bool {
        self.hold_tensors[block as usize]
    }

    pub(super) fn of_record(&self, record: usize) -> u32 {
        self.of_records[record]
    }

    pub(super) fn of_role(&self, role: usize) -> u32 {
        self.of_roles[role]
    }

    /// Returns the blocks that ended because another one was allocated at their address.
    pub(super) fn replaced(&self) -> &[u32] {
        &self.replaced
    }

    /// Returns the blocks that stand for a part of a total and ended with the next point of its curve.
    pub(super) fn ended_points(&self) -> &[u32] {
        &self.ended_points
    }

    /// Returns the input tensors of the event at `index`.
    pub(super) fn inputs(&self, index: usize) -> &[TensorInput] {
        match (self.begins.get(index), self.begins.get(index + 1)) {
            (Some(&begin), Some(&end)) => &self.inputs[begin as usize..end as usize],
            _ => &[],
        }
    }

    /// Adds a block of unknown size and lifetime.
    fn add(&mut self, place: MemoryPlace, address: u64) -> u32 {
        self.list.push(MemoryBlock {
            address,
            place,
            bytes: 0,
            created: None,
            destroyed: None,
            are_times_known: true,
            owner: None,
            stack: StackId::NONE,
        });
        self.hold_tensors.push(false);
        self.creations.push(NO_RECORD);
        self.list.len() as u32 - 1
    }

    /// Returns the blocks, with `owner` applied to the memory record of each block's allocation.
    pub(super) fn finish(
        self,
        analysis: &Analysis,
        is_untimed: impl Fn(u32) -> bool,
        owner: impl Fn(u32) -> Option<EventId>,
    ) -> Vec<MemoryBlock> {
        let mut list = self.list;
        for (index, block) in list.iter_mut().enumerate() {
            block.are_times_known = !is_untimed(index as u32);
        }
        let known = list.iter_mut().zip(self.creations);
        for (block, record) in known.filter(|(_, record)| *record != NO_RECORD) {
            block.owner = owner(record);
            let recorded = analysis.profile().memory().at(record as usize).stack;
            block.stack = match block.owner {
                Some(owner) if recorded == StackId::NONE => analysis.stack(owner),
                Some(_) | None => recorded,
            };
        }
        list
    }
}

struct Sweep<'a> {
    profile: &'a Profile,
    blocks: Blocks,
    /// The block that each address denotes at the current time.
    live: FxHashMap<(MemoryPlace, u64), u32>,
    /// The live blocks of unknown address, by size.
    unplaced: FxHashMap<(MemoryPlace, u64), Vec<u32>>,
    /// The curves of allocators whose records are totals.
    curves: FxHashMap<MemoryPlace, Curve>,
    records: Peekable<Enumerate<MemoryRecordsIter<'a>>>,
    roles: Peekable<Iter<'a, RoleRecord>>,
}

impl Sweep<'_> {
    /// Processes the memory records and roles before `time`, in order.
    fn advance(&mut self, time: Nanos) {
        while let Some(role) = self.roles.next_if(|role| role.time < time) {
            self.take_records(role.time);
            let block = if role.bytes == 0 {
                NO_BLOCK
            } else {
                self.tensor(role.thread, role.address, role.bytes)
            };
            self.blocks.of_roles.push(block);
        }
        self.take_records(time);
    }

    fn take_records(&mut self, time: Nanos) {
        while let Some((index, record)) = self.records.next_if(|(_, next)| next.time < time) {
            self.record(index, &record);
        }
    }

    fn event(&mut self, index: usize, event: &Event, tensors: &TensorLists) {
        self.blocks.begins.push(self.blocks.inputs.len() as u32);
        let addresses = self.profile.storages().of(index);
        for (tensor, &address) in tensors.of(event.inputs).iter().zip(addresses) {
            let block = match tensor.bytes {
                _ if address == 0 => NO_STORAGE,
                Some(bytes) => self.tensor(event.thread, address, bytes),
                // An empty tensor may be a view into a live block; otherwise it has none.
                None if self.is_live(event.thread, address) => {
                    self.tensor(event.thread, address, 0)
                }
                None => NO_BLOCK,
            };
            self.blocks.inputs.push(TensorInput {
                block,
                place: tensor.place,
                arguments: tensor.arguments,
            });
        }
    }

    /// Returns whether a block is at an address of a thread's process.
    fn is_live(&self, thread: ThreadId, address: u64) -> bool {
        self.live.contains_key(&(self.place_of(thread), address))
    }

    /// Returns the place of the tensors that a thread uses.
    fn place_of(&self, thread: ThreadId) -> MemoryPlace {
        MemoryPlace {
            process: self.profile.threads()[thread.index()].process,
            device: MemoryDevice::HOST,
        }
    }

    /// Returns the block of a tensor that a thread used.
    fn tensor(&mut self, thread: ThreadId, address: u64, bytes: u64) -> u32 {
        let place = self.place_of(thread);
        let blocks = &mut self.blocks;
        let live = self.live.entry((place, address));
        let index = *live.or_insert_with(|| blocks.add(place, address));
        let block = &mut self.blocks.list[index as usize];
        self.blocks.hold_tensors[index as usize] = true;
        // The size in an allocation record is certain; a tensor may span only part of the block.
        if block.created.is_none() {
            block.bytes = block.bytes.max(bytes);
        }
        index
    }

    fn record(&mut self, index: usize, record: &MemoryRecord) {
        let place = MemoryPlace::of(self.profile, record);
        if record.is_total() {
            return self.total(record, place);
        }
        if record.device == DeviceKind::PrivateUse1 {
            self.curves.entry(place).or_default().held += record.bytes;
        }
        if record.address == 0 {
            return self.unplaced_record(index, record, place);
        }
        let key = (place, record.address);
        let blocks = &mut self.blocks;
        let block = if record.bytes > 0 {
            let block = blocks.add(place, record.address);
            blocks.creations[block as usize] = index as u32;
            let created = &mut blocks.list[block as usize];
            created.created = Some(record.time);
            created.bytes = record.bytes as u64;
            // A block at the same address must have been freed, even if that was not recorded.
            if let Some(previous) = self.live.insert(key, block) {
                blocks.list[previous as usize].destroyed = Some(record.time);
                blocks.replaced.push(previous);
            }
            block
        } else {
            let known = self.live.remove(&key);
            let block = known.unwrap_or_else(|| blocks.add(place, record.address));
            let destroyed = &mut blocks.list[block as usize];
            destroyed.destroyed = Some(record.time);
            if destroyed.created.is_none() {
                destroyed.bytes = record.bytes.unsigned_abs();
            }
            block
        };
        blocks.of_records.push(block);
    }
}

/// The curve of an allocator, beside the blocks of it that are known.
#[derive(Clone, Copy, Debug, Default)]
struct Curve {
    /// The bytes in blocks with an address.
    held: i64,
    /// The block that stands for everything else.
    rest: Option<u32>,
}

impl Sweep<'_> {
    /// Processes a point of an allocator's curve. The bytes that are in no known block are one block,
    /// which the next point replaces, so that all blocks together are the total.
    ///
    /// ```text
    /// total      100        160             60
    /// known                   |---- 60 -----|
    /// rest       |--- 100 --- |--- 100 -----|-- 60 --
    /// ```
    fn total(&mut self, record: &MemoryRecord, place: MemoryPlace) {
        let curve = self.curves.entry(place).or_default();
        let rest = (record.total_allocated as i64).saturating_sub(curve.held);
        let blocks = &mut self.blocks;
        let block = blocks.add(place, 0);
        let created = &mut blocks.list[block as usize];
        created.created = Some(record.time);
        created.bytes = u64::try_from(rest).unwrap_or(0);
        if let Some(previous) = curve.rest.replace(block) {
            blocks.list[previous as usize].destroyed = Some(record.time);
            blocks.ended_points.push(previous);
        }
        blocks.of_records.push(block);
    }

    /// Processes a record without an address, as in traces of old versions of torch. A release is
    /// matched with the latest live block of the same size, or else with one from before the window.
    fn unplaced_record(&mut self, index: usize, record: &MemoryRecord, place: MemoryPlace) {
        let size = record.bytes.unsigned_abs();
        let blocks = &mut self.blocks;
        let live = self.unplaced.entry((place, size)).or_default();
        let known = if record.bytes > 0 { None } else { live.pop() };
        let block = known.unwrap_or_else(|| blocks.add(place, 0));
        let found = &mut blocks.list[block as usize];
        found.bytes = size;
        if record.bytes > 0 {
            found.created = Some(record.time);
            blocks.creations[block as usize] = index as u32;
            live.push(block);
        } else {
            found.destroyed = Some(record.time);
        }
        blocks.of_records.push(block);
    }
}

/// The tensors of each distinct list of inputs, so that each list is decoded once.
pub(super) struct TensorLists {
    begins: Vec<u32>,
    tensors: Vec<SeenTensor>,
}

#[derive(Clone, Copy)]
pub(super) struct SeenTensor {
    place: u16,
    arguments: u16,
    /// How many bytes of its storage it is known to span, or `None` if it has no elements.
    pub(super) bytes: Option<u64>,
}

impl TensorLists {
    pub(super) fn build(profile: &Profile) -> Self {
        let mut lists = Self {
            begins: vec![0],
            tensors: Vec::new(),
        };
        for words in profile.inputs().iter() {
            let inputs = || mindprof_model::InputsIter::new(words);
            let arguments = u16::try_from(inputs().count()).unwrap_or(u16::MAX);
            for (place, input) in (0..arguments).zip(inputs()) {
                lists.add((place, arguments), input);
            }
            lists.begins.push(lists.tensors.len() as u32);
        }
        lists
    }

    fn add(&mut self, (place, arguments): (u16, u16), input: Input<'_>) {
        match input {
            Input::Tensor {
                dtype,
                dims,
                strides,
                ..
            } => {
                let bytes = spanned_bytes(dtype, dims, strides);
                self.tensors.push(SeenTensor {
                    place,
                    arguments,
                    bytes,
                });
            }
            Input::TensorList(list) => {
                for tensor in list {
                    self.add((place, arguments), tensor);
                }
            }
            Input::Other
            | Input::Device
            | Input::Int(_)
            | Input::Float(_)
            | Input::Bool(_)
            | Input::IntList(_)
            | Input::FloatList(_)
            | Input::BoolList(_)
            | Input::Complex { .. }
            | Input::NumberList(_) => {}
        }
    }

    pub(super) fn of(&self, list: InputsId) -> &[SeenTensor] {
        let [begin, end] = [list.index(), list.index() + 1].map(|at| self.begins[at] as usize);
        &self.tensors[begin..end]
    }
}

/// Returns how many bytes of its storage a tensor spans, as torch computes it: by its widest
/// dimension. `None` if the tensor has no elements. Zero if all dimensions are expanded, or if the
/// dtype or the strides are unknown, although there is a storage in these cases.
fn spanned_bytes(dtype: DType, dims: &[u64], strides: &[u64]) -> Option<u64> {
    if dims.contains(&0) {
        return None;
    }
    let spans = dims.iter().zip(strides).map(|(&dim, &stride)| {
        u64::try_from((stride as i64).saturating_mul(dim as i64)).unwrap_or_default()
    });
    let least = u64::from(dims.is_empty());
    Some(spans.max().unwrap_or(least).saturating_mul(dtype.bytes()))
}
