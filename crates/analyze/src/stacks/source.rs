//! The stack to show for each event, and which of its frames to show.
//!
//! A backward node is called by the autograd engine, so its own stack is of no use. It shows the
//! stack of the forward operator that it belongs to.

use mindprof_model::{Category, Event, EventId, Profile, ScopeKind, StackId, StringId};
use rustc_hash::FxHashMap;

use crate::links::correlate::Correlation;
use crate::links::flows::is_backward;
use crate::links::forward::Forwards;
use crate::tree::event_tree::Tree;

#[cfg(test)]
mod tests;

/// Frames that contain both texts of a pair belong to the framework and are not shown, as in torch.
const OWN_FRAMES: [(&str, &str); 6] = [
    ("autograd/__init__", "_make_grads"),
    ("autograd/__init__", "backward"),
    ("torch/tensor", "backward"),
    ("_internal/common_utils", "prof_callable"),
    ("_internal/common_utils", "prof_func_call"),
    ("_internal/common_utils", "prof_meth_call"),
];

/// Returns whether a frame is shown, that is, not internal to the framework.
pub fn is_shown_frame(frame: &str) -> bool {
    !OWN_FRAMES
        .iter()
        .any(|(file, function)| frame.contains(file) && frame.contains(function))
}

/// The stack to show for each event.
///
/// Only some events are recorded with a stack: kernels, runtime calls and backward nodes get theirs
/// from the events that caused them. [`crate::Analysis::stack`] builds this table on first use. It
/// is empty if every event shows its own stack.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    stacks: Vec<StackId>,
}

/// How backward nodes get their stacks.
struct Rule {
    /// Whether an event is a backward node.
    is_node: fn(&Profile, &Event) -> bool,
    /// Picks the stack of an earlier or a later forward operator with one sequence number.
    choose: fn(StackId, StackId) -> StackId,
    /// Whether a node without a sequence number takes the stack of the node before it.
    do_unnumbered_follow: bool,
    /// Whether what Python code inside a node calls keeps its own stack.
    keeps_python: bool,
}

/// Part of the names of the frames in which a thread runs the engine.
const ENGINE: &str = "run_backward";

impl Sources {
    /// Finds the stacks. Events inside a backward node take the stack of the first forward event
    /// with the same sequence number and thread.
    ///
    /// ```text
    /// linear       |-----|                      sequence 7, stack train.py(12)
    ///   t            |-|                        sequence 7, stack linear.py(3): not the first
    /// TBackward0               |-------|        sequence 7, backward: shows train.py(12)
    ///   aten::t                  |--|           inside it: shows train.py(12)
    /// ```
    pub(crate) fn build(profile: &Profile, tree: &Tree, correlation: &Correlation) -> Self {
        let rule = Rule {
            is_node: |_, event| event.scope == ScopeKind::Backward,
            choose: |first, _| first,
            do_unnumbered_follow: false,
            keeps_python: false,
        };
        Self::by(&rule, profile, tree, correlation)
    }

    /// Finds the stacks, with those of the operators that made the backward nodes.
    ///
    /// Every operator carries the number of the next node, but only the one that makes the node
    /// raises it. So the last operator with a number, or one that it runs in, made the node;
    /// earlier ones are innocent:
    ///
    /// ```text
    /// select       |--|                        sequence 7, stack data.py(30): makes no node
    /// convolution        |-----|               sequence 7, stack train.py(12): makes it
    /// ConvolutionBackward0         |-------|   sequence 7, backward: belongs to train.py(12)
    /// AccumulateGrad                         |-|   no number: belongs to train.py(12) too
    /// ```
    ///
    /// A node that adds a gradient to a parameter has no number and no forward operator. The engine
    /// runs it right after the node that computed the gradient, so it shares the stack of that node.
    ///
    /// Python code may run inside a node: the `backward` of an `autograd.Function`, or a hook of a
    /// gradient. Its calls are charged to its lines.
    pub(crate) fn build_of_makers(
        profile: &Profile,
        tree: &Tree,
        correlation: &Correlation,
    ) -> Self {
        let rule = Rule {
            // The wrappers around nodes carry their numbers, and are no forward operators.
            is_node: is_backward,
            choose: |earlier, later| match later {
                StackId::NONE => earlier,
                later => later,
            },
            do_unnumbered_follow: true,
            keeps_python: true,
        };
        Self::by(&rule, profile, tree, correlation)
    }

    fn by(rule: &Rule, profile: &Profile, tree: &Tree, correlation: &Correlation) -> Self {
        if profile.stacks().is_empty() || profile.events().iter().all(shows_its_own) {
            return Self::default();
        }
        let backward = backward_parents(profile, tree, rule.is_node);
        let own = own_stacks(profile, tree, correlation);
        let mut forwards: Forwards<StackId> = Forwards::default();
        // By thread, the stack of the backward node that began last, until a forward operator runs.
        let mut latest = vec![StackId::NONE; profile.threads().len()];
        let mut stacks = own.clone();
        let in_python = rule.keeps_python.then(|| PythonInNodes::build(profile));
        let keeps = |event: &Event, stack: StackId, node: EventId| {
            let in_python = in_python.as_ref();
            in_python.is_some_and(|found| found.has(event, stack, own[node.index()]))
        };
        for (index, event) in profile.events().iter().enumerate() {
            match backward[index] {
                Some(node) if node.index() != index && keeps(event, own[index], node) => {}
                // Nodes precede the events inside them.
                Some(node) if node.index() != index => stacks[index] = stacks[node.index()],
                Some(node) => {
                    let latest = &mut latest[event.thread.index()];
                    let (_, stack) = forwards.find(profile, node);
                    if !(rule.do_unnumbered_follow && event.sequence().is_none()) {
                        *latest = stack.unwrap_or(StackId::NONE);
                    }
                    stacks[index] = *latest;
                }
                None => {
                    if let Some(sequence) = event.sequence() {
                        let (place, own) = ((event.thread, sequence), stacks[index]);
                        forwards.add(profile, place, own, rule.choose);
                        latest[event.thread.index()] = StackId::NONE;
                    }
                }
            }
        }
        Self { stacks }
    }

    /// Returns the stack to show for an event.
    pub(crate) fn stack(&self, profile: &Profile, id: EventId) -> StackId {
        match self.stacks.get(id.index()) {
            Some(&stack) => stack,
            None => profile.event(id).stack,
        }
    }
}

/// The Python code that runs inside backward nodes.
///
/// The engine calls it, so that its frames follow those of the node:
///
/// ```text
/// node     main.py(9) > _engine_run_backward
///   mul    main.py(9) > _engine_run_backward                     the node's own work
///   norm   main.py(9) > _engine_run_backward > main.py(3): hook  called by Python code
/// ```
///
/// A thread of the engine's own has no frames but those of such code.
struct PythonInNodes {
    /// By name, whether it is a frame of the engine's.
    is_engine: Vec<bool>,
    /// By stack, its innermost frame and the stack that it was called from.
    nodes: Vec<Option<(StackId, StringId)>>,
}

impl PythonInNodes {
    fn build(profile: &Profile) -> Self {
        let names = profile.strings().iter();
        let nodes = profile.stacks().nodes().map(Some);
        Self {
            is_engine: names.map(|name| name.contains(ENGINE)).collect(),
            nodes: std::iter::once(None).chain(nodes).collect(),
        }
    }

    /// Returns whether an event with this stack, inside a node with that one, is Python code or was
    /// called by it.
    fn has(&self, event: &Event, stack: StackId, node: StackId) -> bool {
        let innermost = if event.category == Category::PythonFunction {
            Some(event.name)
        } else {
            let called = self.nodes[stack.index()].filter(|_| stack != node);
            called.map(|(_, frame)| frame)
        };
        if innermost.is_none_or(|frame| self.is_engine[frame.index()]) {
            return false;
        }
        let caller = |stack: &StackId| self.nodes[stack.index()].map(|(caller, _)| caller);
        let mut callers = std::iter::successors(Some(stack), caller);
        callers.any(|caller| caller == node)
    }
}

/// Returns whether an event shows its recorded stack, provided that it is not inside a backward node.
fn shows_its_own(event: &Event) -> bool {
    let is_known = event.stack != StackId::NONE || event.category == Category::PythonFunction;
    is_known && event.scope != ScopeKind::Backward
}

/// Returns the stack that each event was called from. An event without a stack takes that of its
/// parent, or of the scope that launched it. Parents precede their children.
fn own_stacks(profile: &Profile, tree: &Tree, correlation: &Correlation) -> Vec<StackId> {
    let mut stacks: Vec<StackId> = profile.events().iter().map(|event| event.stack).collect();
    for (index, event) in profile.events().iter().enumerate() {
        if event.stack != StackId::NONE || event.category == Category::PythonFunction {
            continue;
        }
        let id = EventId::from_index(index);
        let owner = correlation.owner(id);
        let of_owner = owner.map(|owner| stacks[owner.index()]);
        let found = match event.category {
            // The stack of an operator is where the call was made; that of a range is only where
            // the range began.
            Category::Runtime => {
                let caller = runtime_caller(profile, tree, id);
                let of_caller = caller.map(|caller| inside(profile, caller, &stacks));
                match owner {
                    Some(owner) if profile.event(owner).category == Category::Operator => of_owner,
                    Some(_) | None => of_caller.or(of_owner),
                }
            }
            // A kernel has no callers on its device; its launch has.
            Category::Kernel => {
                let launch = correlation.launch(profile, id);
                of_owner.or_else(|| Some(stacks[launch?.index()]))
            }
            Category::Operator
            | Category::Annotation
            | Category::PythonFunction
            | Category::DeviceAnnotation
            | Category::Other => tree
                .parent(id)
                .map(|parent| inside(profile, parent, &stacks)),
        };
        stacks[index] = found.unwrap_or(StackId::NONE);
    }
    stacks
}

/// Returns the event that a runtime call was made from: the nearest operator or Python function
/// around it, or else the nearest range, whose stack is only where the range began.
fn runtime_caller(profile: &Profile, tree: &Tree, id: EventId) -> Option<EventId> {
    let around = || std::iter::successors(tree.parent(id), |&at| tree.parent(at));
    let calls = |id: &EventId| profile.event(*id).category != Category::Annotation;
    around().find(calls).or_else(|| around().next())
}

/// Returns the stack of an event's callees, which is one frame longer than its own if the event is a
/// Python function call.
fn inside(profile: &Profile, caller: EventId, stacks: &[StackId]) -> StackId {
    let event = profile.event(caller);
    if event.category != Category::PythonFunction {
        return stacks[caller.index()];
    }
    let found = profile.stacks().find(event.stack, event.name);
    found.unwrap_or(StackId::NONE)
}

/// Returns, for each event, the nearest backward node that it is or runs inside. Parents precede
/// their children.
fn backward_parents(
    profile: &Profile,
    tree: &Tree,
    is_node: fn(&Profile, &Event) -> bool,
) -> Vec<Option<EventId>> {
    let mut found: Vec<Option<EventId>> = Vec::with_capacity(profile.events().len());
    for (index, event) in profile.events().iter().enumerate() {
        let id = EventId::from_index(index);
        found.push(if is_node(profile, event) {
            Some(id)
        } else {
            tree.parent(id).and_then(|parent| found[parent.index()])
        });
    }
    found
}

/// Numbers stacks by their innermost frames, so that stacks which agree in these share a number.
#[derive(Debug)]
pub(crate) struct Prefixes {
    depth: usize,
    by_stack: Vec<u32>,
    numbers: FxHashMap<Vec<StringId>, u32>,
}

const UNSEEN: u32 = u32::MAX;

impl Prefixes {
    pub(crate) fn new(profile: &Profile, depth: usize) -> Self {
        Self {
            depth,
            by_stack: vec![UNSEEN; profile.stacks().len()],
            numbers: FxHashMap::default(),
        }
    }

    /// Returns the number of the innermost shown frames of `stack`.
    pub(crate) fn number(&mut self, profile: &Profile, stack: StackId) -> u32 {
        let known = self.by_stack[stack.index()];
        if known != UNSEEN {
            return known;
        }
        let frames = shown_frames(profile, stack).take(self.depth).collect();
        let next = self.numbers.len() as u32;
        let number = *self.numbers.entry(frames).or_insert(next);
        self.by_stack[stack.index()] = number;
        number
    }
}

/// Iterates over the frames of a stack that are shown, innermost first.
pub fn shown_frames(profile: &Profile, stack: StackId) -> impl Iterator<Item = StringId> {
    let frames = profile.stacks().frames(stack);
    frames.filter(|&frame| is_shown_frame(profile.strings().text(frame)))
}
