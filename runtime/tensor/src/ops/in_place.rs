//! In-place arithmetic: `add_`, `mul_`, `lerp_` and their variants.

use std::borrow::Cow;

use smallvec::smallvec;

use super::arithmetic::{Sign, check_alpha, product_formula, quotient_formula, sum_formula};
use crate::autograd::{Formula, NodeSite, Saved, in_place, is_tracking, node_site};
use crate::dispatch::{Site, open};
use crate::dtype::promote;
use crate::element::{Number, by_float, by_number};
use crate::error::reject;
use crate::kernels;
use crate::shape::broadcast;
use crate::{DType, Element, Error, Operand, Result, Scalar, Tensor};

static ADD: Site = Site::operator("aten::add_");
static DIV: Site = Site::operator("aten::div_");
static LERP: Site = Site::operator("aten::lerp_");
static MUL: Site = Site::operator("aten::mul_");
static SUB: Site = Site::operator("aten::sub_");

node_site! {
    ADD_NODE = "AddBackward0";
    DIV_NODE = "DivBackward0";
    LERP_NODE = "LerpBackward0";
    MUL_NODE = "MulBackward0";
    SUB_NODE = "SubBackward0";
}

impl Tensor {
    /// Adds a tensor or a number, in place.
    ///
    /// # Errors
    /// Returns an error if the shape or the dtype of the result does not match this tensor.
    pub fn add_<'a>(&self, other: impl Into<Operand<'a>>) -> Result<()> {
        self.add_scaled_(other, Scalar::Int(1))
    }

    /// Adds `alpha` times a tensor or a number, in place.
    ///
    /// # Errors
    /// Fails in the same cases as `add_`, and if the dtype cannot be scaled by `alpha`.
    pub fn add_scaled_<'a>(&self, other: impl Into<Operand<'a>>, alpha: Scalar) -> Result<()> {
        let operand = other.into();
        let (other, _) = operand.weigh();
        let _scope = open(&ADD, (self, &*other, alpha));
        self.accumulate(&ADD_NODE, operand, &other, alpha, Sign::Plus)
    }

    /// Subtracts `alpha` times a tensor or a number, in place.
    ///
    /// # Errors
    /// Fails in the same cases as `add_`, and if the dtype cannot be scaled by `alpha`.
    pub fn sub_scaled_<'a>(&self, other: impl Into<Operand<'a>>, alpha: Scalar) -> Result<()> {
        let operand = other.into();
        let (other, _) = operand.weigh();
        let _scope = open(&SUB, (self, &*other, alpha));
        if self.dtype() == DType::Bool || other.dtype() == DType::Bool {
            return Err(Error::MixedBooleanSubtraction);
        }
        self.accumulate(&SUB_NODE, operand, &other, alpha, Sign::Minus)
    }

    /// Multiplies by a tensor or a number, in place.
    ///
    /// # Errors
    /// Fails in the same cases as `add_`.
    pub fn mul_<'a>(&self, other: impl Into<Operand<'a>>) -> Result<()> {
        let operand = other.into();
        let (other, _) = operand.weigh();
        let _scope = open(&MUL, (self, &*other));
        let before = self.before_update(&[&other])?;
        in_place(
            &MUL_NODE,
            self,
            [&other],
            || {
                let other = self.fitted(operand, &other, self.common(operand))?;
                by_number!(self.dtype(), T => kernels::update(self, &other, T::times))
            },
            || product_formula(&before, &other),
        )
    }

    /// Divides by a tensor or a number, in place.
    ///
    /// # Errors
    /// Fails in the same cases as `add_`, and if the dtype is not floating-point.
    pub fn div_<'a>(&self, other: impl Into<Operand<'a>>) -> Result<()> {
        let operand = other.into();
        let (other, _) = operand.weigh();
        let _scope = open(&DIV, (self, &*other));
        let before = self.before_update(&[&other])?;
        in_place(
            &DIV_NODE,
            self,
            [&other],
            || {
                let result = self.common(operand).or_float();
                let other = self.fitted(operand, &other, result)?;
                by_number!(self.dtype(), T => kernels::update(self, &other, T::over))
            },
            || quotient_formula(&before, &other),
        )
    }

    /// Divides by a number that an operator, not the caller, has chosen, in place; it is recorded
    /// as a scalar.
    pub(in crate::ops) fn div_in_place(&self, number: Scalar) -> Result<()> {
        let _scope = open(&DIV, (self, number));
        self.div_(number)
    }

    /// Interpolates linearly towards another tensor, in place.
    ///
    /// # Errors
    /// Returns an error if the shapes do not broadcast to this tensor's, or the dtypes differ or
    /// are not floating-point.
    pub fn lerp_(&self, end: &Self, weight: Scalar) -> Result<()> {
        let _scope = open(&LERP, (self, end, weight));
        if end.dtype() != self.dtype() {
            return reject!(
                Runtime,
                "expected dtype {} for `end` but got dtype {}",
                self.dtype().native_name(),
                end.dtype().native_name()
            );
        }
        in_place(
            &LERP_NODE,
            self,
            [end],
            || {
                let end = self.fitted(Operand::Tensor(end), end, self.dtype())?;
                by_float!(self.dtype(), "lerp_kernel_scalar", T => {
                    let weight = T::from_scalar(weight);
                    // Starts from the nearer end, so that a weight of one is exact.
                    kernels::update(self, &end, move |x: T, y: T| if weight < 0.5 {
                        x + weight * (y - x)
                    } else {
                        y - (y - x) * (1.0 - weight)
                    })
                })
            },
            move || {
                Formula::plain(move |gradients| {
                    let (gradient, part) = (gradients.only(), weight.to_f64());
                    Ok(smallvec![
                        gradients.when(0, || gradient.mul_number(Scalar::Float(1.0 - part)))?,
                        gradients.when(1, || gradient.mul_number(Scalar::Float(part)))?
                    ])
                })
            },
        )
    }

    fn accumulate(
        &self,
        site: &'static NodeSite,
        operand: Operand<'_>,
        other: &Self,
        alpha: Scalar,
        sign: Sign,
    ) -> Result<()> {
        in_place(
            site,
            self,
            [other],
            || {
                let common = self.common(operand);
                check_alpha(alpha, common)?;
                let other = self.fitted(operand, other, common)?;
                by_number!(self.dtype(), T => {
                    let scale = T::from_scalar(alpha.stored(self.dtype()));
                    match (sign, alpha.is_one()) {
                        (Sign::Plus, true) => kernels::update(self, &other, T::plus),
                        (Sign::Minus, true) => kernels::update(self, &other, T::minus),
                        (Sign::Plus, false) => {
                            kernels::update(self, &other, move |x: T, y| x.plus(scale.times(y)))
                        }
                        (Sign::Minus, false) => {
                            kernels::update(self, &other, move |x: T, y| x.minus(scale.times(y)))
                        }
                    }
                })
            },
            || sum_formula(alpha, sign),
        )
    }

    /// Returns the dtype that an operator on this tensor and the operand computes in.
    fn common(&self, operand: Operand<'_>) -> DType {
        promote([(self.dtype(), self.weight()), operand.kind()])
    }

    /// Checks that a result of dtype `result` can be written to this tensor, and returns the
    /// operand in this tensor's dtype and in a storage that does not overlap.
    pub(in crate::ops) fn fitted<'a>(
        &self,
        _operand: Operand<'_>,
        other: &'a Self,
        result: DType,
    ) -> Result<Cow<'a, Self>> {
        let output = self.dtype();
        if result > output && (result.is_float() != output.is_float() || output == DType::Bool) {
            return Err(Error::ResultType { result, output });
        }
        self.check_shape(other)?;
        if other.dtype() != output {
            return other.as_second(output);
        }
        if self.shares_storage(other) {
            return Ok(Cow::Owned(kernels::duplicate(other)?));
        }
        Ok(Cow::Borrowed(other))
    }

    /// Checks that an operand broadcasts to this tensor and that this tensor can be written to.
    pub(in crate::ops) fn check_shape(&self, other: &Self) -> Result<()> {
        if self.dims() != other.dims() {
            let dims = broadcast(self.dims(), other.dims())?;
            if dims.as_slice() != self.dims() {
                return Err(Error::OutputShape {
                    shape: self.dims().to_vec(),
                    broadcast: dims.to_vec(),
                });
            }
        }
        if self.layout().repeats() {
            return Err(Error::OverlappingWrite);
        }
        Ok(())
    }

    pub(super) fn fitted_pair<'a>(&self, operands: [&'a Self; 2]) -> Result<[Cow<'a, Self>; 2]> {
        let [first, second] = operands;
        Ok([
            self.fitted(Operand::Tensor(first), first, first.dtype())?,
            self.fitted(Operand::Tensor(second), second, second.dtype())?,
        ])
    }

    /// Returns this tensor's value before it is modified: a copy, if a node will need it.
    fn before_update(&self, operands: &[&Self]) -> Result<Self> {
        if is_tracking() && operands.iter().any(|operand| operand.requires_grad()) {
            let copy = self.duplicate_below()?;
            if self.requires_grad() {
                copy.set_requires_grad(true)?;
            }
            return Ok(copy);
        }
        Ok(self.clone())
    }

    pub(super) fn kept_pair(&self, operands: [&Self; 2]) -> Result<[Saved; 2]> {
        let [first, second] = operands;
        let apart = |operand: &Self| -> Result<Saved> {
            if self.shares_storage(operand) && operands.iter().any(|other| other.requires_grad()) {
                let copy = kernels::duplicate(operand)?;
                return Ok(Saved::new(&copy));
            }
            Ok(Saved::new(operand))
        };
        Ok([apart(first)?, apart(second)?])
    }
}
