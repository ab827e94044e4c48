//! Binary cross-entropy of logits: `binary_cross_entropy_with_logits`.

use super::create::empty_strided;
use super::curve::Curve;
use super::nn::Reduction;
use super::reduce::KeepDims;
use crate::autograd::{Formula, Saved, differentiable, node_site};
use crate::dispatch::{Absent, Site, open};
use crate::error::reject;
use crate::{Elementwise, Result, Scalar, Tensor};

static BINARY_CROSS_ENTROPY: Site = Site::operator("aten::binary_cross_entropy_with_logits");
static EMPTY_LIKE: Site = Site::operator("aten::empty_like");

node_site! {
    NODE = "BinaryCrossEntropyWithLogitsBackward0";
}

const ONE: Scalar = Scalar::Int(1);

/// The options of [`Tensor::binary_cross_entropy`].
#[derive(Clone, Debug, Default)]
pub struct BinaryCrossEntropy {
    /// The weight of each element.
    pub weight: Option<Tensor>,
    /// The weight of positive examples relative to negative ones.
    pub positive_weight: Option<Tensor>,
    /// How to reduce the losses to one.
    pub reduction: Reduction,
}

impl Tensor {
    /// Returns the binary cross-entropy between logits and targets in the range from zero to one.
    ///
    /// # Errors
    /// Returns an error if the shapes differ or memory cannot be allocated.
    pub fn binary_cross_entropy(
        &self,
        target: &Self,
        options: &BinaryCrossEntropy,
    ) -> Result<Self> {
        let BinaryCrossEntropy {
            weight,
            positive_weight,
            reduction,
        } = options.clone();
        let _scope = open(
            &BINARY_CROSS_ENTROPY,
            (
                self,
                target,
                weight.as_ref(),
                positive_weight.as_ref(),
                reduction as i64,
            ),
        );
        if self.dims() != target.dims() {
            return reject!(
                Value,
                "Target size ({:?}) must be the same as input size ({:?})",
                target.dims(),
                self.dims()
            );
        }
        let (formula_weight, formula_positive) = (weight.clone(), positive_weight.clone());
        differentiable(
            &NODE,
            [self],
            || {
                let mut sure = self.curve(Curve::LogSigmoid)?;
                if let Some(positive) = &positive_weight {
                    let factor = positive.sub(1_i64)?.mul(target)?;
                    factor.add_(1_i64)?;
                    sure.mul_(&factor)?;
                }
                let loss = ones_of(target)?;
                loss.sub_scaled_(target, ONE)?;
                loss.mul_(self)?;
                loss.sub_scaled_(&sure, ONE)?;
                sure = loss;
                if let Some(weight) = &weight {
                    sure.mul_(weight)?;
                }
                match reduction {
                    Reduction::None => Ok(sure),
                    Reduction::Mean => sure.mean(None, KeepDims::No, None),
                    Reduction::Sum => sure.sum(None, KeepDims::No, None),
                }
            },
            |_| {
                let (own, target) = (Saved::new(self), Saved::new(target));
                Formula::unary_saving(move |gradient| {
                    let (own, target) = (own.get()?, target.get()?);
                    let share = own.elementwise(Elementwise::Sigmoid)?;
                    match &formula_positive {
                        Some(positive) => {
                            let heavy = positive.mul(target)?;
                            let whole = heavy.add(1_i64)?;
                            whole.sub_scaled_(target, ONE)?;
                            share.mul_(&whole)?;
                            share.sub_scaled_(&heavy, ONE)?;
                        }
                        None => share.sub_scaled_(target, ONE)?,
                    }
                    share.mul_(gradient)?;
                    if let Some(weight) = &formula_weight {
                        share.mul_(weight)?;
                    }
                    if reduction == Reduction::Mean {
                        share.div_(own.count() as i64)?;
                    }
                    Ok(share)
                })
            },
        )
    }
}

/// Creates ones in the shape of a tensor.
fn ones_of(tensor: &Tensor) -> Result<Tensor> {
    const PRESERVE: i64 = 1;
    let ones = {
        let arguments = (tensor, Absent, Absent, Absent, Absent, PRESERVE);
        let _scope = open(&EMPTY_LIKE, arguments);
        empty_strided(tensor.dims(), tensor.strides(), tensor.dtype(), None)?
    };
    ones.fill_(Scalar::Int(1))?;
    Ok(ones)
}
