//! The data flow: the blocks that each operation reads, writes, allocates and frees.
//!
//! An operation is an outermost operator or backward node with everything that it calls. An
//! allocation or release outside all of them is an operation by itself. Blocks have versions: zero
//! when they are allocated, and one more after each write.

use mindprof_model::{Category, EventId, Nanos, Profile, ScopeKind, ThreadId};

use super::blocks::Blocks;
use super::schema::Schema;
use crate::analysis::Analysis;
use crate::tree::event_tree::Tree;

const NONE: u32 = u32::MAX;

/// The operations of a profile in start order, and the versions of its blocks.
#[derive(Debug, Default)]
pub(super) struct Flow {
    operations: Vec<Operation>,
    edges: Vec<Edge>,
    /// The position of each block's first version among all versions, with one more entry at the
    /// end.
    version_begins: Vec<u32>,
    /// By block, whether some operation uses it.
    touched: Vec<bool>,
    /// By memory record, the event that it belongs to.
    owners: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Operation {
    start: Nanos,
    is_backward: bool,
    first_edge: u32,
}

/// The relation of an operation to one block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) block: u32,
    /// The version that is read, or [`NONE`] if the operation allocates the block.
    input: u32,
    is_mutated: bool,
    is_deleted: bool,
    seen: Seen,
}

/// How the operators of an operation use a block, according to their schemas.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    written: bool,
    only_read: bool,
    unclear: bool,
}

impl Edge {
    fn new(block: u32, version: u32) -> Self {
        Self {
            block,
            input: version,
            is_mutated: false,
            is_deleted: false,
            seen: Seen::default(),
        }
    }

    fn is_made(&self) -> bool {
        self.input == NONE
    }

    /// Returns the version that the operation reads, or `None` if it allocates the block.
    pub(super) fn input(&self) -> Option<u32> {
        (!self.is_made()).then_some(self.input)
    }

    /// Returns the version that the operation produces, or `None` if it only reads or frees the
    /// block.
    pub(super) fn output(&self) -> Option<u32> {
        match (self.is_made(), self.is_deleted) {
            (true, false) => Some(0),
            (false, false) if self.is_mutated => Some(self.input + 1),
            _ => None,
        }
    }

    /// Returns whether the block was allocated and freed by the operation.
    pub(super) fn is_intermediate(&self) -> bool {
        self.is_made() && self.is_deleted
    }
}

/// One operation with its edges.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node<'a> {
    pub(super) start: Nanos,
    pub(super) is_backward: bool,
    pub(super) edges: &'a [Edge],
}

impl<'a> Node<'a> {
    /// Iterates over the blocks that are read, with their versions.
    pub(super) fn inputs(self) -> impl Iterator<Item = (u32, u32)> + 'a {
        let edges = self.edges.iter();
        edges.filter_map(|edge| Some((edge.block, edge.input()?)))
    }

    /// Iterates over the blocks that are allocated or written to, with their new versions.
    pub(super) fn outputs(self) -> impl Iterator<Item = (u32, u32)> + 'a {
        let edges = self.edges.iter();
        edges.filter_map(|edge| Some((edge.block, edge.output()?)))
    }

    /// Iterates over the existing blocks that are written to, with their old versions.
    pub(super) fn bumps(self) -> impl Iterator<Item = (u32, u32)> + 'a {
        let edges = self.edges.iter().filter(|edge| edge.is_mutated);
        edges.filter_map(|edge| Some((edge.block, edge.input()?)))
    }
}

impl Flow {
    pub(super) fn build(analysis: &Analysis, blocks: &Blocks) -> Self {
        let profile = analysis.profile();
        let schemas = Schemas::build(profile, blocks);
        let members = Members::build(profile, analysis.tree(), &schemas);
        let mut builder = Builder::new(profile, blocks, &schemas);
        for index in 0..members.starts.len() {
            builder.operation(&members, index);
        }
        builder.finish(members.owners)
    }

    pub(super) fn nodes(&self) -> impl DoubleEndedIterator<Item = Node<'_>> {
        (0..self.operations.len()).map(|index| self.node(index))
    }

    pub(super) fn len(&self) -> usize {
        self.operations.len()
    }

    pub(super) fn node(&self, index: usize) -> Node<'_> {
        let operation = &self.operations[index];
        let next = self.operations.get(index + 1);
        let end = next.map_or(self.edges.len(), |next| next.first_edge as usize);
        Node {
            start: operation.start,
            is_backward: operation.is_backward,
            edges: &self.edges[operation.first_edge as usize..end],
        }
    }

    /// Returns the position of a block's version among all versions of all blocks.
    pub(super) fn place(&self, block: u32, version: u32) -> usize {
        (self.version_begins[block as usize] + version) as usize
    }

    /// Returns the number of versions of all blocks together.
    pub(super) fn versions(&self) -> usize {
        self.version_begins
            .last()
            .map_or(0, |&count| count as usize)
    }

    pub(super) fn last_version(&self, block: u32) -> u32 {
        let [begin, end] = [0, 1].map(|next| self.version_begins[block as usize + next]);
        end - begin - 1
    }

    /// Returns whether some operation uses the block.
    pub(super) fn touches(&self, block: u32) -> bool {
        self.touched[block as usize]
    }

    /// Returns the event that a memory record belongs to: the operation around it, or else the
    /// innermost range.
    pub(super) fn owner(&self, record: u32) -> Option<EventId> {
        let owner = self.owners[record as usize];
        (owner != NONE).then(|| EventId::from_raw(owner))
    }
}

/// The schemas of events.
struct Schemas<'a> {
    profile: &'a Profile,
    blocks: &'a Blocks,
    of_names: Vec<Schema>,
}

impl<'a> Schemas<'a> {
    fn build(profile: &'a Profile, blocks: &'a Blocks) -> Self {
        Self {
            profile,
            blocks,
            of_names: profile.strings().iter().map(Schema::of).collect(),
        }
    }

    /// Returns the schema of the event at `index`. As in torch, an operator with an input without a
    /// storage has no schema, and the operators that it calls are considered instead.
    fn of(&self, index: usize) -> Schema {
        let tensors = self.blocks.inputs(index);
        if tensors.iter().all(|tensor| tensor.has_storage()) {
            self.of_names[self.profile.events()[index].name.index()]
        } else {
            Schema::None
        }
    }
}

/// The events and memory records of each operation.
struct Members {
    starts: Vec<Nanos>,
    are_backward: Vec<bool>,
    events: Grouped,
    records: Grouped,
    owners: Vec<u32>,
}

/// Numbers grouped by operation, in ascending order within each group.
struct Grouped {
    begins: Vec<u32>,
    numbers: Vec<u32>,
}

impl Grouped {
    fn build(groups: usize, operation_of: &[u32]) -> Self {
        let mut begins = vec![0_u32; groups + 1];
        let members = || {
            operation_of
                .iter()
                .enumerate()
                .filter(|(_, of)| **of != NONE)
        };
        for (_, &operation) in members() {
            begins[operation as usize + 1] += 1;
        }
        for index in 0..groups {
            begins[index + 1] += begins[index];
        }
        let mut next = begins.clone();
        let mut numbers = vec![0; begins[groups] as usize];
        for (number, &operation) in members() {
            let place = &mut next[operation as usize];
            numbers[*place as usize] = number as u32;
            *place += 1;
        }
        Self { begins, numbers }
    }

    fn of(&self, operation: usize) -> &[u32] {
        let [begin, end] = [0, 1].map(|next| self.begins[operation + next] as usize);
        &self.numbers[begin..end]
    }
}

impl Members {
    /// Finds the operations with one sweep over events and memory records, both in time order.
    ///
    /// ```text
    /// range        |---------------------------|
    /// operator a     |----------|                   operation 0: a, b and record x
    /// operator b        |----|
    /// records            x            y             operation 1: record y
    /// ```
    fn build(profile: &Profile, tree: &Tree, schemas: &Schemas<'_>) -> Self {
        let (mut starts, mut are_backward) = (Vec::new(), Vec::new());
        let mut of_events = vec![NONE; profile.events().len()];
        let mut of_records = vec![NONE; profile.memory().len()];
        let mut owners = vec![NONE; profile.memory().len()];
        let mut open = OpenEvents::new(profile);
        let mut next = 0;
        let mut records = profile.memory().iter().enumerate().peekable();
        loop {
            let event = profile.events().get(next);
            let is_before = |time: Nanos| event.is_none_or(|event| time < event.start);
            if let Some((index, record)) = records.next_if(|(_, record)| is_before(record.time)) {
                let found = open.at(record.thread, record.time);
                owners[index] = found.owner;
                of_records[index] = found.operation;
                if found.operation == NONE {
                    of_records[index] = starts.len() as u32;
                    starts.push(record.time);
                    are_backward.push(false);
                }
                continue;
            }
            let Some(event) = event else { break };
            let id = EventId::from_index(next);
            let from_parent = tree
                .parent(id)
                .map_or(NONE, |parent| of_events[parent.index()]);
            let is_operation = schemas.of(next).is_operation(event);
            of_events[next] = from_parent;
            if from_parent == NONE && is_operation && !tree.is_outside(id) {
                of_events[next] = starts.len() as u32;
                starts.push(event.start);
                are_backward.push(event.scope == ScopeKind::Backward);
            }
            if !tree.is_outside(id) {
                open.push(profile, next, of_events[next]);
            }
            next += 1;
        }
        Self {
            events: Grouped::build(starts.len(), &of_events),
            records: Grouped::build(starts.len(), &of_records),
            starts,
            are_backward,
            owners,
        }
    }
}

/// The events that are open on each thread at the current time of the sweep.
struct OpenEvents {
    threads: Vec<Vec<Open>>,
}

#[derive(Clone, Copy)]
struct Open {
    end: Nanos,
    operation: u32,
    /// The outermost event of the operation, or else the innermost range. Python function calls are
    /// skipped.
    owner: u32,
}

impl Open {
    const NONE: Self = Self {
        end: Nanos(u64::MAX),
        operation: NONE,
        owner: NONE,
    };
}

impl OpenEvents {
    fn new(profile: &Profile) -> Self {
        Self {
            threads: vec![Vec::new(); profile.threads().len()],
        }
    }

    fn push(&mut self, profile: &Profile, index: usize, operation: u32) {
        let event = &profile.events()[index];
        let outer = self.at(event.thread, event.start);
        let is_owner = match event.category {
            Category::PythonFunction => false,
            _ => operation == NONE || outer.operation == NONE,
        };
        self.threads[event.thread.index()].push(Open {
            end: event.end(),
            operation,
            owner: if is_owner { index as u32 } else { outer.owner },
        });
    }

    /// Returns the innermost open event, after closing those that have ended.
    fn at(&mut self, thread: ThreadId, time: Nanos) -> Open {
        let stack = &mut self.threads[thread.index()];
        while stack.pop_if(|open| open.end < time).is_some() {}
        stack.last().copied().unwrap_or(Open::NONE)
    }
}

/// Creates the edges, operation by operation in start order, and counts versions along the way.
struct Builder<'a> {
    profile: &'a Profile,
    blocks: &'a Blocks,
    schemas: &'a Schemas<'a>,
    flow: Flow,
    versions: Vec<u32>,
    /// By block, its most recent edge.
    last_edges: Vec<u32>,
}

impl<'a> Builder<'a> {
    fn new(profile: &'a Profile, blocks: &'a Blocks, schemas: &'a Schemas<'a>) -> Self {
        Self {
            profile,
            blocks,
            schemas,
            flow: Flow {
                touched: vec![false; blocks.len()],
                ..Flow::default()
            },
            versions: vec![0; blocks.len()],
            last_edges: vec![NONE; blocks.len()],
        }
    }

    fn operation(&mut self, members: &Members, index: usize) {
        let first_edge = self.flow.edges.len();
        for &event in members.events.of(index) {
            self.inputs(event as usize, first_edge);
        }
        for edge in &mut self.flow.edges[first_edge..] {
            // Without a schema the block may have been written to.
            edge.is_mutated = edge.seen.written || edge.seen.unclear && !edge.seen.only_read;
        }
        // Freeing a block reads it. Allocations come last, because the steps before treat every
        // block as an input.
        let records = members.records.of(index);
        self.records(records, first_edge, |edge, bytes| {
            if bytes < 0 {
                edge.is_deleted = true;
                edge.is_mutated = false;
            }
        });
        self.records(records, first_edge, |edge, bytes| {
            if bytes > 0 {
                edge.input = NONE;
            }
        });
        if self.flow.edges.len() == first_edge {
            return;
        }
        self.flow.edges[first_edge..].sort_unstable_by_key(|edge| edge.block);
        for edge in &self.flow.edges[first_edge..] {
            self.flow.touched[edge.block as usize] = true;
            if edge.is_mutated && !edge.is_made() {
                self.versions[edge.block as usize] += 1;
            }
        }
        self.flow.operations.push(Operation {
            start: members.starts[index],
            is_backward: members.are_backward[index],
            first_edge: first_edge as u32,
        });
    }

    fn inputs(&mut self, event: usize, first_edge: usize) {
        let schema = self.schemas.of(event);
        for input in self.blocks.inputs(event) {
            let Some(block) = input.block() else {
                continue;
            };
            let writes = schema.writes(input.place, input.arguments);
            let seen = &mut self.edge(block, first_edge).seen;
            match writes {
                Some(true) => seen.written = true,
                Some(false) => seen.only_read = true,
                None => seen.unclear = true,
            }
        }
    }

    fn records(
        &mut self,
        records: &[u32],
        first_edge: usize,
        mut change: impl FnMut(&mut Edge, i64),
    ) {
        for &record in records {
            let block = self.blocks.of_record(record as usize);
            // Memory in which no tensor was seen takes no part in the data flow.
            if self.blocks.holds_tensor(block) {
                let bytes = self.profile.memory().at(record as usize).bytes;
                change(self.edge(block, first_edge), bytes);
            }
        }
    }

    /// Returns the edge of a block in the operation whose edges begin at `first_edge`.
    fn edge(&mut self, block: u32, first_edge: usize) -> &mut Edge {
        let known = self.last_edges[block as usize];
        let is_of_this = known != NONE && known as usize >= first_edge;
        let place = if is_of_this {
            known as usize
        } else {
            let version = self.versions[block as usize];
            self.flow.edges.push(Edge::new(block, version));
            self.last_edges[block as usize] = self.flow.edges.len() as u32 - 1;
            self.flow.edges.len() - 1
        };
        &mut self.flow.edges[place]
    }

    fn finish(mut self, owners: Vec<u32>) -> Flow {
        let mut begin = 0;
        self.flow.version_begins.push(0);
        for version in self.versions {
            begin += version + 1;
            self.flow.version_begins.push(begin);
        }
        self.flow.owners = owners;
        self.flow
    }
}
