//! Losses: `mse_loss`, `nll_loss`, `cross_entropy_loss`.

use smallvec::smallvec;

use crate::autocast::Casting;
use crate::autograd::{Formula, Saved, differentiable, differentiable_first, node_site};
use crate::dispatch::{Absent, Site, open, returns};
use crate::element::by_float;
use crate::error::reject;
use crate::kernels;
use crate::layout::Layout;
use crate::ops::create::{Options, empty, result_space};
use crate::shape::{Dims, signed};
use crate::storage::{reserve, zeroed};
use crate::{Comparison, DType, KeepDims, Result, Scalar, Tensor};

static CROSS_ENTROPY: Site = Site::operator("aten::cross_entropy_loss");
static MSE: Site = Site::operator("aten::mse_loss");
static MSE_BACKWARD: Site = Site::operator("aten::mse_loss_backward");
static NLL: Site = Site::operator("aten::nll_loss");
static NLL_BACKWARD: Site = Site::operator("aten::nll_loss_backward");
static NLL_FORWARD: Site = Site::operator("aten::nll_loss_forward");
static NLL_ND: Site = Site::operator("aten::nll_loss_nd");
static RESIZE: Site = Site::operator("aten::resize_");

node_site! {
    MSE_NODE = "MseLossBackward0";
    NLL_NODE = "NllLossBackward0";
}

/// Torch's number for the contiguous memory format.
const CONTIGUOUS: i64 = 0;

/// How to reduce the losses of many elements to one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reduction {
    /// They are not reduced.
    None,
    /// Their mean.
    #[default]
    Mean,
    /// Their sum.
    Sum,
}

impl Reduction {
    pub(super) fn code(self) -> i64 {
        self as i64
    }
}

/// The options of [`Tensor::nll_loss`] and [`Tensor::cross_entropy`].
#[derive(Clone, Debug)]
pub struct CrossEntropy {
    /// The weight of each class.
    pub weight: Option<Tensor>,
    /// The class that is ignored.
    pub ignore_index: i64,
    /// How to reduce the losses to one.
    pub reduction: Reduction,
    /// The share of the target that is spread evenly over all classes.
    pub label_smoothing: f64,
}

impl CrossEntropy {
    fn raised(&self, casting: &Casting) -> Result<Self> {
        let weight = self.weight.as_ref().map(|weight| casting.raise(weight));
        Ok(Self {
            weight: weight.transpose()?,
            ..self.clone()
        })
    }
}

impl Default for CrossEntropy {
    fn default() -> Self {
        Self {
            weight: None,
            ignore_index: -100,
            reduction: Reduction::Mean,
            label_smoothing: 0.0,
        }
    }
}

impl Tensor {
    /// Returns the squared differences to a target of the same shape.
    ///
    /// # Errors
    /// Returns an error if the shapes or the dtypes do not match.
    pub fn mse_loss(&self, target: &Self, reduction: Reduction) -> Result<Self> {
        let _scope = open(&MSE, (self, target, reduction.code()));
        if let Some(casting) = Casting::begin() {
            let target = casting.raise(target)?;
            return casting.raise(self)?.mse_loss(&target, reduction);
        }
        if self.dims() != target.dims() {
            crate::shape::broadcast(self.dims(), target.dims())?;
        }
        let dtype = self.dtype().common(target.dtype());
        differentiable(
            &MSE_NODE,
            [self, target],
            || {
                let (own, target) = (self.as_type(dtype)?, target.as_type(dtype)?);
                let dims = crate::shape::broadcast(own.dims(), target.dims())?;
                let squares = || {
                    by_float!(dtype, "mse_cpu", T => {
                        kernels::zip(&dims, [&own, &target], |x: T, y: T| (x - y) * (x - y))
                    })
                };
                reduced_losses(&dims, dtype, reduction, squares)
            },
            |_| {
                let kept = [Saved::new(self), Saved::new(target)];
                Formula::saving(move |gradients| {
                    let gradient = gradients.only();
                    let (own, target) = (kept[0].get()?, kept[1].get()?);
                    Ok(smallvec![
                        gradients.when(0, || mse_gradient(gradient, own, target, reduction))?,
                        gradients.when(1, || mse_gradient(gradient, target, own, reduction))?
                    ])
                })
            },
        )
    }

    /// Returns the negative log-likelihood: the negated elements at the target's classes.
    ///
    /// # Errors
    /// Returns an error if the shapes or the dtypes do not match, or a class index is out of range.
    pub fn nll_loss(&self, target: &Self, options: &CrossEntropy) -> Result<Self> {
        let (reduction, ignored) = (options.reduction.code(), options.ignore_index);
        let weight = options.weight.as_ref();
        let arguments = (self, target, weight, reduction, ignored);
        let _scope = open(&NLL_ND, arguments);
        if self.rank() > 2 {
            return self.nll_loss_of_many(target, options);
        }
        self.nll_loss_of_rows(target, options)
    }

    fn nll_loss_of_rows(&self, target: &Self, options: &CrossEntropy) -> Result<Self> {
        let (reduction, ignored) = (options.reduction.code(), options.ignore_index);
        let arguments = (self, target, options.weight.as_ref(), reduction, ignored);
        let _scope = open(&NLL, arguments);
        if let Some(casting) = Casting::begin() {
            let options = options.raised(&casting)?;
            return casting.raise(self)?.nll_loss_of_rows(target, &options);
        }
        let _scope = open(&NLL_FORWARD, arguments);
        let classes = Classes::check(self, target, options)?;
        let [loss, _total] = differentiable_first(
            &NLL_NODE,
            [self],
            || classes.loss(self, options.reduction),
            |[_, total]| {
                let (kept, total) = (Saved::new(self), total.untracked());
                let (target, options, classes) =
                    (Saved::new(target), options.clone(), classes.clone());
                Formula::saving(move |gradients| {
                    let gradient = gradients.only();
                    let own = kept.get()?;
                    let _scope = open(
                        &NLL_BACKWARD,
                        (
                            gradient,
                            own,
                            target.get()?,
                            options.weight.as_ref(),
                            options.reduction.code(),
                            options.ignore_index,
                            &total,
                        ),
                    );
                    Ok(smallvec![Some(classes.gradient(
                        gradient,
                        own,
                        &total,
                        options.reduction
                    )?)])
                })
            },
        )?;
        Ok(loss)
    }

    /// Returns the cross-entropy between logits and a target.
    ///
    /// # Errors
    /// Returns an error if the shapes or the dtypes do not match, or a class index is out of range.
    pub fn cross_entropy(&self, target: &Self, options: &CrossEntropy) -> Result<Self> {
        let _scope = open(
            &CROSS_ENTROPY,
            (
                self,
                target,
                options.weight.as_ref(),
                options.reduction.code(),
                options.ignore_index,
                options.label_smoothing,
            ),
        );
        if let Some(casting) = Casting::begin() {
            let options = options.raised(&casting)?;
            let target = casting.raise(target)?;
            return casting.raise(self)?.cross_entropy(&target, &options);
        }
        if self.rank() == 0 {
            return reject!(Runtime, "input.dim() should be at least 1, got 0");
        }
        let class_dimension = i64::from(self.rank() > 1);
        let log = self.log_softmax(class_dimension, Some(self.dtype().or_float()))?;
        if target.dtype().is_float() {
            return log.soft_cross_entropy(target, options, class_dimension);
        }
        if options.label_smoothing == 0.0 {
            return log.nll_loss(target, options);
        }
        log.smooth_cross_entropy(target, options, class_dimension)
    }

    /// Returns the loss of log-probabilities with label smoothing.
    fn smooth_cross_entropy(&self, target: &Self, options: &CrossEntropy, at: i64) -> Result<Self> {
        let hard = self.nll_loss(target, options)?;
        let classes = self.dims()[at as usize] as f64;
        let smoothing = options.label_smoothing;
        let weighed = match &options.weight {
            Some(weight) => self.mul(&self.weight_beside(weight, at)?)?,
            None => self.clone(),
        };
        let smooth = weighed.sum(Some(&[at]), KeepDims::No, None)?.neg()?;
        let ignored = target.compare(Comparison::Eq, options.ignore_index)?;
        smooth.masked_fill_(&ignored, Scalar::Float(0.0))?;
        let smooth = match options.reduction {
            Reduction::None => smooth,
            Reduction::Sum => smooth.sum(None, KeepDims::No, None)?,
            Reduction::Mean => {
                let counted = ignored.bitwise_not()?;
                let count = match &options.weight {
                    Some(weight) => {
                        let classes = target.masked_select(&counted)?.flatten(0, -1)?;
                        weight.gather(0, &classes)?.sum(None, KeepDims::No, None)?
                    }
                    None => counted.sum(None, KeepDims::No, None)?,
                };
                smooth.sum(None, KeepDims::No, None)?.div(&count)?
            }
        };
        let smooth = smooth.mul_number(Scalar::Float(smoothing / classes))?;
        let hard = hard.mul_number(Scalar::Float(1.0 - smoothing))?;
        hard.add(&smooth)
    }

    /// Returns the class weights, shaped to broadcast with these scores.
    fn weight_beside(&self, weight: &Self, at: i64) -> Result<Self> {
        let mut sizes = vec![1; self.rank()];
        sizes[at as usize] = weight.count() as i64;
        weight.view(&sizes)
    }

    /// Computes the loss of scores with additional dimensions, by treating each position as a row.
    fn nll_loss_of_many(&self, target: &Self, options: &CrossEntropy) -> Result<Self> {
        if target.rank() + 1 != self.rank() {
            return reject!(
                Value,
                "Expected target size {:?}, got {:?}",
                [&self.dims()[..1], &self.dims()[2..]].concat(),
                target.dims()
            );
        }
        let classes = self.dims()[1] as i64;
        let mut order: Vec<i64> = (0..self.rank() as i64).collect();
        order.remove(1);
        order.push(1);
        let rows = self.permute(&order)?.reshape(&[-1, classes])?;
        let flat = target.reshape(&[-1])?;
        let loss = rows.nll_loss(&flat, options)?;
        match options.reduction {
            Reduction::None => loss.reshape(&signed(target.dims())),
            Reduction::Mean | Reduction::Sum => Ok(loss),
        }
    }

    fn soft_cross_entropy(&self, target: &Self, options: &CrossEntropy, at: i64) -> Result<Self> {
        if self.dims() != target.dims() {
            return reject!(
                Runtime,
                "Expected floating point type for target with class probabilities of the input's shape {:?}, got {:?}",
                self.dims(),
                target.dims()
            );
        }
        let classes = self.dims()[at as usize];
        let smoothing = options.label_smoothing;
        let target = if smoothing > 0.0 {
            target
                .mul_number(Scalar::Float(1.0 - smoothing))?
                .add_number(Scalar::Float(smoothing / classes as f64))?
        } else {
            target.clone()
        };
        let weight = match &options.weight {
            Some(weight) => Some(self.weight_beside(weight, at)?),
            None => None,
        };
        let mut gains = self.mul(&target)?;
        if let Some(weight) = &weight {
            gains = gains.mul(weight)?;
        }
        match options.reduction {
            Reduction::None => gains.sum(Some(&[at]), KeepDims::No, None)?.neg(),
            Reduction::Sum => gains.sum(None, KeepDims::No, None)?.neg(),
            Reduction::Mean => {
                let count = (self.count() / classes.max(1)).max(1);
                let sum = gains.sum(None, KeepDims::No, None)?;
                sum.neg()?.div_number(Scalar::Int(count as i64))
            }
        }
    }
}

/// Returns the losses that `losses` computes, reduced as requested.
pub(super) fn reduced_losses(
    dims: &[usize],
    dtype: DType,
    reduction: Reduction,
    losses: impl FnOnce() -> Result<Tensor>,
) -> Result<Tensor> {
    if reduction == Reduction::None {
        return losses();
    }
    // The buffer is created for all losses and shrinks to one element; the storage size shows it in
    // torch too.
    let result = if dims.contains(&0) {
        result_space(&[], dtype)?
    } else {
        result_space(dims, dtype)?
    };
    let nothing = [0_i64; 0];
    let resize = open(&RESIZE, (&result, nothing.as_slice(), Absent));
    let result = result.shrunk(Layout::contiguous(Dims::new())?);
    returns(&result);
    drop(resize);
    let options = Options::of(Some(dtype)).with_format(CONTIGUOUS);
    let room = empty(&signed(dims), dtype, &options)?;
    kernels::copy_into(&room, &losses()?);
    if reduction == Reduction::Mean {
        room.mean_all_into(&result)?;
    } else {
        room.sum_all_into(&result)?;
    }
    Ok(result)
}

/// Returns the gradient of the squared difference with respect to its first operand.
fn mse_gradient(
    gradient: &Tensor,
    own: &Tensor,
    other: &Tensor,
    reduction: Reduction,
) -> Result<Tensor> {
    let _scope = open(&MSE_BACKWARD, (gradient, own, other, reduction.code()));
    let dims = crate::shape::broadcast(own.dims(), other.dims())?;
    let result = if own.dims() == dims.as_slice() {
        own.zeros_like_contiguous()?
    } else {
        Tensor::zeros(&signed(&dims), Some(own.dtype()))?
    };
    let _scope = open(
        &MSE_BACKWARD,
        (gradient, own, other, reduction.code(), &result),
    );
    let factor = match reduction {
        Reduction::Mean => 2.0 / result.count() as f64,
        Reduction::None | Reduction::Sum => 2.0,
    };
    by_float!(own.dtype(), "mse_backward_cpu", T => {
        let factor = factor as T;
        let slope = kernels::zip(&dims, [own, other], move |x: T, y: T| factor * (x - y))?;
        let scaled = kernels::zip(&dims, [&slope, gradient], |s: T, g: T| s * g)?;
        kernels::copy_into(&result, &scaled);
        Ok(())
    })?;
    Ok(result)
}

/// A validated target of class indices, with the weight of each row.
#[derive(Clone)]
struct Classes {
    /// The class of each row; `None` if the row is ignored.
    targets: Vec<Option<usize>>,
    weights: Vec<f64>,
    single: bool,
}

impl Classes {
    fn check(scores: &Tensor, target: &Tensor, options: &CrossEntropy) -> Result<Self> {
        if target.dtype() != DType::I64 {
            return reject!(
                Runtime,
                "expected scalar type Long but found {}",
                target.dtype().title()
            );
        }
        let single = scores.rank() == 1;
        let fits = match (scores.dims(), target.dims()) {
            (&[_], []) => true,
            (&[rows, _], &[targets]) => rows == targets,
            _ => false,
        };
        if !fits {
            return reject!(
                Value,
                "Expected input batch_size ({}) to match target batch_size ({}).",
                scores.dims().first().copied().unwrap_or(0),
                target.dims().first().copied().unwrap_or(0)
            );
        }
        let classes = scores.dims().last().copied().unwrap_or(0);
        let by_class = match &options.weight {
            Some(weight) if weight.dims() != [classes] => {
                return reject!(
                    Runtime,
                    "weight tensor should be defined either for all {classes} classes or no classes but got weight \
                     tensor of shape: {:?}",
                    weight.dims()
                );
            }
            Some(weight) => Some(weight.to_f64_vec()?),
            None => None,
        };
        let mut targets = reserve(target.count())?;
        let mut weights = reserve(target.count())?;
        for class in target.to_vec::<i64>()? {
            if class == options.ignore_index {
                targets.push(None);
                weights.push(0.0);
                continue;
            }
            let Some(class) = usize::try_from(class).ok().filter(|&class| class < classes) else {
                return reject!(Index, "Target {class} is out of bounds.");
            };
            targets.push(Some(class));
            weights.push(by_class.as_ref().map_or(1.0, |weights| weights[class]));
        }
        Ok(Self {
            targets,
            weights,
            single,
        })
    }

    /// Returns the loss and the total weight.
    fn loss(&self, scores: &Tensor, reduction: Reduction) -> Result<[Tensor; 2]> {
        let packed = kernels::pack(scores)?;
        let classes = scores.dims().last().copied().unwrap_or(0);
        let total: f64 = self.weights.iter().sum();
        by_float!(scores.dtype(), "nll_loss_out_frame", T => {
            let losses: Vec<T> = kernels::with_slice(&packed, |own: &[T]| {
                let rows = self.targets.iter().zip(&self.weights).enumerate();
                let mut losses = reserve(self.targets.len())?;
                losses.extend(rows.map(|(row, (target, &weight))| match target {
                    Some(class) => -own[row * classes + class] * weight as T,
                    None => 0.0,
                }));
                Ok(losses)
            })?;
            let sum: f64 = losses.iter().map(|loss| crate::element::Real::wide(*loss)).sum();
            let total_tensor = result_space(&[], scores.dtype())?;
            kernels::fill(&total_tensor, total.into());
            if reduction == Reduction::None && !self.single {
                let loss = Tensor::from_slice(&losses, &[losses.len() as i64])?;
                return Ok([kernels::narrowed(loss, scores.dtype())?, total_tensor]);
            }
            let loss = result_space(&[], scores.dtype())?;
            let value = if reduction == Reduction::Mean { sum / total } else { sum };
            kernels::fill(&loss, value.into());
            Ok([loss, total_tensor])
        })
    }

    fn gradient(
        &self,
        gradient: &Tensor,
        scores: &Tensor,
        total: &Tensor,
        reduction: Reduction,
    ) -> Result<Tensor> {
        let result = result_space(scores.dims(), scores.dtype())?;
        result.zero_()?;
        let classes = scores.dims().last().copied().unwrap_or(0);
        let arriving = gradient.to_f64_vec()?;
        let total = total.to_f64_vec()?[0];
        let rows = self.targets.iter().zip(&self.weights).enumerate();
        let mut values = zeroed::<f64>(result.count())?;
        for (row, (target, &weight)) in rows {
            let Some(class) = target else {
                continue;
            };
            let arriving = arriving[if arriving.len() == 1 { 0 } else { row }];
            let share = if reduction == Reduction::Mean {
                weight / total
            } else {
                weight
            };
            values[row * classes + class] = -share * arriving;
        }
        let filled = Tensor::from_slice(&values, &signed(result.dims()))?;
        kernels::copy_into(&result, &filled);
        Ok(result)
    }
}
