//! Binary arithmetic: `add`, `sub`, `mul`, `div` and their variants.
//!
//! Operands broadcast. If their dtypes differ, each is first converted to the common dtype, by a
//! recorded operator of its own.

use smallvec::smallvec;

use crate::autograd::{Formula, Saved, differentiable, node_site};
use crate::dispatch::{Site, open};
use crate::dtype::{Weight, promote};
use crate::element::{Number, by_number};
use crate::kernels;
use crate::shape::{Dims, broadcast};
use crate::{DType, Element, Error, Operand, Result, Scalar, Tensor};

static ADD: Site = Site::operator("aten::add");
static DIV: Site = Site::operator("aten::div");
static MUL: Site = Site::operator("aten::mul");
static RSUB: Site = Site::operator("aten::rsub");
static SUB: Site = Site::operator("aten::sub");

node_site! {
    ADD_NODE = "AddBackward0";
    ADD_NUMBER_NODE = "AddBackward1";
    DIV_NODE = "DivBackward0";
    DIV_NUMBER_NODE = "DivBackward1";
    MUL_NODE = "MulBackward0";
    MUL_NUMBER_NODE = "MulBackward1";
    RSUB_NODE = "RsubBackward1";
    SUB_NODE = "SubBackward0";
}

impl Tensor {
    /// Adds a tensor or a number.
    ///
    /// # Errors
    /// Returns an error if the shapes do not broadcast or memory cannot be allocated.
    pub fn add<'a>(&self, other: impl Into<Operand<'a>>) -> Result<Self> {
        self.add_scaled(other, Scalar::Int(1))
    }

    /// Adds `alpha` times a tensor or a number.
    ///
    /// # Errors
    /// Returns an error if the shapes do not broadcast, the dtype cannot be scaled by `alpha`, or
    /// memory cannot be allocated.
    pub fn add_scaled<'a>(&self, other: impl Into<Operand<'a>>, alpha: Scalar) -> Result<Self> {
        let (other, weight) = other.into().weigh();
        let _scope = open(&ADD, (self, &*other, alpha));
        let operands = [(self, self.weight()), (&*other, weight)];
        differentiable(
            &ADD_NODE,
            [self, &other],
            || compute(Arithmetic::Add(alpha), operands),
            |_| sum_formula(alpha, Sign::Plus),
        )
    }

    /// Subtracts a tensor or a number.
    ///
    /// # Errors
    /// Returns an error if the shapes do not broadcast, an operand is boolean, or memory cannot be
    /// allocated.
    pub fn sub<'a>(&self, other: impl Into<Operand<'a>>) -> Result<Self> {
        self.sub_scaled(other, Scalar::Int(1))
    }

    /// Subtracts `alpha` times a tensor or a number.
    ///
    /// # Errors
    /// Returns an error if the shapes do not broadcast, the dtypes are not supported, or memory
    /// cannot be allocated.
    pub fn sub_scaled<'a>(&self, other: impl Into<Operand<'a>>, alpha: Scalar) -> Result<Self> {
        let (other, weight) = other.into().weigh();
        subtract([(self, self.weight()), (&other, weight)], alpha)
    }

    /// Subtracts this tensor from a number.
    ///
    /// # Errors
    /// Returns an error if an operand is boolean or memory cannot be allocated.
    pub fn rsub(&self, number: Scalar) -> Result<Self> {
        let alpha = Scalar::Int(1);
        let _scope = open(&RSUB, (self, number, alpha));
        let (number, weight) = Operand::Scalar(number).weigh();
        differentiable(
            &RSUB_NODE,
            [self],
            || subtract([(&number, weight), (self, self.weight())], alpha),
            |_| Formula::unary(Tensor::neg),
        )
    }

    /// Multiplies by a tensor or a number.
    ///
    /// # Errors
    /// Returns an error if the shapes do not broadcast or memory cannot be allocated.
    pub fn mul<'a>(&self, other: impl Into<Operand<'a>>) -> Result<Self> {
        let (other, weight) = other.into().weigh();
        let _scope = open(&MUL, (self, &*other));
        let operands = [(self, self.weight()), (&*other, weight)];
        differentiable(
            &MUL_NODE,
            [self, &other],
            || compute(Arithmetic::Mul, operands),
            |_| product_formula(self, &other),
        )
    }

    /// Divides by a tensor or a number; dividing integers gives fractions.
    ///
    /// # Errors
    /// Returns an error if the shapes do not broadcast or memory cannot be allocated.
    pub fn div<'a>(&self, other: impl Into<Operand<'a>>) -> Result<Self> {
        let (other, weight) = other.into().weigh();
        let _scope = open(&DIV, (self, &*other));
        let operands = [(self, self.weight()), (&*other, weight)];
        differentiable(
            &DIV_NODE,
            [self, &other],
            || compute(Arithmetic::Div, operands),
            |_| quotient_formula(self, &other),
        )
    }

    /// Multiplies by a number that an operator, not the caller, has chosen; it is recorded as a
    /// scalar.
    pub(in crate::ops) fn mul_number(&self, number: Scalar) -> Result<Self> {
        let _scope = open(&MUL, (self, number));
        differentiable(
            &MUL_NUMBER_NODE,
            [self],
            || self.mul(number),
            |_| Formula::unary(move |gradient| gradient.mul_number(number)),
        )
    }

    /// Divides by a number that an operator, not the caller, has chosen; it is recorded as a
    /// scalar.
    pub(in crate::ops) fn div_number(&self, number: Scalar) -> Result<Self> {
        let _scope = open(&DIV, (self, number));
        differentiable(
            &DIV_NUMBER_NODE,
            [self],
            || self.div(number),
            |_| Formula::unary(move |gradient| gradient.div_number(number)),
        )
    }

    /// Adds a number that an operator, not the caller, has chosen; it is recorded as a scalar.
    pub(in crate::ops) fn add_number(&self, number: Scalar) -> Result<Self> {
        let _scope = open(&ADD, (self, number, Scalar::Int(1)));
        differentiable(
            &ADD_NUMBER_NODE,
            [self],
            || self.add(number),
            |_| Formula::unary(|gradient| Ok(gradient.clone())),
        )
    }
}

/// Whether an operand is added or subtracted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::ops) enum Sign {
    Plus,
    Minus,
}

/// Returns the gradient formula of a sum with `alpha` times the second operand.
pub(in crate::ops) fn sum_formula(alpha: Scalar, sign: Sign) -> Formula {
    Formula::plain(move |gradients| {
        let gradient = gradients.only();
        let second = gradients.when(1, || {
            let signed = match sign {
                Sign::Plus => gradient.clone(),
                Sign::Minus => gradient.neg()?,
            };
            if alpha.is_one() {
                Ok(signed)
            } else {
                signed.mul_number(alpha)
            }
        })?;
        Ok(smallvec![
            gradients.needs(0).then(|| gradient.clone()),
            second
        ])
    })
}

/// Returns the gradient formula of a product.
pub(in crate::ops) fn product_formula(left: &Tensor, right: &Tensor) -> Formula {
    let kept_left = right.requires_grad().then(|| Saved::new(left));
    let kept_right = left.requires_grad().then(|| Saved::new(right));
    Formula::saving(move |gradients| {
        let gradient = gradients.only();
        // The second operand comes first, as in torch; traces show the order.
        let by_right = gradients.when(1, || gradient.mul(kept(kept_left.as_ref())?))?;
        let by_left = gradients.when(0, || gradient.mul(kept(kept_right.as_ref())?))?;
        Ok(smallvec![by_left, by_right])
    })
}

/// Returns the gradient formula of a quotient.
pub(in crate::ops) fn quotient_formula(left: &Tensor, right: &Tensor) -> Formula {
    let kept_left = right.requires_grad().then(|| Saved::new(left));
    let kept_right = Saved::new(right);
    Formula::saving(move |gradients| {
        let (gradient, right) = (gradients.only(), kept_right.get()?);
        let second = gradients.when(1, || {
            let ratio = kept(kept_left.as_ref())?.div(right)?.div(right)?;
            gradient.neg()?.mul(&ratio)
        })?;
        Ok(smallvec![
            gradients.when(0, || gradient.div(right))?,
            second
        ])
    })
}

/// Returns a tensor that was saved because the other operand is tracked.
pub(in crate::ops) fn kept(saved: Option<&Saved>) -> Result<&Tensor> {
    saved
        .expect("a gradient is only computed for an operand that was tracked")
        .get()
}

/// The operation on each pair of elements.
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
        _ => differentiable(
            &SUB_NODE,
            [left, right],
            || compute(Arithmetic::Sub(alpha), operands),
            |_| sum_formula(alpha, Sign::Minus),
        ),
    }
}

#[inline]
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
    let (left, right) = (left.as_type(dtype)?, right.as_second(dtype)?);
    apply(operation, dims, [&left, &right], dtype)
}

fn apply(
    operation: Arithmetic,
    dims: &[usize],
    operands: [&Tensor; 2],
    dtype: DType,
) -> Result<Tensor> {
    by_number!(dtype, T => match operation {
        Arithmetic::Add(alpha) if alpha.is_one() => kernels::zip(dims, operands, T::plus),
        Arithmetic::Add(alpha) => {
            let alpha = T::from_scalar(alpha.stored(dtype));
            kernels::zip(dims, operands, move |x: T, y| x.plus(alpha.times(y)))
        }
        Arithmetic::Sub(alpha) if alpha.is_one() => kernels::zip(dims, operands, T::minus),
        Arithmetic::Sub(alpha) => {
            let alpha = T::from_scalar(alpha.stored(dtype));
            kernels::zip(dims, operands, move |x: T, y| x.minus(alpha.times(y)))
        }
        Arithmetic::Mul => kernels::zip(dims, operands, T::times),
        Arithmetic::Div => kernels::zip(dims, operands, T::over),
    })
}

pub(in crate::ops) fn check_alpha(alpha: Scalar, dtype: DType) -> Result<()> {
    match alpha {
        Scalar::Bool(_) if dtype != DType::Bool => Err(Error::BooleanAlpha),
        Scalar::Float(_) if !dtype.is_float() => Err(Error::FractionalAlpha),
        Scalar::Bool(_) | Scalar::Int(_) | Scalar::Float(_) => Ok(()),
    }
}
