//! Element-wise operators on one tensor.

use std::cmp::Ordering;

use super::compare::tell_scalar_tensor;
use super::create::{Options, empty};
use crate::autograd::{Formula, NodeSite, Saved, differentiable, in_place, node_site};
use crate::dispatch::{Absent, Site, open, returning};
use crate::element::{Number, by_float, by_number};
use crate::kernels;
use crate::layout::Layout;
use crate::shape::Dims;
use crate::{DType, Element, Error, Result, Scalar, Tensor};

static CLAMP_MIN: Site = Site::operator("aten::clamp_min");
static CLAMP_MIN_IN_PLACE: Site = Site::operator("aten::clamp_min_");
static NEG: Site = Site::operator("aten::neg");
static NEG_IN_PLACE: Site = Site::operator("aten::neg_");
static RECIPROCAL: Site = Site::operator("aten::reciprocal");
static RELU: Site = Site::operator("aten::relu");
static RELU_IN_PLACE: Site = Site::operator("aten::relu_");
static SIGMOID_BACKWARD: Site = Site::operator("aten::sigmoid_backward");
static TANH_BACKWARD: Site = Site::operator("aten::tanh_backward");
static THRESHOLD_BACKWARD: Site = Site::operator("aten::threshold_backward");
static TO: Site = Site::operator("aten::to");

node_site! {
    ABS_NODE = "AbsBackward0";
    CEIL_NODE = "CeilBackward0";
    CLAMP_MIN_NODE = "ClampMinBackward0";
    COS_NODE = "CosBackward0";
    ERF_NODE = "ErfBackward0";
    EXP_NODE = "ExpBackward0";
    FLOOR_NODE = "FloorBackward0";
    LOG_NODE = "LogBackward0";
    NEG_NODE = "NegBackward0";
    RECIPROCAL_NODE = "ReciprocalBackward0";
    RELU_NODE = "ReluBackward0";
    ROUND_NODE = "RoundBackward0";
    RSQRT_NODE = "RsqrtBackward0";
    SIGMOID_NODE = "SigmoidBackward0";
    SGN_NODE = "SgnBackward0";
    SIGN_NODE = "SignBackward0";
    SIN_NODE = "SinBackward0";
    SQRT_NODE = "SqrtBackward0";
    TANH_NODE = "TanhBackward0";
}

/// An element-wise function whose derivative follows from its operand or its result.
///
/// Each function has a forward and an in-place variant, under torch's operator names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elementwise {
    /// The absolute value.
    Abs,
    /// The nearest integer above.
    Ceil,
    /// The cosine.
    Cos,
    /// The error function.
    Erf,
    /// The exponential.
    Exp,
    /// The nearest integer below.
    Floor,
    /// The natural logarithm.
    Log,
    /// The nearest integer; halves are rounded to even.
    Round,
    /// The reciprocal of the square root.
    Rsqrt,
    /// The logistic sigmoid.
    Sigmoid,
    /// The same function as `Sign`, under the name that torch uses in the gradient of `abs`.
    Sgn,
    /// The sign: -1, 0 or 1.
    Sign,
    /// The sine.
    Sin,
    /// The square root.
    Sqrt,
    /// The hyperbolic tangent.
    Tanh,
}

/// The operator names and the node of an [`Elementwise`].
struct Names {
    site: Site,
    in_place: Site,
    kernel: &'static str,
    node: &'static NodeSite,
}

macro_rules! names {
    ($($variant:ident $text:literal $node:ident;)+) => {
        impl Elementwise {
            fn names(self) -> &'static Names {
                match self {
                    $(Self::$variant => {
                        static NAMES: Names = Names {
                            site: Site::operator(concat!("aten::", $text)),
                            in_place: Site::operator(concat!("aten::", $text, "_")),
                            kernel: concat!($text, "_cpu"),
                            node: &$node,
                        };
                        &NAMES
                    })+
                }
            }
        }
    };
}

names! {
    Abs "abs" ABS_NODE;
    Ceil "ceil" CEIL_NODE;
    Cos "cos" COS_NODE;
    Erf "erf" ERF_NODE;
    Exp "exp" EXP_NODE;
    Floor "floor" FLOOR_NODE;
    Log "log" LOG_NODE;
    Round "round" ROUND_NODE;
    Rsqrt "rsqrt" RSQRT_NODE;
    Sigmoid "sigmoid" SIGMOID_NODE;
    Sgn "sgn" SGN_NODE;
    Sign "sign" SIGN_NODE;
    Sin "sin" SIN_NODE;
    Sqrt "sqrt" SQRT_NODE;
    Tanh "tanh" TANH_NODE;
}

impl Elementwise {
    /// Returns whether integers stay integers.
    fn keeps_integers(self) -> bool {
        matches!(
            self,
            Self::Abs | Self::Ceil | Self::Floor | Self::Round | Self::Sgn | Self::Sign
        )
    }

    fn compute<T: crate::element::Real>(self, x: T) -> T {
        let one = <T as num_traits::One>::one();
        match self {
            Self::Abs => num_traits::Float::abs(x),
            Self::Ceil => x.ceil(),
            Self::Cos => x.cos(),
            Self::Erf => T::of(erf(x.wide())),
            Self::Exp => x.exp(),
            Self::Floor => x.floor(),
            Self::Log => x.ln(),
            Self::Round => T::of(x.wide().round_ties_even()),
            Self::Rsqrt => one / x.sqrt(),
            Self::Sigmoid => one / (one + (-x).exp()),
            Self::Sgn | Self::Sign if x == T::ZERO || x.is_nan() => T::ZERO,
            Self::Sgn | Self::Sign => x.signum(),
            Self::Sin => x.sin(),
            Self::Sqrt => x.sqrt(),
            Self::Tanh => x.tanh(),
        }
    }

    /// Returns the gradient of the operand; `kept` is the operand or the result, see
    /// [`Elementwise::keeps_result`].
    fn derive(self, gradient: &Tensor, kept: &Tensor) -> Result<Tensor> {
        match self {
            Self::Abs => gradient.mul(&kept.elementwise(Self::Sgn)?),
            Self::Ceil | Self::Floor | Self::Round | Self::Sgn | Self::Sign => {
                gradient.zeros_like()
            }
            Self::Cos => gradient.mul(&kept.elementwise(Self::Sin)?.neg()?),
            Self::Erf => {
                let bell = kept.pow(Scalar::Int(2))?.neg()?.elementwise(Self::Exp)?;
                let scale = Scalar::Float(std::f64::consts::FRAC_2_SQRT_PI);
                bell.mul_number(scale)?.mul(gradient)
            }
            Self::Exp => gradient.mul(kept),
            Self::Log => gradient.div(kept),
            Self::Rsqrt => {
                let cube = kept.pow(Scalar::Int(3))?;
                gradient.mul_number(Scalar::Float(-0.5))?.mul(&cube)
            }
            Self::Sigmoid => sigmoid_backward(gradient, kept),
            Self::Sin => gradient.mul(&kept.elementwise(Self::Cos)?),
            Self::Sqrt => gradient.div(&kept.mul_number(Scalar::Int(2))?),
            Self::Tanh => tanh_backward(gradient, kept),
        }
    }

    fn keeps_result(self) -> bool {
        matches!(
            self,
            Self::Exp | Self::Rsqrt | Self::Sigmoid | Self::Sqrt | Self::Tanh
        )
    }
}

impl Tensor {
    /// Applies a function to each element. Most functions convert integers to floats.
    ///
    /// # Errors
    /// Returns an error if the function does not support the dtype or memory cannot be allocated.
    pub fn elementwise(&self, function: Elementwise) -> Result<Self> {
        let names = function.names();
        let _scope = open(&names.site, (self,));
        differentiable(
            names.node,
            [self],
            || {
                // The only function that torch computes through its `out` variant.
                let space = (function == Elementwise::Abs)
                    .then(|| empty(&[0], self.dtype(), &Options::strided(self.dtype())))
                    .transpose()?;
                let _scope = space.map(|space| open(&names.site, (self, &space)));
                if function.keeps_integers() && !self.dtype().is_float() {
                    return self.of_integers(function, names.kernel);
                }
                let operand = self.as_type(self.dtype().or_float())?;
                by_float!(operand.dtype(), names.kernel, T => {
                    kernels::map(&operand, move |x: T| function.compute(x))
                })
            },
            |result| {
                let kept = if function.keeps_result() {
                    Saved::result(result, names.node)
                } else {
                    Saved::new(self)
                };
                Formula::unary_saving(move |gradient| function.derive(gradient, kept.get()?))
            },
        )
    }

    /// Applies a function to each element, in place.
    ///
    /// # Errors
    /// Returns an error if the result would have another dtype.
    pub fn elementwise_(&self, function: Elementwise) -> Result<()> {
        let names = function.names();
        let _scope = open(&names.in_place, (self,));
        let before = (!function.keeps_result() && self.requires_grad())
            .then(|| self.duplicate_below())
            .transpose()?;
        in_place(
            names.node,
            self,
            [],
            || {
                let _scope =
                    (function == Elementwise::Abs).then(|| open(&names.site, (self, self)));
                if !self.dtype().is_float() {
                    if function.keeps_integers() {
                        let result = self.of_integers(function, names.kernel)?;
                        kernels::copy_into(self, &result);
                        return Ok(());
                    }
                    return Err(Error::ResultType {
                        result: DType::DEFAULT,
                        output: self.dtype(),
                    });
                }
                by_float!(self.dtype(), names.kernel, T => {
                    kernels::update_each(self, move |x: T| function.compute(x))
                })
            },
            || {
                let kept = before.as_ref().map_or_else(|| Saved::new(self), Saved::new);
                Formula::unary_saving(move |gradient| function.derive(gradient, kept.get()?))
            },
        )
    }

    fn of_integers(&self, function: Elementwise, kernel: &'static str) -> Result<Self> {
        if self.dtype() == DType::Bool {
            return Err(Error::NotImplemented {
                kernel,
                dtype: self.dtype(),
            });
        }
        match function {
            Elementwise::Abs => by_number!(self.dtype(), T => kernels::map(self, magnitude::<T>)),
            Elementwise::Sgn | Elementwise::Sign => {
                by_number!(self.dtype(), T => kernels::map(self, sign::<T>))
            }
            _ => kernels::duplicate(self),
        }
    }

    /// Negates each element.
    ///
    /// # Errors
    /// Returns an error if the elements are boolean or memory cannot be allocated.
    pub fn neg(&self) -> Result<Self> {
        let _scope = open(&NEG, (self,));
        if self.dtype() == DType::Bool {
            return Err(Error::BooleanNegation);
        }
        differentiable(
            &NEG_NODE,
            [self],
            || by_number!(self.dtype(), T => kernels::map(self, T::negated)),
            |_| Formula::unary(Tensor::neg),
        )
    }

    /// Negates each element, in place.
    ///
    /// # Errors
    /// Returns an error if the elements are boolean.
    pub fn neg_(&self) -> Result<()> {
        let _scope = open(&NEG_IN_PLACE, (self,));
        if self.dtype() == DType::Bool {
            return Err(Error::BooleanNegation);
        }
        in_place(
            &NEG_NODE,
            self,
            [],
            || by_number!(self.dtype(), T => kernels::update_each(self, T::negated)),
            || Formula::unary(Tensor::neg),
        )
    }

    /// Replaces negative elements with zero.
    ///
    /// # Errors
    /// Returns an error if the elements are boolean or memory cannot be allocated.
    pub fn relu(&self) -> Result<Self> {
        let _scope = open(&RELU, (self,));
        if self.dtype() == DType::Bool {
            return Err(Error::BooleanRelu);
        }
        differentiable(
            &RELU_NODE,
            [self],
            || self.clamp_min(Scalar::Int(0)),
            |result| {
                let kept = Saved::result(result, &RELU_NODE);
                Formula::unary_saving(move |gradient| threshold_backward(gradient, kept.get()?))
            },
        )
    }

    /// Replaces negative elements with zero, in place.
    ///
    /// # Errors
    /// Returns an error if the elements are boolean.
    pub fn relu_(&self) -> Result<()> {
        let _scope = open(&RELU_IN_PLACE, (self,));
        if self.dtype() == DType::Bool {
            return Err(Error::BooleanRelu);
        }
        in_place(
            &RELU_NODE,
            self,
            [],
            || {
                let _scope = open(&CLAMP_MIN_IN_PLACE, (self, Scalar::Int(0)));
                by_number!(self.dtype(), T => {
                    kernels::update_each(self, |x: T| x.at_least(T::ZERO))
                })
            },
            || {
                let kept = Saved::new(self);
                Formula::unary_saving(move |gradient| threshold_backward(gradient, kept.get()?))
            },
        )
    }

    /// Raises elements below a number to that number; NaN stays.
    ///
    /// # Errors
    /// Returns an error if memory cannot be allocated.
    pub fn clamp_min(&self, lowest: Scalar) -> Result<Self> {
        let _scope = open(&CLAMP_MIN, (self, lowest));
        if !self.dtype().is_float() {
            drop(open(&TO, (self, self.dtype(), false, false, Absent)));
        }
        differentiable(
            &CLAMP_MIN_NODE,
            [self],
            || {
                by_number!(self.dtype(), T => {
                    let lowest = T::from_scalar(lowest);
                    kernels::map(self, move |x: T| x.at_least(lowest))
                })
            },
            |_| {
                let kept = Saved::new(self);
                Formula::unary_saving(move |gradient| {
                    tell_scalar_tensor(gradient.dtype());
                    let inside = kept.get()?.compare(crate::Comparison::Gt, lowest)?;
                    let zero = Tensor::blank(Layout::contiguous(Dims::new())?, gradient.dtype())?;
                    Tensor::choose(&inside, gradient, &zero)
                })
            },
        )
    }

    /// Returns the reciprocal of each element; integers give fractions.
    ///
    /// # Errors
    /// Returns an error if memory cannot be allocated.
    pub fn reciprocal(&self) -> Result<Self> {
        let _scope = open(&RECIPROCAL, (self,));
        differentiable(
            &RECIPROCAL_NODE,
            [self],
            || {
                let operand = self.as_type(self.dtype().or_float())?;
                by_number!(operand.dtype(), T => kernels::map(&operand, |x: T| T::ONE.over(x)))
            },
            |result| {
                let kept = Saved::result(result, &RECIPROCAL_NODE);
                Formula::unary_saving(move |gradient| {
                    let result = kept.get()?;
                    let square = result.mul(result)?;
                    gradient.neg()?.mul(&square)
                })
            },
        )
    }
}

fn threshold_backward(gradient: &Tensor, result: &Tensor) -> Result<Tensor> {
    let _scope = open(&THRESHOLD_BACKWARD, (gradient, result, Scalar::Int(0)));
    returning(by_number!(gradient.dtype(), T => {
        kernels::zip(gradient.dims(), [gradient, result], |g: T, y: T| {
            if is_positive(y) { g } else { T::ZERO }
        })
    }))
}

fn is_positive<T: Number>(x: T) -> bool {
    x > T::ZERO
}

fn magnitude<T: Number>(x: T) -> T {
    if x < T::ZERO { x.negated() } else { x }
}

fn sign<T: Number>(x: T) -> T {
    match x.partial_cmp(&T::ZERO) {
        Some(Ordering::Less) => T::ONE.negated(),
        Some(Ordering::Greater) => T::ONE,
        Some(Ordering::Equal) | None => T::ZERO,
    }
}

fn sigmoid_backward(gradient: &Tensor, result: &Tensor) -> Result<Tensor> {
    let _scope = open(&SIGMOID_BACKWARD, (gradient, result));
    returning(by_float!(gradient.dtype(), "sigmoid_backward_cpu", T => {
        kernels::zip(gradient.dims(), [gradient, result], |g: T, y: T| g * (1.0 - y) * y)
    }))
}

fn tanh_backward(gradient: &Tensor, result: &Tensor) -> Result<Tensor> {
    let _scope = open(&TANH_BACKWARD, (gradient, result));
    returning(by_float!(gradient.dtype(), "tanh_backward_cpu", T => {
        kernels::zip(gradient.dims(), [gradient, result], |g: T, y: T| g * (1.0 - y * y))
    }))
}

/// Returns the error function, to double precision.
///
/// Small arguments use its series, and large ones the continued fraction of its complement.
pub(crate) fn erf(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    let size = x.abs();
    if size > 6.0 {
        return x.signum();
    }
    if size < 2.5 {
        let square = x * x;
        let (mut term, mut sum) = (x, x);
        for n in 1..60 {
            term *= -square / f64::from(n);
            let part = term / f64::from(2 * n + 1);
            sum += part;
            if part.abs() < 1e-17 * sum.abs() {
                break;
            }
        }
        return sum * std::f64::consts::FRAC_2_SQRT_PI;
    }
    let mut fraction = size;
    for n in (1..60).rev() {
        fraction = size + f64::from(n) / 2.0 / fraction;
    }
    let complement = (-size * size).exp() / (fraction * std::f64::consts::PI.sqrt());
    x.signum() * (1.0 - complement)
}

#[cfg(test)]
mod tests {
    use super::erf;

    #[test]
    fn the_error_function_is_exact_to_double_precision() {
        let known = [
            (0.0, 0.0),
            (0.5, 0.520_499_877_813_046_5),
            (1.0, 0.842_700_792_949_714_9),
            (2.4, 0.999_311_486_103_354_9),
            (2.6, 0.999_763_965_583_470_7),
            (-3.5, -0.999_999_256_901_627_7),
            (7.0, 1.0),
        ];
        for (x, y) in known {
            assert!((erf(x) - y).abs() < 2e-16, "{x}: {} {y}", erf(x));
        }
    }
}
