//! Estimates the calls of a sampled recording from the stacks of its scopes and samples.
//!
//! The stack of a thread is known at the start of each scope, while a scope runs that calls
//! nothing, and at each sample. Between two known moments, frames that both have in common stay
//! open, and the others end and begin halfway. The result is calls that enclose the scopes they
//! made, as traced calls do. A call is named by the line that it is at, so a function that moves on
//! to another line becomes another call.
//!
//! ```text
//! known    main f@3   main f@3   main f@4 g@9   main f@4
//! main     |-------------------------------------------|
//! f@3      |----------------|
//! f@4                       |--------------------------|
//! g@9                       |-------------|
//! ```

use std::cmp::Reverse;

use mindprof_model::{
    Category, Event, EventBatch, Flags, Nanos, Part, StackId, StringId, ThreadId,
};

/// How far a known stack reaches into a longer time in which nothing is known.
const REACH: Nanos = Nanos(50_000_000);

/// How far it reaches before the first and after the last known moment.
const MARGIN: Nanos = Nanos(5_000_000);

/// A sample of a thread: a moment and its stack, as the part numbers it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownStack {
    pub(crate) time: Nanos,
    pub(crate) stack: StackId,
}

/// Adds the estimated calls of threads to a part that holds their scopes. `samples` holds the
/// samples of each thread in order; the window ends at `end`.
///
/// Takes time linear in the number of scopes, samples and estimated calls.
pub(crate) fn add_to(part: &mut Part, samples: Vec<(ThreadId, Vec<KnownStack>)>, end: Nanos) {
    let tree = Tree::of(part);
    let mut samples_of = vec![Vec::new(); part.threads().len()];
    for (thread, list) in samples {
        samples_of[thread.index()] = list;
    }
    let mut scopes_of: Vec<Vec<Item>> = vec![Vec::new(); part.threads().len()];
    for event in part.events() {
        scopes_of[event.thread.index()].extend(Item::of_scope(event));
    }
    let mut calls = Vec::new();
    for (index, (samples, scopes)) in samples_of.into_iter().zip(scopes_of).enumerate() {
        let thread = ThreadId::from_index(index);
        let items = merge(scopes, &samples);
        Estimate::new(&tree, thread, &mut calls).run(&items, end);
    }
    calls.retain(|call: &Event| call.duration > Nanos::ZERO);
    part.add_events(EventBatch::from(calls));
}

/// Something that is known of a thread: a scope, or a sample, which has no end.
#[derive(Clone, Copy, Debug)]
struct Item {
    start: Nanos,
    end: Option<Nanos>,
    /// The stack at the start, or `None` if it is unknown.
    stack: Option<StackId>,
}

impl Item {
    /// Returns the item of a scope, unless it does not enclose what its thread does meanwhile.
    fn of_scope(event: &Event) -> Option<Self> {
        let is_scope = event.category != Category::PythonFunction
            && !event.flags.contains(Flags::ASYNC)
            && !event.flags.contains(Flags::INSTANT);
        is_scope.then(|| Self {
            start: event.start,
            end: Some(event.end()),
            stack: (event.stack != StackId::NONE).then_some(event.stack),
        })
    }
}

/// Merges scopes and samples into one list in start order. If starts are equal, the longer scope
/// comes first and samples come last.
fn merge(mut items: Vec<Item>, samples: &[KnownStack]) -> Vec<Item> {
    items.extend(samples.iter().map(|sample| Item {
        start: sample.time,
        end: None,
        stack: Some(sample.stack),
    }));
    // Two sorted runs: the sort merges them.
    items.sort_by_key(|item| (item.start, Reverse(item.end)));
    items
}

/// The tree of stacks, with the depth of each.
struct Tree {
    nodes: Vec<(StackId, StringId)>,
    depths: Vec<u32>,
}

impl Tree {
    fn of(part: &Part) -> Self {
        let mut nodes = vec![(StackId::NONE, StringId::from_raw(0))];
        let mut depths = vec![0];
        for (caller, frame) in part.stacks.nodes() {
            nodes.push((caller, frame));
            depths.push(depths[caller.index()] + 1);
        }
        Self { nodes, depths }
    }

    fn depth(&self, stack: StackId) -> usize {
        self.depths[stack.index()] as usize
    }

    fn caller(&self, stack: StackId) -> StackId {
        self.nodes[stack.index()].0
    }

    /// Returns the frames that two stacks have in common from the outermost on.
    fn common(&self, mut a: StackId, mut b: StackId) -> StackId {
        while a != b {
            if self.depth(a) >= self.depth(b) {
                a = self.caller(a);
            } else {
                b = self.caller(b);
            }
        }
        a
    }
}

/// Returns for each scope the frames that are open during all of it: what the stacks of everything
/// known within it have in common. `None` if nothing is known.
fn floors(tree: &Tree, items: &[Item]) -> Vec<Option<StackId>> {
    let meet = |a: Option<StackId>, b: Option<StackId>| match (a, b) {
        (Some(a), Some(b)) => Some(tree.common(a, b)),
        (known, None) | (None, known) => known,
    };
    let mut floors: Vec<Option<StackId>> = items.iter().map(|item| item.stack).collect();
    let mut around: Vec<(Nanos, usize)> = Vec::new();
    let leave = |around: &mut Vec<(Nanos, usize)>, floors: &mut Vec<Option<StackId>>, now| {
        while let Some((_, left)) = around.pop_if(|(end, _)| *end <= now) {
            if let Some(&(_, outer)) = around.last() {
                floors[outer] = meet(floors[outer], floors[left]);
            }
        }
    };
    for (index, item) in items.iter().enumerate() {
        leave(&mut around, &mut floors, item.start);
        let outer = around.last().copied();
        match (item.end, outer) {
            // A scope that outlives the one around it is taken to end with it.
            (Some(end), Some((latest, _))) => around.push((end.min(latest), index)),
            (Some(end), None) => around.push((end, index)),
            (None, Some((_, outer))) => floors[outer] = meet(floors[outer], item.stack),
            (None, None) => {}
        }
    }
    leave(&mut around, &mut floors, Nanos(u64::MAX));
    floors
}

/// The estimate of one thread: the calls that are open, and those that have ended.
struct Estimate<'a> {
    tree: &'a Tree,
    thread: ThreadId,
    /// The stacks of the open calls, outermost first, with their positions among `calls`.
    open: Vec<(StackId, usize)>,
    /// The last moment at which the open calls are known to be the thread's stack.
    known_until: Nanos,
    calls: &'a mut Vec<Event>,
}

impl<'a> Estimate<'a> {
    fn new(tree: &'a Tree, thread: ThreadId, calls: &'a mut Vec<Event>) -> Self {
        Self {
            tree,
            thread,
            open: Vec::new(),
            known_until: Nanos::ZERO,
            calls,
        }
    }

    fn run(mut self, items: &[Item], window_end: Nanos) {
        let Some(first) = items.first() else { return };
        self.known_until = first.start.saturating_sub(MARGIN).saturating_sub(MARGIN);
        let floors = floors(self.tree, items);
        let mut around: Vec<(Nanos, Option<StackId>)> = Vec::new();
        for (item, floor) in items.iter().zip(floors) {
            while let Some((end, floor)) = around.pop_if(|(end, _)| *end <= item.start) {
                self.leave(end, floor);
            }
            let Some(end) = item.end else {
                self.switch(item.stack.unwrap_or(StackId::NONE), item.start);
                continue;
            };
            if let Some(floor) = floor {
                self.switch(floor, item.start);
            }
            self.known_until = item.start;
            let latest = around.last().map_or(end, |&(latest, _)| end.min(latest));
            around.push((latest, floor));
            if let (Some(stack), true) = (item.stack, floor != item.stack) {
                self.switch(stack, item.start);
            }
        }
        while let Some((end, floor)) = around.pop() {
            self.leave(end, floor);
        }
        let last = (self.known_until + MARGIN).min(window_end);
        self.close_to(0, last.max(self.known_until));
    }

    /// Changes the open calls to `stack`, which is known to be the thread's at a later moment.
    fn switch(&mut self, stack: StackId, known_at: Nanos) {
        let current = self.open.last().map_or(StackId::NONE, |&(stack, _)| stack);
        if stack != current {
            let gap = known_at.saturating_sub(self.known_until);
            let reach = Nanos(gap.0 / 2).min(REACH);
            let common = self.tree.depth(self.tree.common(current, stack));
            self.close_to(common, self.known_until + reach);
            self.open_to(stack, known_at.saturating_sub(reach));
        }
        self.known_until = self.known_until.max(known_at);
    }

    /// Ends the calls that were made within a scope, which ends too.
    fn leave(&mut self, end: Nanos, floor: Option<StackId>) {
        if let Some(floor) = floor {
            self.close_to(self.tree.depth(floor), end);
        }
        self.known_until = self.known_until.max(end);
    }

    fn close_to(&mut self, depth: usize, end: Nanos) {
        for (_, index) in self.open.drain(depth.min(self.open.len())..) {
            let call = &mut self.calls[index];
            call.duration = end.saturating_sub(call.start);
        }
    }

    fn open_to(&mut self, stack: StackId, start: Nanos) {
        let mut missing = Vec::new();
        let mut at = stack;
        while self.tree.depth(at) > self.open.len() {
            missing.push(at);
            at = self.tree.caller(at);
        }
        for stack in missing.into_iter().rev() {
            let (caller, frame) = self.tree.nodes[stack.index()];
            let mut call = Event::new(
                Category::PythonFunction,
                frame,
                self.thread,
                start,
                Nanos::ZERO,
            );
            call.stack = caller;
            self.open.push((stack, self.calls.len()));
            self.calls.push(call);
        }
    }
}

#[cfg(test)]
mod tests;
