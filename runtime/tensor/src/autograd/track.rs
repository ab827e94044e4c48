//! The functions with which operators become differentiable.

use std::sync::Arc;

use mindprof_record::{is_recording, wants_results};
use smallvec::SmallVec;

use super::meta::{Meta, ViewOf};
use super::mode::{Below, is_tracking};
use super::node::{Edge, Formula, Node, NodeName, NodeSite, ResultShape};
use crate::dispatch::{returning, returns};
use crate::{Result, Tensor};

/// Computes a result. If an operand is tracked, attaches a node with the formula to it.
#[inline]
pub(crate) fn differentiable<const N: usize>(
    site: &'static NodeSite,
    operands: [&Tensor; N],
    compute: impl FnOnce() -> Result<Tensor>,
    formula: impl FnOnce(&Tensor) -> Formula,
) -> Result<Tensor> {
    let tracked = is_tracked(&operands);
    if tracked == Tracked::No && !wants_results() {
        // Not wrapped in `inspect`: each look at a result copies a whole tensor.
        return below(tracked, compute);
    }
    let mut compute = Some(compute);
    let result = below_and_told(tracked, &mut || {
        compute.take().expect("it is called once")()
    })?;
    if tracked == Tracked::Yes && result.dtype().is_float() {
        let formula = formula(&result);
        attach(site, &operands, [&result], formula);
    }
    Ok(result)
}

/// Computes a result and records it for execution traces. Not generic, so that it is compiled once.
fn below_and_told(tracked: Tracked, compute: &mut dyn FnMut() -> Result<Tensor>) -> Result<Tensor> {
    returning(below(tracked, compute))
}

/// Computes as [`differentiable`] does, for a result that is a view of its operand.
#[inline]
pub(crate) fn differentiable_view(
    site: &'static NodeSite,
    operand: &Tensor,
    compute: impl FnOnce() -> Result<Tensor>,
    formula: impl FnOnce(&Tensor) -> Formula,
) -> Result<Tensor> {
    let result = differentiable(site, [operand], compute, formula)?;
    mark_view(&result, operand);
    Ok(result)
}

/// Computes as [`differentiable`] does, for an operator with several results of which only the
/// first is differentiable.
pub(crate) fn differentiable_first<const N: usize, const M: usize>(
    site: &'static NodeSite,
    operands: [&Tensor; N],
    compute: impl FnOnce() -> Result<[Tensor; M]>,
    formula: impl FnOnce(&[Tensor; M]) -> Formula,
) -> Result<[Tensor; M]> {
    let tracked = is_tracked(&operands);
    let results = below(tracked, compute)?;
    results.iter().for_each(returns);
    if tracked == Tracked::No {
        return Ok(results);
    }
    let formula = formula(&results);
    attach(site, &operands, [&results[0]], formula);
    Ok(results)
}

/// Computes as [`differentiable_first`] does, for any number of operands and results.
pub(crate) fn differentiable_list(
    site: &'static NodeSite,
    operands: &[&Tensor],
    compute: impl FnOnce() -> Result<Vec<Tensor>>,
    formula: impl FnOnce(&[Tensor]) -> Formula,
) -> Result<Vec<Tensor>> {
    let tracked = is_tracked(operands);
    let results = below(tracked, compute)?;
    results.iter().for_each(returns);
    if tracked == Tracked::No {
        return Ok(results);
    }
    let formula = formula(&results);
    attach(site, operands, &results, formula);
    Ok(results)
}

/// Returns whether an operator on these operands needs a node.
///
/// Most operands are untracked, which is quicker to check than the mode of the thread.
#[inline]
fn is_tracked(operands: &[&Tensor]) -> Tracked {
    if operands.iter().any(|operand| operand.requires_grad()) && is_tracking() {
        Tracked::Yes
    } else {
        Tracked::No
    }
}

/// Whether an operator needs a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tracked {
    Yes,
    No,
}

/// Computes a result with tracking off. The guard is skipped if nothing is tracked or recorded,
/// because then it has no observable effect.
#[inline]
fn below<R>(tracked: Tracked, compute: impl FnOnce() -> Result<R>) -> Result<R> {
    let _below = (tracked == Tracked::Yes || is_recording()).then(Below::enter);
    compute()
}

/// Stores the base of a tracked view, for in-place writes through it.
pub(crate) fn mark_view(view: &Tensor, operand: &Tensor) {
    let (Some(own), Some(other)) = (view.meta(), operand.meta()) else {
        return;
    };
    if Arc::ptr_eq(own, other) {
        return;
    }
    let base = match other.view() {
        Some(view) => view.base,
        None => operand.clone(),
    };
    let version = view.version();
    own.set_view(ViewOf { base, version });
}

#[inline(never)]
fn attach<'a>(
    site: &'static NodeSite,
    operands: &[&Tensor],
    results: impl IntoIterator<Item = &'a Tensor>,
    formula: Formula,
) {
    let results: SmallVec<[&Tensor; 4]> = results.into_iter().collect();
    let node = Node::build(
        NodeName::Static(site),
        edges(operands),
        results
            .iter()
            .map(|result| ResultShape::of(result))
            .collect(),
        formula,
    );
    for (index, result) in results.into_iter().enumerate() {
        if result.dtype().is_float() {
            set_history(result, &node, index);
        }
    }
}

pub(super) fn edges(operands: &[&Tensor]) -> SmallVec<[Option<Edge>; 4]> {
    operands
        .iter()
        .map(|operand| operand.gradient_edge())
        .collect()
}

/// Makes a tensor a result of a node.
pub(super) fn set_history(tensor: &Tensor, node: &Arc<Node>, result: usize) {
    let edge = Edge {
        node: Arc::clone(node),
        result,
    };
    match tensor.meta() {
        Some(meta) => meta.set_edge(edge),
        None => tensor.set_meta(Meta::new(true, Some(edge))),
    }
}
