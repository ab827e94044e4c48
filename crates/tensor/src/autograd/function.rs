//! Functions that the user wrote, forward and backward.

use smallvec::SmallVec;

use super::mode::{NoGrad, is_tracking, upcoming_sequence};
use super::node::{Formula, Node, NodeName, ResultShape};
use super::track::{edges, set_history};
use crate::{Result, Tensor};

/// A function of the user that is about to run.
#[derive(Debug)]
pub struct Function {
    tracked: bool,
    operands: Vec<Tensor>,
}

impl Function {
    /// Looks at the operands: is a node needed?
    pub fn new(operands: Vec<Tensor>) -> Self {
        let tracked = is_tracking() && operands.iter().any(Tensor::requires_grad);
        Self { tracked, operands }
    }

    /// Returns the number that ties the forward half to its node.
    pub fn sequence(&self) -> u32 {
        upcoming_sequence()
    }

    /// Runs the forward half, which is not tracked.
    pub fn forward<R>(&self, compute: impl FnOnce() -> R) -> R {
        let _no_grad = NoGrad::enter();
        compute()
    }

    /// Returns whether the results will have a node.
    pub fn is_tracked(&self) -> bool {
        self.tracked
    }

    /// Returns for each operand whether its gradient is wanted.
    pub fn needs(&self) -> Vec<bool> {
        self.operands.iter().map(Tensor::requires_grad).collect()
    }

    /// Hangs a node on the results that are marked; results that are operands become handles of
    /// their own.
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
