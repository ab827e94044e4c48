//! The Gaussian error linear unit: `gelu`.

use crate::autograd::{Formula, Saved, differentiable, node_site};
use crate::dispatch::{Absent, Site, open};
use crate::element::{Real, by_float};
use crate::kernels;
use crate::ops::unary::erf;
use crate::{Result, Tensor};

static GELU: Site = Site::operator("aten::gelu");
static GELU_BACKWARD: Site = Site::operator("aten::gelu_backward");

node_site! {
    GELU_NODE = "GeluBackward0";
}

/// How `gelu` computes the normal distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approximation {
    /// Exactly, with the error function.
    #[default]
    None,
    /// Approximately, with the hyperbolic tangent.
    Tanh,
}

impl Tensor {
    /// Multiplies each element by the probability that a standard normal variable is below it.
    ///
    /// # Errors
    /// Returns an error if the dtype is not floating-point.
    pub fn gelu(&self, approximation: Approximation) -> Result<Self> {
        let _scope = open(&GELU, (self, Absent));
        differentiable(
            &GELU_NODE,
            [self],
            || {
                by_float!(self.dtype(), "GeluKernelImpl", T => {
                    kernels::map(self, move |x: T| approximation.value(x))
                })
            },
            |_| {
                let kept = Saved::new(self);
                Formula::unary_saving(move |gradient| {
                    let own = kept.get()?;
                    let _scope = open(&GELU_BACKWARD, (gradient, own, Absent));
                    by_float!(own.dtype(), "GeluBackwardKernelImpl", T => {
                        kernels::zip(own.dims(), [gradient, own], move |g: T, x: T| {
                            g * approximation.slope(x)
                        })
                    })
                })
            },
        )
    }
}

/// The constants of the approximation: the square root of two over pi, and the weight of the cube.
const OUTER: f64 = 0.797_884_560_802_865_4;
const CUBE: f64 = 0.044_715;

impl Approximation {
    fn value<T: Real>(self, x: T) -> T {
        let half = T::of(0.5) * x;
        match self {
            Self::None => half * (T::ONE + normal_part(x)),
            Self::Tanh => {
                let inner = T::of(OUTER) * (x + T::of(CUBE) * x * x * x);
                half * (T::ONE + inner.tanh())
            }
        }
    }

    fn slope<T: Real>(self, x: T) -> T {
        let half = T::of(0.5);
        match self {
            Self::None => {
                let below = half * (T::ONE + normal_part(x));
                let bell = (-half * x * x).exp() * T::of(0.398_942_280_401_432_7);
                below + x * bell
            }
            Self::Tanh => {
                let inner = T::of(OUTER) * (x + T::of(CUBE) * x * x * x);
                let tanh = inner.tanh();
                let inner_slope = T::of(OUTER) * (T::ONE + T::of(3.0 * CUBE) * x * x);
                half * (T::ONE + tanh) + half * x * (T::ONE - tanh * tanh) * inner_slope
            }
        }
    }
}

/// Returns the error function of `x` divided by the square root of two.
fn normal_part<T: Real>(x: T) -> T {
    T::of(erf(x.wide() * std::f64::consts::FRAC_1_SQRT_2))
}
