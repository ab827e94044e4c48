//! Walks the graph backward, from results to leaves.
//!
//! The engine first counts the edges into each node. A node runs once gradients have arrived over
//! all of them; among the nodes that are ready, accumulation nodes of leaves run first, then the
//! most recently created one. This is torch's order, which traces show.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use mindprof_record::{OpenScope, open, open_with};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};

use super::accumulate::Holders;
use super::mode::{Forward, NoGrad};
use super::node::{Action, Edge, Formula, Node, Outputs, ResultShape, node_site};
use crate::dispatch::Argument;
use crate::shape::{broadcast, signed};
use crate::{Error, KeepDims, Result, Tensor};

node_site! {
    GRAPH_ROOT = "torch::autograd::GraphRoot";
}

/// Whether a backward pass frees the elements that nodes have saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RetainGraph {
    /// Saved elements are freed, so that the graph can be walked only once.
    #[default]
    No,
    /// Saved elements are kept.
    Yes,
}

type Arrived = SmallVec<[Option<Tensor>; 1]>;
type NodePointer = *const Node;

/// Sends gradients from `roots` through the graph.
///
/// With `wanted`, returns the gradients that arrive at those edges and leaves the gradients of
/// leaves unchanged.
pub(super) fn run(
    roots: Vec<(Edge, Tensor)>,
    wanted: Option<&[Edge]>,
    retain: RetainGraph,
) -> Result<Vec<Option<Tensor>>> {
    let _no_grad = NoGrad::enter();
    let mut walk = Walk::plan(&roots, wanted, retain);
    if roots.len() > 1 {
        // If several gradients start the walk, torch shows one root node for all of them.
        let _evaluate = NodeScope::open(open(GRAPH_ROOT.evaluate.name()), None);
        let _apply = NodeScope::open(open(GRAPH_ROOT.apply.name()), None);
    }
    for (edge, gradient) in roots {
        walk.deliver(&edge, gradient)?;
    }
    let starts: Vec<NodePointer> = walk.waiting.keys().copied().collect();
    for node in starts {
        if walk.dependencies.get(&node).is_none_or(|count| *count == 0) {
            walk.make_ready(node);
        }
    }
    while let Some(task) = walk.ready.pop() {
        walk.evaluate(&task.node, task.arrived)?;
    }
    Ok(walk.captured)
}

/// A node that is ready to run.
struct Task {
    sequence: Option<u32>,
    /// Breaks ties: the node that became ready first runs first.
    place: u64,
    node: Arc<Node>,
    arrived: Arrived,
}

impl Task {
    fn rank(&self) -> (u64, std::cmp::Reverse<u64>) {
        let sequence = self.sequence.map_or(u64::MAX, u64::from);
        (sequence, std::cmp::Reverse(self.place))
    }
}

impl PartialEq for Task {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for Task {}

impl PartialOrd for Task {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Task {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

/// The state of one backward pass: the gradients that have arrived, and the nodes that are ready.
struct Walk<'a> {
    dependencies: FxHashMap<NodePointer, usize>,
    /// The nodes on a path to a wanted edge; `None` means all nodes.
    useful: Option<FxHashSet<NodePointer>>,
    waiting: FxHashMap<NodePointer, (Arc<Node>, Arrived)>,
    ready: BinaryHeap<Task>,
    wanted: &'a [Edge],
    captured: Vec<Option<Tensor>>,
    retain: RetainGraph,
    places: u64,
    /// The gradients that started the walk, each with the number of handles that its storage had
    /// before.
    ///
    /// They are held until the end, as in torch, so that a gradient of the caller is never mistaken
    /// for one that may be modified.
    roots: Vec<(Tensor, usize)>,
}

impl<'a> Walk<'a> {
    fn plan(roots: &[(Edge, Tensor)], wanted: Option<&'a [Edge]>, retain: RetainGraph) -> Self {
        let mut dependencies: FxHashMap<NodePointer, usize> = FxHashMap::default();
        let mut order: Vec<&Node> = Vec::new();
        let mut stack: Vec<&Node> = Vec::new();
        let mut seen: FxHashSet<NodePointer> = FxHashSet::default();
        for (edge, _) in roots {
            if seen.insert(Arc::as_ptr(&edge.node)) {
                stack.push(&edge.node);
            }
        }
        while let Some(node) = stack.pop() {
            order.push(node);
            for edge in node.edges.iter().flatten() {
                let next = Arc::as_ptr(&edge.node);
                *dependencies.entry(next).or_default() += 1;
                if seen.insert(next) {
                    stack.push(&edge.node);
                }
            }
        }
        let wanted_edges = wanted.unwrap_or(&[]);
        let useful = wanted.map(|wanted| useful_nodes(&order, wanted));
        Self {
            dependencies,
            useful,
            waiting: FxHashMap::default(),
            ready: BinaryHeap::new(),
            wanted: wanted_edges,
            captured: vec![None; wanted_edges.len()],
            retain,
            places: 0,
            roots: roots
                .iter()
                .map(|(_, gradient)| (gradient.clone(), gradient.handles()))
                .collect(),
        }
    }

    /// Adds a gradient to those that wait for a node.
    fn deliver(&mut self, edge: &Edge, gradient: Tensor) -> Result<()> {
        let (_, arrived) = self
            .waiting
            .entry(Arc::as_ptr(&edge.node))
            .or_insert_with(|| {
                let empty = smallvec![None; edge.node.results.len()];
                (Arc::clone(&edge.node), empty)
            });
        let place = &mut arrived[edge.result];
        *place = Some(match place.take() {
            None => gradient,
            // Nothing else can see this tensor, so it is modified in place.
            Some(known) if known.is_alone() && !known.is_view() && known.layout().is_dense() => {
                known.add_(&gradient)?;
                known
            }
            Some(known) => known.add(&gradient)?,
        });
        Ok(())
    }

    fn make_ready(&mut self, node: NodePointer) {
        if let Some((node, arrived)) = self.waiting.remove(&node) {
            self.places += 1;
            self.ready.push(Task {
                sequence: node.forward.map(|forward| forward.sequence),
                place: self.places,
                node,
                arrived,
            });
        }
    }

    fn evaluate(&mut self, node: &Arc<Node>, mut arrived: Arrived) -> Result<()> {
        let _scope = NodeScope::open(node.name.open_evaluate(), node.forward);
        if let Action::Accumulate(leaf) = &node.action {
            for hook in leaf.meta.leaf_hooks() {
                if let Some(gradient) = &arrived[0]
                    && let Some(changed) = hook.call(gradient)?
                {
                    arrived[0] = Some(changed);
                }
            }
        }
        node.notify(&mut arrived)?;
        for (edge, captured) in self.wanted.iter().zip(&mut self.captured) {
            if Arc::ptr_eq(&edge.node, node) {
                captured.clone_from(&arrived[edge.result]);
            }
        }
        let useful = |node: NodePointer| {
            self.useful
                .as_ref()
                .is_none_or(|useful| useful.contains(&node))
        };
        if !useful(Arc::as_ptr(node)) {
            return Ok(());
        }
        // As in torch, the gradients that arrived are freed before the node's saved elements.
        let (outputs, spent) = self.apply(node, arrived)?;
        drop(spent);
        for (index, (edge, output)) in node.edges.iter().zip(outputs).enumerate() {
            let Some(edge) = edge else {
                continue;
            };
            if let Some(gradient) = output {
                let fitted = fit(gradient, edge, node, index)?;
                self.deliver(edge, fitted)?;
            }
            self.arrive(Arc::as_ptr(&edge.node));
        }
        Ok(())
    }

    /// Counts one arrival at a node, with or without a gradient.
    fn arrive(&mut self, node: NodePointer) {
        let count = self
            .dependencies
            .get_mut(&node)
            .expect("every edge was counted");
        *count -= 1;
        if *count == 0 {
            self.make_ready(node);
        }
    }

    /// Computes the gradients of a node's operands. Also returns the formula if nothing needs it
    /// any more, so that the caller decides when its saved elements are freed.
    fn apply(&self, node: &Node, mut arrived: Arrived) -> Result<(Outputs, Option<Formula>)> {
        let scope = open_with(node.name.apply_name(), |encoder| {
            for gradient in &arrived {
                gradient.as_ref().encode(encoder);
            }
        });
        let _scope = NodeScope::open(scope, node.forward);
        match &node.action {
            Action::Accumulate(leaf) => {
                if let Some(gradient) = arrived[0].take() {
                    leaf.accumulate(&gradient, self.holders(&gradient))?;
                }
                Ok((Outputs::new(), None))
            }
            Action::Formula(formula) => {
                if arrived.iter().all(Option::is_none) {
                    return Ok((smallvec![None; node.edges.len()], None));
                }
                node.apply(formula, &arrived, self.retain == RetainGraph::No)
            }
        }
    }
}

impl Walk<'_> {
    /// Determines whether anything else holds the storage of a gradient.
    ///
    /// Parts of one storage may go to several leaves, each of which keeps its own part. This is
    /// safe if every handle to the storage is accounted for: those of this pass and those that
    /// existed before it.
    fn holders(&self, gradient: &Tensor) -> Holders {
        if gradient.is_alone() {
            return Holders::Nobody;
        }
        let waiting = self.waiting.values().map(|(_, arrived)| arrived);
        let ready = self.ready.iter().map(|task| &task.arrived);
        let on_the_way = waiting.chain(ready).flatten().flatten();
        let roots = self.roots.iter().map(|(root, _)| root);
        let mut known = 1;
        for other in on_the_way
            .chain(roots)
            .chain(self.captured.iter().flatten())
        {
            if other.shares_storage(gradient) {
                if other.shows_the_same_as(gradient) {
                    return Holders::Somebody;
                }
                known += 1;
            }
        }
        let before = self
            .roots
            .iter()
            .find(|(root, _)| root.shares_storage(gradient));
        known += before.map_or(0, |(_, handles)| handles - 1);
        if known >= gradient.handles() {
            Holders::Nobody
        } else {
            Holders::Somebody
        }
    }
}

/// Returns the nodes from which a wanted edge can be reached. A wanted node itself is included only
/// if a path leads through it.
fn useful_nodes(nodes: &[&Node], wanted: &[Edge]) -> FxHashSet<NodePointer> {
    // Maps each node to its predecessors. Sequence numbers cannot provide the order: each thread
    // counts its own, and a graph can span threads.
    let mut leading: FxHashMap<NodePointer, Vec<NodePointer>> = FxHashMap::default();
    for node in nodes {
        for edge in node.edges.iter().flatten() {
            let next = leading.entry(Arc::as_ptr(&edge.node)).or_default();
            next.push(std::ptr::from_ref(*node));
        }
    }
    let mut useful: FxHashSet<NodePointer> = FxHashSet::default();
    let mut reached: Vec<NodePointer> = wanted.iter().map(|edge| Arc::as_ptr(&edge.node)).collect();
    while let Some(node) = reached.pop() {
        for &from in leading.get(&node).into_iter().flatten() {
            if useful.insert(from) {
                reached.push(from);
            }
        }
    }
    useful
}

/// Converts a gradient to the shape and the dtype of the result that it belongs to.
fn fit(gradient: Tensor, edge: &Edge, node: &Node, index: usize) -> Result<Tensor> {
    let ResultShape { dims, dtype } = &edge.node.results[edge.result];
    let mut gradient = gradient;
    if gradient.dims() != dims.as_slice() {
        let fits =
            broadcast(gradient.dims(), dims).is_ok_and(|all| all.as_slice() == gradient.dims());
        if !fits {
            return Err(Error::GradientShape {
                node: node.text().to_owned(),
                index,
                found: gradient.dims().to_vec(),
                expected: dims.to_vec(),
            });
        }
        gradient = gradient.sum_to(dims)?;
    }
    if gradient.dtype() != *dtype {
        gradient = gradient.to(*dtype)?;
    }
    Ok(gradient)
}

impl Tensor {
    /// Sums over the dimensions that broadcasting expanded, which restores the shape `dims`.
    pub(crate) fn sum_to(&self, dims: &[usize]) -> Result<Self> {
        if dims.is_empty() {
            return self.sum(None, KeepDims::No, None);
        }
        let leading = self.rank() - dims.len();
        let mut combined: SmallVec<[i64; 6]> = (0..leading as i64).collect();
        for (index, &dim) in dims.iter().enumerate() {
            if dim == 1 && self.dims()[leading + index] != 1 {
                combined.push((leading + index) as i64);
            }
        }
        let summed = if combined.is_empty() {
            self.clone()
        } else {
            self.sum(Some(&combined), KeepDims::Yes, None)?
        };
        if leading > 0 {
            return summed.view(&signed(dims));
        }
        Ok(summed)
    }
}

/// The recorder scope of a node, closed on drop.
struct NodeScope(Option<OpenScope>);

impl NodeScope {
    fn open(mut scope: Option<OpenScope>, forward: Option<Forward>) -> Self {
        if let (Some(scope), Some(forward)) = (&mut scope, forward) {
            scope.set_forward(forward.sequence, forward.thread);
        }
        Self(scope)
    }
}

impl Drop for NodeScope {
    fn drop(&mut self) {
        if let Some(scope) = self.0.take() {
            scope.close();
        }
    }
}
