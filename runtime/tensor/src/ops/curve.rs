//! Element-wise functions that are computed in double precision: activations, and logarithms other
//! than the natural one.

use super::create::{Options, empty};
use crate::autograd::{Formula, NodeSite, Saved, differentiable, node_site};
use crate::dispatch::{Absent, Scope, Site, open, returning};
use crate::element::{Real, by_float};
use crate::kernels;
use crate::shape::signed;
use crate::{Result, Scalar, Tensor};

static ELU: Site = Site::operator("aten::elu");
static ELU_BACKWARD: Site = Site::operator("aten::elu_backward");
static EMPTY_LIKE: Site = Site::operator("aten::empty_like");
static EXPM1: Site = Site::operator("aten::expm1");
static LEAKY_RELU: Site = Site::operator("aten::leaky_relu");
static LEAKY_RELU_BACKWARD: Site = Site::operator("aten::leaky_relu_backward");
static LOG1P: Site = Site::operator("aten::log1p");
static LOG2: Site = Site::operator("aten::log2");
static LOG_SIGMOID: Site = Site::operator("aten::log_sigmoid");
static LOG_SIGMOID_BACKWARD: Site = Site::operator("aten::log_sigmoid_backward");
static LOG_SIGMOID_FORWARD: Site = Site::operator("aten::log_sigmoid_forward");
static SILU: Site = Site::operator("aten::silu");
static SILU_BACKWARD: Site = Site::operator("aten::silu_backward");
static SOFTPLUS: Site = Site::operator("aten::softplus");
static SOFTPLUS_BACKWARD: Site = Site::operator("aten::softplus_backward");

node_site! {
    ELU_NODE = "EluBackward0";
    EXPM1_NODE = "Expm1Backward0";
    LEAKY_RELU_NODE = "LeakyReluBackward0";
    LOG1P_NODE = "Log1PBackward0";
    LOG2_NODE = "Log2Backward0";
    LOG_SIGMOID_NODE = "LogSigmoidBackward0";
    SILU_NODE = "SiluBackward0";
    SOFTPLUS_NODE = "SoftplusBackward0";
}

/// An element-wise function computed in double precision.
///
/// Parameterized activations carry their parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Curve {
    /// ELU, with its scale `alpha` for negative inputs.
    Elu(Scalar),
    /// The exponential minus one.
    Expm1,
    /// Leaky `ReLU`, with its slope for negative inputs.
    LeakyRelu(Scalar),
    /// The natural logarithm of one plus the element.
    Log1p,
    /// The logarithm to base two.
    Log2,
    /// The logarithm of the sigmoid.
    LogSigmoid,
    /// The element times its sigmoid.
    Silu,
    /// Softplus, with its `beta` and the threshold above which it is linear.
    Softplus(Scalar, Scalar),
}

const ONE: Scalar = Scalar::Int(1);

impl Curve {
    fn node(self) -> &'static NodeSite {
        match self {
            Self::Elu(_) => &ELU_NODE,
            Self::Expm1 => &EXPM1_NODE,
            Self::LeakyRelu(_) => &LEAKY_RELU_NODE,
            Self::Log1p => &LOG1P_NODE,
            Self::Log2 => &LOG2_NODE,
            Self::LogSigmoid => &LOG_SIGMOID_NODE,
            Self::Silu => &SILU_NODE,
            Self::Softplus(..) => &SOFTPLUS_NODE,
        }
    }

    fn open(self, operand: &Tensor) -> Scope {
        match self {
            Self::Elu(alpha) => open(&ELU, (operand, alpha, ONE, ONE)),
            Self::Expm1 => open(&EXPM1, (operand,)),
            Self::LeakyRelu(slope) => open(&LEAKY_RELU, (operand, slope)),
            Self::Log1p => open(&LOG1P, (operand,)),
            Self::Log2 => open(&LOG2, (operand,)),
            Self::LogSigmoid => open(&LOG_SIGMOID, (operand,)),
            Self::Silu => open(&SILU, (operand,)),
            Self::Softplus(beta, threshold) => open(&SOFTPLUS, (operand, beta, threshold)),
        }
    }

    fn value(self, x: f64) -> f64 {
        match self {
            Self::Elu(alpha) if x <= 0.0 => alpha.to_f64() * x.exp_m1(),
            Self::LeakyRelu(slope) if x <= 0.0 => slope.to_f64() * x,
            Self::Elu(_) | Self::LeakyRelu(_) => x,
            Self::Expm1 => x.exp_m1(),
            Self::Log1p => x.ln_1p(),
            Self::Log2 => x.log2(),
            Self::LogSigmoid => x.min(0.0) - (-x.abs()).exp().ln_1p(),
            Self::Silu => x / (1.0 + (-x).exp()),
            Self::Softplus(beta, threshold) => {
                let scaled = x * beta.to_f64();
                if scaled > threshold.to_f64() {
                    x
                } else {
                    scaled.exp().ln_1p() / beta.to_f64()
                }
            }
        }
    }

    fn slope(self, x: f64) -> f64 {
        match self {
            Self::Elu(alpha) if x <= 0.0 => alpha.to_f64() * x.exp(),
            Self::LeakyRelu(slope) if x <= 0.0 => slope.to_f64(),
            Self::Elu(_) | Self::LeakyRelu(_) => 1.0,
            Self::Expm1 => x.exp(),
            Self::Log1p => 1.0 / (1.0 + x),
            Self::Log2 => std::f64::consts::LOG2_E / x,
            Self::LogSigmoid => 1.0 / (1.0 + x.exp()),
            Self::Silu => {
                let part = 1.0 / (1.0 + (-x).exp());
                part * (1.0 + x * (1.0 - part))
            }
            Self::Softplus(beta, threshold) => {
                let scaled = x * beta.to_f64();
                if scaled > threshold.to_f64() {
                    1.0
                } else {
                    1.0 / (1.0 + (-scaled).exp())
                }
            }
        }
    }

    fn derive(self, gradient: &Tensor, operand: &Tensor) -> Result<Tensor> {
        let _scope = match self {
            Self::Elu(alpha) => open(&ELU_BACKWARD, (gradient, alpha, ONE, ONE, false, operand)),
            Self::LeakyRelu(slope) => open(&LEAKY_RELU_BACKWARD, (gradient, operand, slope, false)),
            Self::LogSigmoid => open(&LOG_SIGMOID_BACKWARD, (gradient, operand, operand)),
            Self::Silu => open(&SILU_BACKWARD, (gradient, operand)),
            Self::Softplus(beta, threshold) => {
                open(&SOFTPLUS_BACKWARD, (gradient, operand, beta, threshold))
            }
            Self::Log1p => return gradient.div(&operand.add_number(ONE)?),
            Self::Log2 => {
                let scale = Scalar::Float(std::f64::consts::LN_2);
                return gradient.div(&operand.mul_number(scale)?);
            }
            Self::Expm1 => return gradient.mul(&operand.add_number(ONE)?),
        };
        returning(by_float!(gradient.dtype(), "curve_backward_cpu", T => {
            kernels::zip(gradient.dims(), [gradient, operand], |g: T, x: T| {
                T::of(g.wide() * self.slope(x.wide()))
            })
        }))
    }
}

impl Tensor {
    /// Applies a function to each element.
    ///
    /// # Errors
    /// Returns an error if the function does not support the dtype or memory cannot be allocated.
    pub fn curve(&self, function: Curve) -> Result<Self> {
        let _scope = function.open(self);
        differentiable(
            function.node(),
            [self],
            || {
                let _forward = (function == Curve::LogSigmoid)
                    .then(|| open_forward(self))
                    .transpose()?;
                let operand = match function {
                    Curve::Expm1 | Curve::Log1p | Curve::Log2 => {
                        self.as_type(self.dtype().or_float())?
                    }
                    _ => std::borrow::Cow::Borrowed(self),
                };
                by_float!(operand.dtype(), "curve_cpu", T => {
                    kernels::map(&operand, move |x: T| T::of(function.value(x.wide())))
                })
            },
            |result| {
                let kept = if function == Curve::Expm1 {
                    Saved::result(result, function.node())
                } else {
                    Saved::new(self)
                };
                Formula::unary_saving(move |gradient| function.derive(gradient, kept.get()?))
            },
        )
    }
}

/// Opens the scope of `log_sigmoid_forward`, with the buffer that it allocates.
fn open_forward(operand: &Tensor) -> Result<Scope> {
    const CONTIGUOUS: i64 = 0;
    let scope = open(&LOG_SIGMOID_FORWARD, (operand,));
    for _ in 0..2 {
        let arguments = (operand, Absent, Absent, Absent, Absent, CONTIGUOUS);
        let _scope = open(&EMPTY_LIKE, arguments);
        let options = Options::like(operand).with_format(CONTIGUOUS);
        empty(&signed(operand.dims()), operand.dtype(), &options)?;
    }
    Ok(scope)
}
