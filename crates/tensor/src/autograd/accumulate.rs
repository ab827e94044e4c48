//! The end of every path: adding to the gradient of a leaf.

use std::sync::Arc;

use super::meta::Meta;
use super::node::{Node, ResultShape, node_site};
use crate::layout::Layout;
use crate::{Result, Tensor};

node_site! {
    ACCUMULATE = "torch::autograd::AccumulateGrad";
}

/// A leaf, as its node knows it.
pub(super) struct Leaf {
    pub(super) meta: Arc<Meta>,
    layout: Layout,
}

/// Who else holds a gradient that arrives at a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holders {
    /// Nobody holds these very elements: the leaf may keep them.
    Nobody,
    /// Somebody does, or may do.
    Somebody,
}

/// Makes the node of a leaf.
pub(super) fn leaf_node(leaf: &Tensor, meta: &Arc<Meta>) -> Arc<Node> {
    let shape = ResultShape::of(leaf);
    let leaf = Leaf {
        meta: Arc::clone(meta),
        layout: leaf.layout().clone(),
    };
    Node::for_leaf(&ACCUMULATE, shape, leaf)
}

impl Leaf {
    /// Adds a gradient to what the leaf has, or makes it the leaf's gradient.
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

    /// Returns whether the elements of a gradient lie as the leaf's do; where those have gaps,
    /// whether they lie in one piece.
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
