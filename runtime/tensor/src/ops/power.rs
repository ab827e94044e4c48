//! Powers, integer division and remainders.

use smallvec::smallvec;

use super::create::{Options, empty};
use crate::autograd::{Formula, Saved, differentiable, node_site};
use crate::dispatch::{Site, open};
use crate::dtype::promote;
use crate::element::{Number, by_number};
use crate::kernels;
use crate::shape::broadcast;
use crate::{Comparison, DType, Elementwise, Error, Operand, Result, Scalar, Tensor};

static FLOOR_DIVIDE: Site = Site::operator("aten::floor_divide");
static POW: Site = Site::operator("aten::pow");
static RESULT_TYPE: Site = Site::operator("aten::result_type");
static REMAINDER: Site = Site::operator("aten::remainder");

node_site! {
    POW_NUMBER_NODE = "PowBackward0";
    POW_NODE = "PowBackward1";
    REMAINDER_NODE = "RemainderBackward0";
}

impl Tensor {
    /// Raises to the power of a number.
    ///
    /// # Errors
    /// Returns an error if an integer is raised to a negative power, or memory cannot be allocated.
    pub fn pow(&self, exponent: Scalar) -> Result<Self> {
        let _scope = open(&POW, (self, exponent));
        differentiable(
            &POW_NUMBER_NODE,
            [self],
            || power(self, Operand::Scalar(exponent)),
            |_| {
                let kept = Saved::new(self);
                Formula::unary_saving(move |gradient| {
                    let less = exponent.to_f64() - 1.0;
                    if less <= -1.0 && exponent.to_f64() == 0.0 {
                        return gradient.zeros_like_contiguous();
                    }
                    // Both live until the end, as in torch; the memory timeline shows it.
                    let power = kept.get()?.pow(Scalar::Float(less))?;
                    let slope = power.mul_number(exponent)?;
                    gradient.mul(&slope)
                })
            },
        )
    }

    /// Raises to the powers given by another tensor.
    ///
    /// # Errors
    /// Returns an error if the shapes do not broadcast, an integer is raised to a negative power,
    /// or memory cannot be allocated.
    pub fn pow_tensor(&self, exponent: &Self) -> Result<Self> {
        let _scope = open(&POW, (self, exponent));
        differentiable(
            &POW_NODE,
            [self, exponent],
            || power(self, Operand::Tensor(exponent)),
            |result| {
                let kept = [
                    Saved::new(self),
                    Saved::new(exponent),
                    Saved::result(result, &POW_NODE),
                ];
                Formula::saving(move |gradients| {
                    let gradient = gradients.only();
                    let (base, exponent, result) = (kept[0].get()?, kept[1].get()?, kept[2].get()?);
                    let by_base = || {
                        let slope = base.pow_tensor(&exponent.sub(1_i64)?)?.mul(exponent)?;
                        gradient.mul(&slope)
                    };
                    let by_exponent = || {
                        let slope = result.mul(&base.elementwise(Elementwise::Log)?)?;
                        let zero = result.compare(Comparison::Eq, Scalar::Int(0))?;
                        gradient.mul(&slope.masked_fill(&zero, Scalar::Int(0))?)
                    };
                    Ok(smallvec![
                        gradients.when(0, by_base)?,
                        gradients.when(1, by_exponent)?
                    ])
                })
            },
        )
    }

    /// Divides and rounds towards negative infinity.
    ///
    /// # Errors
    /// Returns an error if the shapes do not broadcast, an integer is divided by zero, or memory
    /// cannot be allocated.
    pub fn floor_divide<'a>(&self, other: impl Into<Operand<'a>>) -> Result<Self> {
        let operand = other.into();
        let (other, weight) = operand.weigh();
        let _scope = open(&FLOOR_DIVIDE, (self, &*other));
        let dtype = promote([(self.dtype(), self.weight()), (other.dtype(), weight)]);
        let dims = broadcast(self.dims(), other.dims())?;
        let (left, right) = (self.as_type(dtype)?, other.as_type(dtype)?);
        drop(empty(&[0], dtype, &Options::strided(dtype))?);
        let pair: [&Self; 2] = [&left, &right];
        match dtype {
            DType::Bool => Err(Error::NotImplemented {
                kernel: "div_floor_cpu",
                dtype,
            }),
            DType::I32 => {
                refuse_zero(&right)?;
                kernels::zip(&dims, pair, |x: i32, y: i32| {
                    floor_quotient(x.into(), y.into()) as i32
                })
            }
            DType::I64 => {
                refuse_zero(&right)?;
                kernels::zip(&dims, pair, floor_quotient)
            }
            DType::BF16 | DType::F32 => kernels::zip(&dims, pair, |x: f32, y: f32| (x / y).floor()),
            DType::F64 => kernels::zip(&dims, pair, |x: f64, y: f64| (x / y).floor()),
        }
    }

    /// Returns the remainder of a floored division, which has the sign of the divisor.
    ///
    /// # Errors
    /// Returns an error if the shapes do not broadcast, an integer is divided by zero, or memory
    /// cannot be allocated.
    pub fn remainder<'a>(&self, other: impl Into<Operand<'a>>) -> Result<Self> {
        let operand = other.into();
        let (other, weight) = operand.weigh();
        let _number_scope = match operand {
            Operand::Scalar(number) => Some(open(&REMAINDER, (self, number))),
            Operand::Tensor(_) => None,
        };
        let _scope = open(&REMAINDER, (self, &*other));
        let dtype = promote([(self.dtype(), self.weight()), (other.dtype(), weight)]);
        let dims = broadcast(self.dims(), other.dims())?;
        differentiable(
            &REMAINDER_NODE,
            [self],
            || {
                let (left, right) = (self.as_type(dtype)?, other.as_type(dtype)?);
                let pair: [&Self; 2] = [&left, &right];
                match dtype {
                    DType::Bool => Err(Error::NotImplemented {
                        kernel: "remainder_cpu",
                        dtype,
                    }),
                    DType::I32 => {
                        refuse_zero(&right)?;
                        kernels::zip(&dims, pair, |x: i32, y: i32| {
                            x.wrapping_sub(
                                (floor_quotient(x.into(), y.into()) as i32).wrapping_mul(y),
                            )
                        })
                    }
                    DType::I64 => {
                        refuse_zero(&right)?;
                        kernels::zip(&dims, pair, |x: i64, y: i64| {
                            x.wrapping_sub(floor_quotient(x, y).wrapping_mul(y))
                        })
                    }
                    DType::BF16 | DType::F32 => kernels::zip(&dims, pair, |x: f32, y: f32| {
                        float_remainder(x.into(), y.into()) as f32
                    }),
                    DType::F64 => kernels::zip(&dims, pair, float_remainder),
                }
            },
            |_| Formula::unary(|gradient| Ok(gradient.clone())),
        )
    }
}

fn power(base: &Tensor, exponent: Operand<'_>) -> Result<Tensor> {
    let dtype = promote([(base.dtype(), base.weight()), exponent.kind()]);
    match exponent {
        Operand::Tensor(exponent) => {
            let dims = broadcast(base.dims(), exponent.dims())?;
            let (left, right) = (base.as_type(dtype)?, exponent.as_type(dtype)?);
            powers(&dims, [&left, &right], dtype)
        }
        // For a number, torch only determines the dtype and converts the base alone.
        Operand::Scalar(number) => {
            drop(open(&RESULT_TYPE, (base, number)));
            number_power(&base.to(dtype)?, number, dtype)
        }
    }
}

fn powers(dims: &[usize], pair: [&Tensor; 2], dtype: DType) -> Result<Tensor> {
    match dtype {
        DType::BF16 | DType::F32 => return kernels::zip(dims, pair, f32::powf),
        DType::F64 => return kernels::zip(dims, pair, f64::powf),
        DType::Bool | DType::I32 | DType::I64 => {}
    }
    if pair[1].to_vec::<i64>()?.iter().any(|&power| power < 0) {
        return negative_power();
    }
    match dtype {
        DType::I32 => kernels::zip(dims, pair, |x: i32, y: i32| x.wrapping_pow(y as u32)),
        DType::I64 => kernels::zip(dims, pair, |x: i64, y: i64| {
            x.wrapping_pow(u32::try_from(y).unwrap_or(u32::MAX))
        }),
        DType::Bool | DType::BF16 | DType::F32 | DType::F64 => Err(Error::NotImplemented {
            kernel: "pow",
            dtype,
        }),
    }
}

/// Raises to the power of one number. As in torch, exponents that need no kernel of their own are
/// recorded as the operators that they amount to.
#[expect(
    clippy::float_cmp,
    reason = "only these exact exponents are special cases"
)]
fn number_power(base: &Tensor, number: Scalar, dtype: DType) -> Result<Tensor> {
    let exponent = number.to_f64();
    if dtype != DType::Bool && (exponent == 0.0 || exponent == 1.0) {
        let layout = kernels::result_layout(base.dims(), [base.layout()])?.0;
        let result = Tensor::blank(layout, dtype)?;
        if exponent == 0.0 {
            result.fill_(Scalar::Int(1))?;
        } else {
            result.copy_(base)?;
        }
        return Ok(result);
    }
    if dtype.is_float() {
        if exponent == 2.0 {
            return by_number!(dtype, T => kernels::map(base, |x: T| x.times(x)));
        }
        return match dtype {
            DType::F64 => kernels::map(base, move |x: f64| x.powf(exponent)),
            _ => kernels::map(base, move |x: f32| x.powf(exponent as f32)),
        };
    }
    if exponent < 0.0 {
        return negative_power();
    }
    let power = u32::try_from(exponent as i64).unwrap_or(u32::MAX);
    match dtype {
        DType::I32 => kernels::map(base, move |x: i32| x.wrapping_pow(power)),
        DType::I64 => kernels::map(base, move |x: i64| x.wrapping_pow(power)),
        DType::Bool | DType::BF16 | DType::F32 | DType::F64 => Err(Error::NotImplemented {
            kernel: "pow",
            dtype,
        }),
    }
}

fn negative_power() -> Result<Tensor> {
    crate::error::reject!(
        Runtime,
        "Integers to negative integer powers are not allowed."
    )
}

fn floor_quotient(x: i64, y: i64) -> i64 {
    let quotient = x.wrapping_div(y);
    if x.wrapping_rem(y) != 0 && (x < 0) != (y < 0) {
        quotient - 1
    } else {
        quotient
    }
}

fn float_remainder(x: f64, y: f64) -> f64 {
    let left = x % y;
    if left != 0.0 && (left < 0.0) != (y < 0.0) {
        left + y
    } else {
        left
    }
}

fn refuse_zero(divisor: &Tensor) -> Result<()> {
    if divisor.to_vec::<i64>()?.contains(&0) {
        return Err(Error::DivisionByZero);
    }
    Ok(())
}
