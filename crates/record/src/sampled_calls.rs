//! Estimates the calls of a sampled recording from the stacks of its scopes and samples.
//!
//! The stack of a thread is known while a scope runs, but a scope says nothing about the time
//! between two of them: a loop may do anything there. The samples in such a gap fill it, each up to
//! halfway to the next. A gap without a sample gets the stack of a sample from another gap of its
//! kind: between scopes with the same stacks, or else with the same functions. The gaps of one kind
//! take turns with its samples, so that shares of time follow the samples. If there is none, or if
//! the gap is short, only the functions that the stacks around it have in common are open.
//!
//! The result is calls that enclose the scopes they made, as traced calls do. A call is named by the
//! line that it is at, so a function that moves on to another line becomes another call.
//!
//! ```text
//! scopes           aten::add            aten::add            aten::add
//! known    main    main f@3   sample    main f@3             main f@3
//! main     |---------------------------------------------------------|
//! f@3              |-------|            |-------|            |-------|
//! f@2                      |------------|       |------------|          the sample, and its substitute
//! ```

use std::cmp::Reverse;

use mindprof_model::{
    Category, Event, EventBatch, Flags, Nanos, Part, Place, StackId, StringId, ThreadId,
    WAITING_FRAME,
};
use rustc_hash::FxHashMap;

/// How far a known stack reaches into a longer time in which nothing is known.
const REACH: Nanos = Nanos(50_000_000);

/// How far it reaches before the first and after the last known moment.
const MARGIN: Nanos = Nanos(5_000_000);

/// The shortest gap between scopes that gets the stack of another gap of its kind.
const SHORTEST_SUBSTITUTED: Nanos = Nanos(20_000);

/// The number of calls that an estimate keeps. Deep stacks that change with every scope would become
/// many more, of which each is shorter than what samples can tell.
const MOST_CALLS: usize = 1 << 20;

/// A sample of a thread: a moment and its stack, as the part numbers it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownStack {
    pub(crate) time: Nanos,
    pub(crate) stack: StackId,
}

/// Adds the estimated calls of threads to a part that holds their scopes. `samples` holds the
/// samples of each thread in order; the window ends at `end`. If there are more than
/// [`MOST_CALLS`], the shortest are left out, and their time is that of their callers.
///
/// Takes time linear in the number of scopes, samples and estimated calls.
pub(crate) fn add_to(part: &mut Part, samples: Vec<(ThreadId, Vec<KnownStack>)>, end: Nanos) {
    add_at_most(part, samples, end, MOST_CALLS);
}

fn add_at_most(
    part: &mut Part,
    samples: Vec<(ThreadId, Vec<KnownStack>)>,
    end: Nanos,
    most: usize,
) {
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
        let mut items = merge(scopes, &samples);
        leave_out_waits_of_operators(&tree, &mut items);
        Estimate::new(&tree, thread, &mut calls, most).run(&items, end);
    }
    leave_out_shortest(&mut calls, &mut [], most);
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
    is_operator: bool,
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
            is_operator: event.category == Category::Operator,
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
        is_operator: false,
    }));
    // Two sorted runs: the sort merges them.
    items.sort_by_key(|item| (item.start, Reverse(item.end)));
    items
}

/// Removes the frame of a wait from samples within operators: the operator waits itself, for its own
/// threads or for a device, and its time is measured.
fn leave_out_waits_of_operators(tree: &Tree, items: &mut [Item]) {
    let mut around: Vec<(Nanos, Item)> = Vec::new();
    for item in items {
        while around.pop_if(|(end, _)| *end <= item.start).is_some() {}
        if let Some(end) = item.end {
            around.push((end, *item));
            continue;
        }
        let Some((_, operator)) = around.last().filter(|(_, outer)| outer.is_operator) else {
            continue;
        };
        let caller = item.stack.filter(|&stack| tree.is_wait(stack));
        let caller = caller.map(|stack| tree.caller(stack));
        if caller.is_some() && (operator.stack.is_none() || operator.stack == caller) {
            item.stack = caller;
        }
    }
}

/// The tree of stacks, with the depth and the functions of each.
struct Tree {
    nodes: Vec<(StackId, StringId)>,
    depths: Vec<u32>,
    /// By stack, the number of its innermost function, whatever line that is at.
    functions: Vec<u32>,
    /// By stack, the number of all its functions in order, whatever lines they are at.
    paths: Vec<u32>,
    /// The frame of a wait, if any stack has one.
    waiting: Option<StringId>,
}

impl Tree {
    fn of(part: &Part) -> Self {
        let mut tree = Self {
            nodes: vec![(StackId::NONE, StringId::from_raw(0))],
            depths: vec![0],
            functions: vec![0],
            paths: vec![0],
            waiting: (part.strings.iter())
                .position(|text| text == WAITING_FRAME)
                .map(|index| StringId::from_raw(index as u32)),
        };
        let functions = functions(part);
        let mut paths: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        for (caller, frame) in part.stacks.nodes() {
            let function = functions[frame.index()];
            let next = paths.len() as u32 + 1;
            let path = *(paths.entry((tree.paths[caller.index()], function))).or_insert(next);
            tree.nodes.push((caller, frame));
            tree.depths.push(tree.depths[caller.index()] + 1);
            tree.functions.push(function);
            tree.paths.push(path);
        }
        tree
    }

    fn depth(&self, stack: StackId) -> usize {
        self.depths[stack.index()] as usize
    }

    /// Returns whether the innermost frame of a stack is that of a wait.
    fn is_wait(&self, stack: StackId) -> bool {
        stack != StackId::NONE && Some(self.nodes[stack.index()].1) == self.waiting
    }

    fn caller(&self, stack: StackId) -> StackId {
        self.nodes[stack.index()].0
    }

    /// Returns the frames of `a` whose functions two stacks have in common from the outermost on. A
    /// function that only moved on to another line is common to both.
    fn common_functions(&self, mut a: StackId, mut b: StackId) -> StackId {
        while self.paths[a.index()] != self.paths[b.index()] {
            if self.depth(a) >= self.depth(b) {
                a = self.caller(a);
            } else {
                b = self.caller(b);
            }
        }
        a
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

/// Returns for each frame the number of its function: frames of one file and function name share it.
fn functions(part: &Part) -> Vec<u32> {
    let mut numbers: FxHashMap<(&str, &str), u32> = FxHashMap::default();
    let frames = part.strings.iter().map(|text| {
        let place = Place::parse(text);
        let key = place.map_or((text, ""), |place| (place.file, place.function));
        let next = numbers.len() as u32 + 1;
        *numbers.entry(key).or_insert(next)
    });
    frames.collect()
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

/// A moment at which a scope begins or ends, or a sample.
#[derive(Clone, Copy, Debug)]
enum Edge {
    /// A scope begins within the calls of `floor`, at `stack`.
    Enter {
        floor: Option<StackId>,
        stack: Option<StackId>,
    },
    /// A scope ends.
    Leave {
        floor: Option<StackId>,
    },
    Sample(StackId),
}

/// Returns the edges of all items in order of time.
fn edges(items: &[Item], floors: &[Option<StackId>]) -> Vec<(Nanos, Edge)> {
    let mut edges = Vec::with_capacity(2 * items.len());
    let mut around: Vec<(Nanos, Option<StackId>)> = Vec::new();
    for (item, &floor) in items.iter().zip(floors) {
        while let Some((end, floor)) = around.pop_if(|(end, _)| *end <= item.start) {
            edges.push((end, Edge::Leave { floor }));
        }
        let Some(end) = item.end else {
            edges.extend(item.stack.map(|stack| (item.start, Edge::Sample(stack))));
            continue;
        };
        let stack = item.stack;
        edges.push((item.start, Edge::Enter { floor, stack }));
        let latest = around.last().map_or(end, |&(latest, _)| end.min(latest));
        around.push((latest, floor));
    }
    while let Some((end, floor)) = around.pop() {
        edges.push((end, Edge::Leave { floor }));
    }
    edges
}

/// The kind of a gap between two edges of scopes: the stacks before and after it, and whether it is
/// the whole inside of one scope. A loop passes through gaps of one kind again and again.
type GapKind = (Option<StackId>, Option<StackId>, bool);

/// The samples in gaps of each kind, which stand for gaps of the kind that no sample fell into.
///
/// A program with many lines or deep recursion has more kinds of gaps than samples. So kinds are also
/// taken together if the functions around them are the same, and then if only the innermost are.
struct Substitutes<'a> {
    tree: &'a Tree,
    by_kind: FxHashMap<[u32; 4], (Vec<StackId>, usize)>,
}

/// The things that gaps of one kind have in common, the closest likeness first.
#[derive(Clone, Copy)]
enum Likeness {
    Stacks,
    Functions,
    InnermostFunctions,
}

impl Likeness {
    const ALL: [Self; 3] = [Self::Stacks, Self::Functions, Self::InnermostFunctions];
}

impl Substitutes<'_> {
    fn key(&self, likeness: Likeness, (left, right, is_inside): GapKind) -> [u32; 4] {
        let number = |stack: Option<StackId>| {
            stack.map_or(u32::MAX, |stack| match likeness {
                Likeness::Stacks => stack.to_raw(),
                Likeness::Functions => self.tree.paths[stack.index()],
                Likeness::InnermostFunctions => self.tree.functions[stack.index()],
            })
        };
        let (left, right) = (number(left), number(right));
        [likeness as u32, left, right, u32::from(is_inside)]
    }

    fn add(&mut self, kind: GapKind, stack: StackId) {
        for likeness in Likeness::ALL {
            let key = self.key(likeness, kind);
            self.by_kind.entry(key).or_default().0.push(stack);
        }
    }

    /// Returns the next sample in turn for a gap of a kind, within the calls of `floor`.
    fn next(&mut self, kind: GapKind, floor: StackId) -> Option<StackId> {
        Likeness::ALL.into_iter().find_map(|likeness| {
            let key = self.key(likeness, kind);
            let (stacks, turn) = self.by_kind.get_mut(&key)?;
            let stack = stacks[*turn % stacks.len()];
            *turn += 1;
            (self.tree.common(stack, floor) == floor).then_some(stack)
        })
    }
}

/// Calls `visit` with each gap between two edges of scopes: its kind, its begin and end, and the
/// samples in it. The first gap has no begin, and the last no end.
fn each_gap(
    edges: &[(Nanos, Edge)],
    mut visit: impl FnMut(GapKind, Option<(Nanos, Edge)>, &[(Nanos, Edge)], Option<(Nanos, Edge)>),
) {
    let is_sample = |edge: &Edge| matches!(edge, Edge::Sample(_));
    let mut before: Option<(Nanos, Edge)> = None;
    let mut first = 0;
    for index in 0..=edges.len() {
        let after = edges.get(index).copied();
        if after.is_some_and(|(_, edge)| is_sample(&edge)) {
            continue;
        }
        let left = before.and_then(|(_, edge)| match edge {
            Edge::Enter { floor, stack } => stack.or(floor),
            Edge::Leave { floor } => floor,
            Edge::Sample(stack) => Some(stack),
        });
        let right = after.and_then(|(_, edge)| match edge {
            Edge::Enter { stack, .. } => stack,
            Edge::Leave { floor } => floor,
            Edge::Sample(stack) => Some(stack),
        });
        let is_inside = matches!(before, Some((_, Edge::Enter { .. })))
            && matches!(after, Some((_, Edge::Leave { .. })));
        visit(
            (left, right, is_inside),
            before,
            &edges[first..index],
            after,
        );
        before = after;
        first = index + 1;
    }
}

/// Leaves out the shortest calls, so that at most `most` remain beside those that are `open`, whose
/// positions among the calls are updated. A call is never longer than its caller, so what remains
/// is still nested.
fn leave_out_shortest(calls: &mut Vec<Event>, open: &mut [(StackId, usize)], most: usize) {
    if calls.len() <= most {
        return;
    }
    for (_, position) in open.iter() {
        calls[*position].duration = Nanos(u64::MAX);
    }
    let mut durations: Vec<Nanos> = calls.iter().map(|call| call.duration).collect();
    let (_, &mut least, _) =
        durations.select_nth_unstable_by_key(most, |&longest| Reverse(longest));
    // A position moves by the number of calls that are left out before it.
    let mut remaining = 0;
    let mut next = open.iter_mut().peekable();
    for (position, call) in calls.iter().enumerate() {
        if let Some((_, own)) = next.next_if(|(_, own)| *own == position) {
            *own = remaining;
        }
        remaining += usize::from(call.duration > least || call.duration.0 == u64::MAX);
    }
    calls.retain(|call| call.duration > least || call.duration.0 == u64::MAX);
    for (_, position) in open.iter() {
        calls[*position].duration = Nanos::ZERO;
    }
}

/// The estimate of one thread: the calls that are open, and those that have ended.
struct Estimate<'a> {
    tree: &'a Tree,
    thread: ThreadId,
    /// The stacks of the open calls, outermost first, with their positions among `calls`.
    open: Vec<(StackId, usize)>,
    /// The frames that stay open until the innermost scope ends, by scope.
    floors: Vec<Option<StackId>>,
    calls: &'a mut Vec<Event>,
    /// The number of calls to keep.
    most: usize,
}

impl<'a> Estimate<'a> {
    fn new(tree: &'a Tree, thread: ThreadId, calls: &'a mut Vec<Event>, most: usize) -> Self {
        Self {
            tree,
            thread,
            open: Vec::new(),
            floors: Vec::new(),
            calls,
            most,
        }
    }

    fn run(mut self, items: &[Item], window_end: Nanos) {
        let edges = edges(items, &floors(self.tree, items));
        let mut substitutes = Substitutes {
            tree: self.tree,
            by_kind: FxHashMap::default(),
        };
        each_gap(&edges, |kind, _, samples, _| {
            for (_, edge) in samples {
                if let Edge::Sample(stack) = edge {
                    substitutes.add(kind, *stack);
                }
            }
        });
        each_gap(&edges, |kind, before, samples, after| {
            let begin = before.map(|(time, _)| time);
            let end = after.map(|(time, _)| time);
            if samples.is_empty() {
                self.pass_gap(kind, begin, end, &mut substitutes);
            } else {
                self.fill_gap(begin, samples, end, window_end);
            }
            if let Some((time, edge)) = after {
                self.pass_edge(time, edge);
            }
        });
        let last = edges.last().map_or(Nanos::ZERO, |&(time, _)| time);
        self.close_to(0, last);
    }

    /// Fills a gap with the stacks of its samples. Each reaches halfway to its neighbours, and to
    /// the edges of the gap.
    fn fill_gap(
        &mut self,
        begin: Option<Nanos>,
        samples: &[(Nanos, Edge)],
        end: Option<Nanos>,
        window_end: Nanos,
    ) {
        let first = samples[0].0;
        let mut open_at = match begin {
            Some(begin) => begin.max(first.saturating_sub(REACH)),
            None => first.saturating_sub(MARGIN),
        };
        let mut close_at = begin.unwrap_or(open_at);
        for (index, &(time, edge)) in samples.iter().enumerate() {
            if let Edge::Sample(stack) = edge {
                self.change(stack, close_at, open_at);
            }
            let next = samples.get(index + 1).map(|&(next, _)| next);
            let reach = match next {
                Some(next) => Nanos((next - time).0 / 2).min(REACH),
                None => REACH,
            };
            close_at = time + reach;
            open_at = next.map_or(close_at, |next| next.saturating_sub(reach));
        }
        // The edge after the gap closes what it does not share, unless that is far away.
        if end.is_none_or(|end| close_at < end) {
            let floor = self.tree.depth(self.floor());
            let last = samples[samples.len() - 1].0;
            let close_at = if end.is_some() {
                close_at
            } else {
                last + MARGIN
            };
            self.close_to(floor, close_at.min(window_end).max(last));
        }
    }

    /// Passes a gap without samples: with the stack of another gap of its kind if it is long, and
    /// otherwise with the frames that the stacks around it have in common.
    fn pass_gap(
        &mut self,
        kind: GapKind,
        begin: Option<Nanos>,
        end: Option<Nanos>,
        substitutes: &mut Substitutes<'_>,
    ) {
        let (Some(begin), Some(end)) = (begin, end) else {
            return;
        };
        let floor = self.floor();
        let length = end.saturating_sub(begin);
        if (SHORTEST_SUBSTITUTED..=REACH).contains(&length)
            && let Some(stack) = substitutes.next(kind, floor)
        {
            self.change(stack, begin, begin);
            return;
        }
        if let (Some(left), Some(right), _) = kind {
            let common = self.tree.common_functions(left, right);
            let depth = self.tree.depth(common).max(self.tree.depth(floor));
            self.close_to(depth, begin);
        }
    }

    fn pass_edge(&mut self, time: Nanos, edge: Edge) {
        match edge {
            Edge::Enter { floor, stack } => {
                if let Some(floor) = floor {
                    self.change(floor, time, time);
                }
                self.floors.push(floor.or_else(|| Some(self.current())));
                if let (Some(stack), true) = (stack, floor != stack) {
                    self.change(stack, time, time);
                }
            }
            Edge::Leave { .. } => {
                let floor = self.floors.pop().flatten();
                if let Some(floor) = floor {
                    self.close_to(self.tree.depth(floor), time);
                }
            }
            Edge::Sample(_) => {}
        }
    }

    fn current(&self) -> StackId {
        self.open.last().map_or(StackId::NONE, |&(stack, _)| stack)
    }

    /// Returns the frames that stay open until the innermost scope ends.
    fn floor(&self) -> StackId {
        self.floors
            .last()
            .copied()
            .flatten()
            .unwrap_or(StackId::NONE)
    }

    /// Changes the open calls to `stack`: ends those that it does not have, and begins the others.
    fn change(&mut self, stack: StackId, close_at: Nanos, open_at: Nanos) {
        let current = self.current();
        if stack != current {
            let common = self.tree.depth(self.tree.common(current, stack));
            self.close_to(common, close_at);
            self.open_to(stack, open_at);
        }
    }

    fn close_to(&mut self, depth: usize, end: Nanos) {
        for (_, index) in self.open.drain(depth.min(self.open.len())..) {
            let call = &mut self.calls[index];
            call.duration = end.saturating_sub(call.start);
        }
    }

    fn open_to(&mut self, stack: StackId, start: Nanos) {
        // Twice as many, so that the time of leaving some out is shared by as many new ones.
        if self.calls.len() > 2 * self.most {
            leave_out_shortest(self.calls, &mut self.open, self.most);
        }
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
