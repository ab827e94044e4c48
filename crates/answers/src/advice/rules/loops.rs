//! Loops in the user's own code that call small operators one by one.
//!
//! Operators that follow each other on a thread, all called by one function of the user's, are a
//! run. A run in which a few different operators come again and again is a loop.

use mindprof_model::{Category, EventId, Nanos, StackId, StringId, ThreadId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::advice::facts::{Facts, MODULE};
use crate::advice::rule::{Blame, Evidence, Mending, Outcome};

/// The least number of operators in a loop.
const LEAST: usize = 32;

/// The least number of times that a loop repeats its operators.
const REPEATED: usize = 4;

/// The mean time of an operator above which it does work that remains however it is called.
const SMALL: Nanos = Nanos(50_000);

/// The Python code between two operators of a loop takes at most this long. Longer gaps are other
/// work.
const GAP: Nanos = Nanos(20_000);

/// Before the results of a loop are put together, the time may be longer by this for each of them:
/// torch looks at every tensor of a list.
const GAP_OF_RESULT: Nanos = Nanos(1_000);

/// Modules of torch call operators on behalf of the user, who cannot change them.
const MODULES: &str = "torch/nn/modules/";

/// A loop of small operators.
#[derive(Debug)]
pub(in crate::advice) struct Loop {
    /// The function that the loop is in.
    pub(super) function: Option<StringId>,
    /// The operators outside of others, in time order.
    pub(super) operators: Vec<EventId>,
    /// The number of different operators, each at its own place.
    different: usize,
    /// The operator that puts the results of the loop together, if another function calls it: that
    /// around a list comprehension.
    collector: Option<EventId>,
}

impl Loop {
    /// Returns how many of its operators read numbers out of tensors.
    pub(super) fn reads(&self, facts: &Facts<'_>) -> usize {
        let is_read = |id: &&EventId| is_read(facts.name(**id));
        self.operators.iter().filter(is_read).count()
    }

    /// Returns whether it reads numbers out of tensors, as part of most of its rounds.
    pub(super) fn is_reading(&self, facts: &Facts<'_>) -> bool {
        self.reads(facts) * 8 >= self.operators.len()
    }
}

/// Returns whether an operator reads a number out of a tensor.
fn is_read(name: &str) -> bool {
    matches!(name, "aten::item" | "aten::_local_scalar_dense")
}

/// Returns whether an operator takes elements out of a tensor, to read them.
fn is_taken_apart(name: &str) -> bool {
    matches!(name, "aten::select" | "aten::unbind")
}

/// Returns whether an operator makes one tensor of a list of tensors.
fn collects(name: &str) -> bool {
    matches!(name, "aten::stack" | "aten::cat" | "aten::concat")
}

/// Returns the longest gap between a loop of some operators and the one that puts its results
/// together.
const fn gap_before_collector(operators: usize) -> Nanos {
    Nanos(GAP.0 + GAP_OF_RESULT.0 * operators as u64)
}

/// Returns the loops in the steps. The first rule that asks finds them.
pub(super) fn loops<'f>(facts: &'f Facts<'_>) -> &'f [Loop] {
    facts.loops.get_or_init(|| find(facts))
}

fn find(facts: &Facts<'_>) -> Vec<Loop> {
    let direct = direct_functions(facts);
    let is_read = facts.names(is_read);
    let is_part = facts.names(is_taken_apart);
    let is_collector = facts.names(collects);
    let mut runs: FxHashMap<ThreadId, Run> = FxHashMap::default();
    let mut found = Vec::new();
    for id in facts.outer_operators() {
        let event = facts.profile.event(id);
        let around = facts.around(id);
        let stack = facts.analysis.charged_stack(id);
        let name = event.name.index();
        let of = if around.is_loading || around.is_optimizer {
            None
        } else if stack == StackId::NONE {
            // Without stacks, only reads tell themselves from other operators.
            (is_read[name] || is_part[name]).then_some(None)
        } else {
            direct[stack.index()].map(Some)
        };
        let key = of.map(|function| (function, around.step));
        let run = runs.entry(event.thread).or_default();
        if run.key != key {
            found.extend(run.take(facts).map(|mut found| {
                let last = found.operators.last();
                let end = last.map(|&last| facts.profile.event(last).end());
                let longest = gap_before_collector(found.operators.len());
                let follows = end.is_some_and(|end| event.start.saturating_sub(end) <= longest);
                found.collector = (is_collector[name] && follows).then_some(id);
                found
            }));
            run.key = key;
        }
        if key.is_some() {
            run.operators.push(id);
        }
    }
    let mut left: Vec<(ThreadId, Run)> = runs.into_iter().collect();
    left.sort_unstable_by_key(|&(thread, _)| thread);
    found.extend(left.into_iter().filter_map(|(_, mut run)| run.take(facts)));
    found
}

/// Operators that follow each other on a thread.
#[derive(Default)]
struct Run {
    /// The function that calls them, and the step.
    key: Option<(Option<StringId>, u32)>,
    operators: Vec<EventId>,
}

impl Run {
    /// Ends the run. Returns it if it is a loop.
    fn take(&mut self, facts: &Facts<'_>) -> Option<Loop> {
        let operators = std::mem::take(&mut self.operators);
        let (function, _) = self.key?;
        if operators.len() < LEAST {
            return None;
        }
        let kind = |&id: &EventId| (facts.frames[id.index()], facts.profile.event(id).name);
        let different = operators.iter().map(kind).collect::<FxHashSet<_>>().len();
        let time: u64 = operators.iter().map(|&id| facts.duration(id).0).sum();
        let is_small = time <= SMALL.0 * operators.len() as u64;
        let is_loop = is_small && operators.len() >= REPEATED * different;
        is_loop.then_some(Loop {
            function,
            operators,
            different,
            collector: None,
        })
    }
}

/// Returns, by stack, the function of the user's that calls operators itself, and not through a
/// module of torch.
fn direct_functions(facts: &Facts<'_>) -> Vec<Option<StringId>> {
    let strings = facts.profile.strings();
    let is_module = facts.names(|name| name.starts_with(MODULE) || name.contains(MODULES));
    let is_own: Vec<bool> = strings
        .iter()
        .map(|name| facts.own.place(name).is_some())
        .collect();
    let mut functions: Vec<Option<StringId>> = vec![None];
    for (caller, frame) in facts.profile.stacks().nodes() {
        functions.push(if is_own[frame.index()] {
            facts.function_of(frame)
        } else if is_module[frame.index()] {
            None
        } else {
            functions[caller.index()]
        });
    }
    functions
}

/// Returns the loops of one function: of that with most operators that count, if there are any.
pub(super) fn of_one_function<'a>(
    loops: impl Iterator<Item = &'a Loop>,
    count: impl Fn(&Loop) -> usize,
) -> Option<(usize, Vec<&'a Loop>)> {
    let mut by_function: FxHashMap<_, Vec<&Loop>> = FxHashMap::default();
    for found in loops {
        by_function.entry(found.function).or_default().push(found);
    }
    let counted = by_function.into_iter().map(|(function, loops)| {
        let all: usize = loops.iter().map(|found| count(found)).sum();
        (all, function, loops)
    });
    let most = counted.max_by_key(|&(count, function, _)| (count, function));
    most.map(|(count, _, loops)| (count, loops))
}

/// Returns the finding that some loops should be whole tensors.
pub(super) fn found(facts: &Facts<'_>, loops: &[&Loop]) -> Outcome {
    let operators = (loops.iter()).flat_map(|found| found.operators.iter().chain(&found.collector));
    let events: Vec<EventId> = operators.copied().collect();
    let times = events.iter().map(|&id| (id, facts.duration(id)));
    Outcome::Found(Evidence {
        mending: whole(facts, loops),
        blame: facts.blamed(times).map(Blame::Frame),
        events,
        ..Evidence::default()
    })
}

/// Returns the effect of calling each different operator of some loops once, with whole tensors.
fn whole(facts: &Facts<'_>, loops: &[&Loop]) -> Mending {
    let is_collector = facts.names(collects);
    let mut mending = Mending::default();
    // By call around operators of a loop, the time that its own code spends between them, and what is
    // left of it.
    let mut between: FxHashMap<EventId, (u64, f64)> = FxHashMap::default();
    for found in loops {
        let factor = found.different as f64 / found.operators.len() as f64;
        let collector = found.collector.as_slice();
        let mut helpers = FxHashSet::default();
        let mut before: Option<EventId> = None;
        let mut results = 0;
        for &next in found.operators.iter().chain(collector) {
            let longest = if is_collector[facts.profile.event(next).name.index()] {
                gap_before_collector(std::mem::take(&mut results))
            } else {
                results += 1;
                GAP
            };
            let gap = before.and_then(|before| gap(facts, before, next, &mut helpers));
            before = Some(next);
            if let Some(Gap { around, time }) = gap {
                let time = time.min(longest).0;
                let (gaps, left) = between.entry(around).or_default();
                *gaps += time;
                *left += time as f64 * factor;
            }
        }
        let inside = facts.all_inside(&found.operators);
        for id in inside.into_iter().chain(facts.all_inside(collector)) {
            mending.scale(id, factor as f32);
            mending.unblock(id);
        }
        for &id in &helpers {
            mending.scale(id, factor as f32);
        }
    }
    for (call, (gaps, left)) in between {
        let own = facts.analysis.tree().self_time(call).0.max(1) as f64;
        let saved = (gaps as f64 - left).min(own);
        mending.scale(call, (1.0 - saved / own) as f32);
    }
    mending
}

/// The time between two operators of a loop, which is that of the code around both.
struct Gap {
    around: EventId,
    time: Nanos,
}

/// Returns the time between an operator of a loop and the next one, and adds the calls that began
/// between the two to `helpers` if they do little but call operators. There is no gap in a helper,
/// whose time is the loop's anyway, and none outside of all calls.
///
/// ```text
/// sample |------------------------------------------|    around the second gap
/// listcomp |-------------------|   |--------------|      around the first and the third
///           select     select        select   select
///                 gap 1       gap 2        gap 3
/// ```
fn gap(
    facts: &Facts<'_>,
    before: EventId,
    next: EventId,
    helpers: &mut FxHashSet<EventId>,
) -> Option<Gap> {
    let started = facts.profile.event(before).start;
    let mut begun = Vec::new();
    let (mut outer, mut around) = (next, facts.parent(next));
    while let Some(id) = around.filter(|&id| facts.profile.event(id).start > started) {
        let is_call = facts.profile.event(id).category == Category::PythonFunction;
        let is_short = facts.analysis.tree().self_time(id) <= SMALL;
        begun.extend((is_call && is_short).then_some(id));
        (outer, around) = (id, facts.parent(id));
    }
    helpers.extend(begun);
    let around = around.filter(|id| !helpers.contains(id))?;
    let mut ended = before;
    while let Some(id) = facts.parent(ended).filter(|&id| id != around) {
        ended = id;
    }
    let end = facts.profile.event(ended).end();
    let time = facts.profile.event(outer).start.saturating_sub(end);
    Some(Gap { around, time })
}
