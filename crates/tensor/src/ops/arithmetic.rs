//! Arithmetic between two operands: `add`, `sub`, `mul`, `div` and their relatives.
//!
//! Operands broadcast; where their types differ each is first converted to the common type, as an operator of its own.

use crate::dispatch::{Site, open};
use crate::dtype::{Weight, promote};
use crate::element::{Number, by_dtype};
use crate::kernels;
use crate::shape::{Dims, broadcast};
use crate::{DType, Element, Error, Operand, Result, Scalar, Tensor};

static ADD: Site = Site::operator("aten::add");
static DIV: Site = Site::operator("aten::div");
static DIV_IN_PLACE: Site = Site::operator("aten::div_");
static MUL: Site = Site::operator("aten::mul");
static RSUB: Site = Site::operator("aten::rsub");
static SUB: Site = Site::operator("aten::sub");

impl Tensor {
    /// Adds a tensor or a number.
    ///
    /// # Errors
    /// When the shapes do not broadcast or there is no memory.
    pub fn add<'a>(&self, other: impl Into<Operand<'a>>) -> Result<Self> {
        self.add_scaled(other, Scalar::Int(1))
    }

    /// Adds `alpha` times a tensor or a number.
    ///
    /// # Errors
    /// When the shapes do not broadcast, the type cannot be scaled by `alpha`, or there is no memory.
    pub fn add_scaled<'a>(&self, other: impl Into<Operand<'a>>, alpha: Scalar) -> Result<Self> {
        let (other, weight) = other.into().weigh();
        let _scope = open(&ADD, (self, &*other, alpha));
        compute(
            Arithmetic::Add(alpha),
            [(self, self.weight()), (&other, weight)],
        )
    }

    /// Subtracts a tensor or a number.
    ///
    /// # Errors
    /// When the shapes do not broadcast, an operand is of truth values, or there is no memory.
    pub fn sub<'a>(&self, other: impl Into<Operand<'a>>) -> Result<Self> {
        self.sub_scaled(other, Scalar::Int(1))
    }

    /// Subtracts `alpha` times a tensor or a number.
    ///
    /// # Errors
    /// When the shapes do not broadcast, the types do not allow it, or there is no memory.
    pub fn sub_scaled<'a>(&self, other: impl Into<Operand<'a>>, alpha: Scalar) -> Result<Self> {
        let (other, weight) = other.into().weigh();
        subtract([(self, self.weight()), (&other, weight)], alpha)
    }

    /// Subtracts this tensor from a number.
    ///
    /// # Errors
    /// When an operand is of truth values or there is no memory.
    pub fn rsub(&self, number: Scalar) -> Result<Self> {
        let alpha = Scalar::Int(1);
        let _scope = open(&RSUB, (self, number, alpha));
        let (number, weight) = Operand::Scalar(number).weigh();
        subtract([(&number, weight), (self, self.weight())], alpha)
    }

    /// Multiplies by a tensor or a number.
    ///
    /// # Errors
    /// When the shapes do not broadcast or there is no memory.
    pub fn mul<'a>(&self, other: impl Into<Operand<'a>>) -> Result<Self> {
        let (other, weight) = other.into().weigh();
        let _scope = open(&MUL, (self, &*other));
        compute(Arithmetic::Mul, [(self, self.weight()), (&other, weight)])
    }

    /// Divides by a tensor or a number; integers give fractions.
    ///
    /// # Errors
    /// When the shapes do not broadcast or there is no memory.
    pub fn div<'a>(&self, other: impl Into<Operand<'a>>) -> Result<Self> {
        let (other, weight) = other.into().weigh();
        let _scope = open(&DIV, (self, &*other));
        compute(Arithmetic::Div, [(self, self.weight()), (&other, weight)])
    }

    /// Divides the elements of this floating-point tensor in place.
    pub(super) fn div_in_place(&self, number: Scalar) -> Result<()> {
        let _scope = open(&DIV_IN_PLACE, (self, number));
        let number = Tensor::from_scalar(number);
        let _scope = open(&DIV_IN_PLACE, (self, &number));
        let number = number.to(self.dtype())?;
        by_dtype!(self.dtype(), T => kernels::update(self, &number, T::over));
        Ok(())
    }
}

/// What is done with each pair of elements.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Arithmetic {
    Add(Scalar),
    Sub(Scalar),
    Mul,
    Div,
}

type Weighed<'a> = (&'a Tensor, Weight);

fn subtract(operands: [Weighed<'_>; 2], alpha: Scalar) -> Result<Tensor> {
    let [(left, _), (right, _)] = operands;
    let _scope = open(&SUB, (left, right, alpha));
    match (left.dtype(), right.dtype()) {
        (DType::Bool, DType::Bool) => Err(Error::BooleanSubtraction),
        (DType::Bool, _) | (_, DType::Bool) => Err(Error::MixedBooleanSubtraction),
        _ => compute(Arithmetic::Sub(alpha), operands),
    }
}

fn compute(operation: Arithmetic, operands: [Weighed<'_>; 2]) -> Result<Tensor> {
    let [(left, left_weight), (right, right_weight)] = operands;
    let broadcast_dims;
    let dims = if left.dims() == right.dims() {
        left.dims()
    } else {
        broadcast_dims = broadcast(left.dims(), right.dims())?;
        &broadcast_dims as &Dims
    };
    let mut dtype = promote([(left.dtype(), left_weight), (right.dtype(), right_weight)]);
    match operation {
        Arithmetic::Div => dtype = dtype.or_float(),
        Arithmetic::Add(alpha) | Arithmetic::Sub(alpha) => check_alpha(alpha, dtype)?,
        Arithmetic::Mul => {}
    }
    if left.dtype() == dtype && right.dtype() == dtype {
        return apply(operation, dims, [left, right], dtype);
    }
    let convert = |operand: &Tensor| {
        if operand.dtype() == dtype {
            Ok(operand.clone())
        } else {
            operand.to(dtype)
        }
    };
    let (left, right) = (convert(left)?, convert(right)?);
    apply(operation, dims, [&left, &right], dtype)
}

fn apply(
    operation: Arithmetic,
    dims: &[usize],
    operands: [&Tensor; 2],
    dtype: DType,
) -> Result<Tensor> {
    by_dtype!(dtype, T => match operation {
        Arithmetic::Add(alpha) if alpha.is_one() => kernels::zip(dims, operands, T::plus),
        Arithmetic::Add(alpha) => {
            let alpha = T::from_scalar(alpha);
            kernels::zip(dims, operands, move |x: T, y| x.plus(alpha.times(y)))
        }
        Arithmetic::Sub(alpha) if alpha.is_one() => kernels::zip(dims, operands, T::minus),
        Arithmetic::Sub(alpha) => {
            let alpha = T::from_scalar(alpha);
            kernels::zip(dims, operands, move |x: T, y| x.minus(alpha.times(y)))
        }
        Arithmetic::Mul => kernels::zip(dims, operands, T::times),
        Arithmetic::Div => kernels::zip(dims, operands, T::over),
    })
}

fn check_alpha(alpha: Scalar, dtype: DType) -> Result<()> {
    match alpha {
        Scalar::Bool(_) if dtype != DType::Bool => Err(Error::BooleanAlpha),
        Scalar::Float(_) if !dtype.is_float() => Err(Error::FractionalAlpha),
        Scalar::Bool(_) | Scalar::Int(_) | Scalar::Float(_) => Ok(()),
    }
}
