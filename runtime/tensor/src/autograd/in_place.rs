//! In-place operators: the modified tensor becomes a result of a new node, and so does the tensor
//! that it is a view of.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::meta::{Meta, ViewOf};
use super::mode::{Below, is_tracking};
use super::node::{Edge, Formula, Node, NodeName, NodeSite, ResultShape, node_site};
use super::track::{edges, mark_view, set_history};
use crate::layout::Layout;
use crate::{Error, Result, Tensor};

node_site! {
    AS_STRIDED = "AsStridedBackward0";
    COPY_SLICES = "CopySlices";
}

/// Runs an in-place operator on `target`. If the target or an operand is tracked, the target
/// becomes a result of a node with the given formula.
///
/// The formula returns the gradient of the target's previous value, followed by those of the
/// operands.
pub(crate) fn in_place<const N: usize>(
    site: &'static NodeSite,
    target: &Tensor,
    operands: [&Tensor; N],
    update: impl FnOnce() -> Result<()>,
    formula: impl FnOnce() -> Formula,
) -> Result<()> {
    let tracking = is_tracking();
    if tracking {
        check_writable(target)?;
    }
    let tracked = tracking
        && target.dtype().is_float()
        && (target.requires_grad() || operands.iter().any(|operand| operand.requires_grad()));
    if tracked && target.is_view() && target.meta().is_none_or(|meta| meta.view().is_none()) {
        return Err(Error::InPlaceOnUntrackedView);
    }
    {
        let _below = Below::enter();
        update()?;
    }
    target.bump_version();
    if tracked {
        let mut all: SmallVec<[&Tensor; 4]> = smallvec![target];
        all.extend(operands);
        record(site, target, &all, formula());
    }
    Ok(())
}

/// Links a fresh view to the untracked tensor that it shows, because tracked elements are about to
/// be written through it.
pub(crate) fn link_view(view: &Tensor, base: &Tensor) {
    base.meta_or_new();
    view.meta_or_new();
    mark_view(view, base);
}

/// Returns an error if autograd forbids writing to a tensor.
pub(crate) fn check_writable(target: &Tensor) -> Result<()> {
    let Some(meta) = target.meta() else {
        return Ok(());
    };
    if let Some(view) = meta.view() {
        if view.base.requires_grad() && view.base.is_leaf() {
            return Err(Error::InPlaceOnLeafView);
        }
        return Ok(());
    }
    if target.requires_grad() && target.is_leaf() {
        return Err(Error::InPlaceOnLeaf);
    }
    Ok(())
}

fn record(site: &'static NodeSite, target: &Tensor, operands: &[&Tensor], formula: Formula) {
    if let Some(view) = target.meta().and_then(|meta| meta.view()) {
        copy_slices(&view.base, target.layout(), &operands[1..], formula);
        // The node of the view is recreated when it is next needed.
        return;
    }
    let node = Node::build(
        NodeName::Static(site),
        edges(operands),
        smallvec![ResultShape::of(target)],
        formula,
    );
    set_history(target, &node, 0);
}

/// Makes `base` a result of a node that sends the gradient of one slice through `inner` and passes
/// the rest through unchanged.
fn copy_slices(base: &Tensor, piece: &Layout, operands: &[&Tensor], inner: Formula) {
    let mut all: SmallVec<[&Tensor; 4]> = smallvec![base];
    all.extend(operands.iter().copied());
    let piece = piece.clone();
    let base_layout = base.layout().clone();
    let formula = inner.around(move |gradients, inner| {
        let own = Tensor::blank(base_layout.at_start(), gradients.only().dtype())?;
        own.copy_(gradients.only())?;
        let place = piece.moved(base_layout.offset())?;
        let part = own.with_layout(place)?;
        let arrived = [Some(part.duplicate()?)];
        let mut outputs = inner(&arrived)?;
        match outputs[0].take() {
            Some(gradient) => part.copy_(&gradient)?,
            None => part.zero_()?,
        }
        outputs[0] = Some(own);
        Ok(outputs)
    });
    let node = Node::build(
        NodeName::Static(&COPY_SLICES),
        edges(&all),
        smallvec![ResultShape::of(base)],
        formula,
    );
    set_history(base, &node, 0);
}

/// Gives a view a new node after its base was modified, leading to the base's current node.
pub(super) fn renew_view(tensor: &Tensor, meta: &Arc<Meta>, view: &ViewOf) {
    let Some(edge) = view.base.gradient_edge() else {
        return;
    };
    let (base_layout, piece) = (view.base.layout().clone(), tensor.layout().clone());
    let formula = Formula::unary(move |gradient| {
        let whole = Tensor::blank(base_layout.at_start(), gradient.dtype())?;
        let place = piece.moved(base_layout.offset())?;
        let part = whole.with_layout(place)?;
        part.copy_(gradient)?;
        Ok(whole)
    });
    let node = Node::build(
        NodeName::Static(&AS_STRIDED),
        smallvec![Some(edge)],
        smallvec![ResultShape::of(tensor)],
        formula,
    );
    meta.set_edge(Edge { node, result: 0 });
    meta.set_view(ViewOf {
        base: view.base.clone(),
        version: tensor.version(),
    });
}
