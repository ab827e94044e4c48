//! Measures of dispersion: `var` and `std`.

use super::create::{Options, empty, result_space};
use super::reduce::{KeepDims, combined, reduced_dims, restore, with_combined};
use crate::autograd::{Formula, Saved, differentiable, node_site};
use crate::dispatch::{Site, open};
use crate::element::by_float;
use crate::error::reject;
use crate::kernels;
use crate::shape::dimension_mask;
use crate::{Comparison, Result, Scalar, Tensor};

static STD: Site = Site::operator("aten::std");
static VAR: Site = Site::operator("aten::var");

node_site! {
    STD_NODE = "StdBackward0";
    VAR_NODE = "VarBackward0";
}

/// The measure of dispersion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// The variance.
    Variance,
    /// The standard deviation.
    Deviation,
}

impl Spread {
    fn site(self) -> &'static Site {
        match self {
            Self::Variance => &VAR,
            Self::Deviation => &STD,
        }
    }
}

impl Tensor {
    /// Returns the variance or the standard deviation of all elements, or of those along some
    /// dimensions.
    ///
    /// # Errors
    /// Returns an error if the dtype is not floating-point or a dimension does not exist.
    pub fn spread(
        &self,
        spread: Spread,
        dimensions: Option<&[i64]>,
        correction: f64,
        keep: KeepDims,
    ) -> Result<Self> {
        let list = dimensions.unwrap_or(&[]);
        let _scope = open(spread.site(), (self, list, correction, keep.flag()));
        if !self.dtype().is_float() {
            return reject!(
                NotImplemented,
                "std and var only support floating point and complex dtypes"
            );
        }
        let reduced = dimension_mask(list, self.rank())?;
        let count: usize = combined(self.dims(), &reduced).product();
        let degrees = count as f64 - correction;
        let node = match spread {
            Spread::Variance => &VAR_NODE,
            Spread::Deviation => &STD_NODE,
        };
        differentiable(
            node,
            [self],
            || self.measure(spread, dimensions, degrees, keep),
            |result| {
                let (own, result) = (Saved::new(self), Saved::new(result));
                let list = dimensions.map(<[i64]>::to_vec);
                Formula::unary_saving(move |gradient| {
                    let gradient = match spread {
                        Spread::Variance => gradient.clone(),
                        Spread::Deviation => deviation_gradient(gradient, result.get()?)?,
                    };
                    let own = own.get()?;
                    let (gradient, mean) = match &list {
                        Some(list) => (
                            restore(&gradient, &reduced, keep)?,
                            own.mean(Some(list), KeepDims::Yes, None)?,
                        ),
                        None => (gradient, own.mean(None, KeepDims::No, None)?),
                    };
                    let centred = own.sub(&mean)?;
                    let scaled = gradient.mul_number(Scalar::Float(2.0 / degrees))?;
                    scaled.mul(&centred)
                })
            },
        )
    }

    /// Returns the variance or the standard deviation, with a correction of one if `unbiased`, else
    /// of zero.
    ///
    /// # Errors
    /// Fails in the same cases as `spread`.
    pub fn spread_unbiased(
        &self,
        spread: Spread,
        dimensions: Option<&[i64]>,
        unbiased: bool,
        keep: KeepDims,
    ) -> Result<Self> {
        let _scope = match dimensions {
            Some(list) => open(spread.site(), (self, list, unbiased, keep.flag())),
            None => open(spread.site(), (self, unbiased)),
        };
        self.spread(spread, dimensions, f64::from(u8::from(unbiased)), keep)
    }

    fn measure(
        &self,
        spread: Spread,
        dimensions: Option<&[i64]>,
        degrees: f64,
        keep: KeepDims,
    ) -> Result<Self> {
        let reduced = dimension_mask(dimensions.unwrap_or(&[]), self.rank())?;
        let dims = reduced_dims(self.dims(), &reduced, keep);
        drop(empty(&[0], self.dtype(), &Options::like(self))?);
        let result = result_space(&dims, self.dtype())?;
        if keep == KeepDims::No {
            with_combined(&result, self.dims(), &reduced)?;
        }
        let is_of_all = dimensions.is_none() && self.count() > 0;
        if is_of_all {
            // Over all elements, torch centers by a number, which it fetches with `item`.
            self.mean(None, KeepDims::No, None)?.item()?;
        }
        let measured = by_float!(self.dtype(), "std_and_var", T => {
            let ones = reduced_dims(self.dims(), &reduced, KeepDims::Yes);
            let mean = result_space(&ones, self.dtype().computed())?;
            kernels::sum::<T>(&mean, self, &reduced)?;
            let count = combined(self.dims(), &reduced).product::<usize>() as T;
            let mean = kernels::map(&mean, move |sum: T| sum / count)?;
            let squares = kernels::zip(self.dims(), [self, &mean], |x: T, mean: T| {
                (x - mean) * (x - mean)
            })?;
            kernels::sum::<T>(&result, &squares, &reduced)?;
            let degrees = degrees.max(0.0) as T;
            kernels::map(&result, move |sum: T| match spread {
                Spread::Variance => sum / degrees,
                Spread::Deviation => (sum / degrees).sqrt(),
            })
        })?;
        if is_of_all && let [value] = measured.to_f64_vec()?[..] {
            result.fill_(Scalar::Float(value))?;
            return Ok(result);
        }
        Ok(measured)
    }
}

/// Returns the gradient of the variance from that of the standard deviation; zero if the deviation
/// is zero.
fn deviation_gradient(gradient: &Tensor, deviation: &Tensor) -> Result<Tensor> {
    let twice = deviation.mul_number(Scalar::Int(2))?;
    let gradient = gradient.div(&twice)?;
    let flat = deviation.compare(Comparison::Eq, Scalar::Int(0))?;
    gradient.masked_fill_(&flat, Scalar::Int(0))?;
    Ok(gradient)
}
