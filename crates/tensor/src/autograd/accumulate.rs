//! The end of every path: adding to the gradient of a leaf.

use std::sync::Arc;

use super::meta::Meta;
use super::node::{Node, ResultShape, node_site};
use crate::{Result, Tensor};

node_site! {
    ACCUMULATE = "torch::autograd::AccumulateGrad";
}

/// Makes the node of a leaf.
pub(super) fn leaf_node(leaf: &Tensor, meta: &Arc<Meta>) -> Arc<Node> {
    Node::for_leaf(&ACCUMULATE, ResultShape::of(leaf), Arc::clone(meta))
}

/// Adds a gradient to what a leaf has, or makes it the leaf's gradient.
pub(super) fn accumulate(meta: &Meta, gradient: &Tensor) -> Result<()> {
    let Some(known) = meta.grad() else {
        // A gradient that nobody else holds is taken as it is.
        let own = if gradient.is_alone() && gradient.layout().is_dense() {
            gradient.detach()?
        } else {
            gradient.duplicate()?
        };
        meta.set_grad(Some(own));
        return Ok(());
    };
    known.add_(gradient)?;
    Ok(())
}
