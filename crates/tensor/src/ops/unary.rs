//! Operators on each element of one tensor.

use crate::dispatch::{Absent, Site, open};
use crate::element::{Number, by_dtype};
use crate::kernels;
use crate::{DType, Element, Error, Result, Scalar, Tensor};

static CLAMP_MIN: Site = Site::operator("aten::clamp_min");
static NEG: Site = Site::operator("aten::neg");
static RECIPROCAL: Site = Site::operator("aten::reciprocal");
static RELU: Site = Site::operator("aten::relu");
static TO: Site = Site::operator("aten::to");

impl Tensor {
    /// Changes the sign.
    ///
    /// # Errors
    /// When the elements are truth values or there is no memory.
    pub fn neg(&self) -> Result<Self> {
        let _scope = open(&NEG, (self,));
        if self.dtype() == DType::Bool {
            return Err(Error::BooleanNegation);
        }
        by_dtype!(self.dtype(), T => kernels::map(self, T::negated))
    }

    /// Replaces what is below zero by zero.
    ///
    /// # Errors
    /// When the elements are truth values or there is no memory.
    pub fn relu(&self) -> Result<Self> {
        let _scope = open(&RELU, (self,));
        if self.dtype() == DType::Bool {
            return Err(Error::BooleanRelu);
        }
        self.clamp_min(Scalar::Int(0))
    }

    /// Replaces what is below a number by the number; what is not a number stays.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn clamp_min(&self, lowest: Scalar) -> Result<Self> {
        let _scope = open(&CLAMP_MIN, (self, lowest));
        if !self.dtype().is_float() {
            drop(open(&TO, (self, self.dtype(), false, false, Absent)));
        }
        by_dtype!(self.dtype(), T => {
            let lowest = T::from_scalar(lowest);
            kernels::map(self, move |x: T| x.at_least(lowest))
        })
    }

    /// Divides one by each element; integers give fractions.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn reciprocal(&self) -> Result<Self> {
        let _scope = open(&RECIPROCAL, (self,));
        let converted;
        let operand = if self.dtype().is_float() {
            self
        } else {
            converted = self.to(DType::DEFAULT)?;
            &converted
        };
        by_dtype!(operand.dtype(), T => kernels::map(operand, |x: T| T::ONE.over(x)))
    }
}
