//! Accumulates gradients into leaves, where every path through the graph ends.

use std::sync::Arc;

use super::meta::Meta;
use super::node::{Node, ResultShape, node_site};
use crate::layout::Layout;
use crate::{Result, Tensor};

node_site! {
    ACCUMULATE = "torch::autograd::AccumulateGrad";
}

/// A leaf as seen by its accumulation node: its metadata, which stores the gradient, and its
/// layout.
pub(super) struct Leaf {
    pub(super) meta: Arc<Meta>,
    layout: Layout,
}

/// Whether anything else holds the storage of a gradient that arrives at a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holders {
    /// Nothing else holds these elements, so the leaf may keep them.
    Nobody,
    /// Something else holds them, or may hold them.
    Somebody,
}

/// Creates the accumulation node of a leaf.
pub(super) fn leaf_node(leaf: &Tensor, meta: &Arc<Meta>) -> Arc<Node> {
    let shape = ResultShape::of(leaf);
    let leaf = Leaf {
        meta: Arc::clone(meta),
        layout: leaf.layout().clone(),
    };
    Node::for_leaf(&ACCUMULATE, shape, leaf)
}

impl Leaf {
    /// Adds a gradient to the leaf's gradient, or stores it as the first one.
    pub(super) fn accumulate(&self, gradient: &Tensor, holders: Holders) -> Result<()> {
        let Some(known) = self.meta.grad() else {
            let own = if holders == Holders::Nobody && self.is_laid_out_alike(gradient) {
                gradient.detach()?
            } else if self.layout.is_dense() {
                let own = gradient.new_empty_strided(self.layout.dims(), self.layout.strides())?;
                own.copy_(gradient)?;
                own
            } else {
                gradient.duplicate_contiguous()?
            };
            self.meta.set_grad(Some(own));
            return Ok(());
        };
        known.add_(gradient)?;
        Ok(())
    }

    /// Returns whether a gradient has the memory layout of the leaf or, if the leaf is not dense,
    /// whether the gradient is contiguous.
    fn is_laid_out_alike(&self, gradient: &Tensor) -> bool {
        if !self.layout.is_dense() {
            return gradient.is_contiguous();
        }
        let strides = self.layout.strides().iter().zip(gradient.strides());
        let mut sized = self.layout.dims().iter().zip(strides);
        gradient.dims() == self.layout.dims()
            && sized.all(|(&size, (own, other))| size == 1 || own == other)
    }
}
