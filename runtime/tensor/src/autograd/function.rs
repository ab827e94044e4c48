//! Custom autograd functions, whose forward and backward are written by the user.

use smallvec::SmallVec;

use super::mode::{NoGrad, is_tracking, upcoming_sequence};
use super::node::{Formula, Node, NodeName, ResultShape};
use super::track::{edges, set_history};
use crate::{Result, Tensor};

/// A custom function that is about to run.
///
/// The binding creates one per call, runs the user's forward through [`Function::forward`] and
/// attaches the backward with [`Function::finish`].
#[derive(Debug)]
pub struct Function {
    tracked: bool,
    operands: Vec<Tensor>,
}

impl Function {
    /// Creates a function over its operands and determines whether it needs a node.
    pub fn new(operands: Vec<Tensor>) -> Self {
        let tracked = is_tracking() && operands.iter().any(Tensor::requires_grad);
        Self { tracked, operands }
    }

    /// Returns the sequence number that ties the forward call to its backward node.
    pub fn sequence(&self) -> u32 {
        upcoming_sequence()
    }

    /// Runs the forward computation with tracking off.
    pub fn forward<R>(&self, compute: impl FnOnce() -> R) -> R {
        let _no_grad = NoGrad::enter();
        compute()
    }

    /// Returns whether the results will have a node.
    pub fn is_tracked(&self) -> bool {
        self.tracked
    }

    /// Returns, for each operand, whether its gradient is needed.
    pub fn needs(&self) -> Vec<bool> {
        self.operands.iter().map(Tensor::requires_grad).collect()
    }

    /// Attaches a node to the results that are marked as differentiable. A result that is also an
    /// operand becomes a new handle.
    pub fn finish(
        self,
        name: &str,
        results: Vec<(Tensor, bool)>,
        backward: impl Fn(&[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> + Send + Sync + 'static,
    ) -> Vec<Tensor> {
        let results: Vec<(Tensor, bool)> = results
            .into_iter()
            .map(|(result, marked)| (result.untracked(), marked))
            .collect();
        if self.tracked {
            let operands: SmallVec<[&Tensor; 4]> = self.operands.iter().collect();
            let node = Node::build(
                NodeName::user(name),
                edges(&operands),
                results
                    .iter()
                    .map(|(result, _)| ResultShape::of(result))
                    .collect(),
                Formula::saving(move |gradients| Ok(backward(gradients.arrived)?.into())),
            );
            for (index, (result, marked)) in results.iter().enumerate() {
                if *marked && result.dtype().is_float() {
                    set_history(result, &node, index);
                }
            }
        }
        results.into_iter().map(|(result, _)| result).collect()
    }
}
