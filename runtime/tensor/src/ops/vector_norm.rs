//! Vector norms of any order: `linalg_vector_norm`.

use super::create::result_space;
use super::reduce::{KeepDims, reduced_dims, restore, with_combined};
use super::unary::Elementwise;
use crate::autograd::{Formula, Saved, differentiable, node_site};
use crate::dispatch::{Site, open};
use crate::element::by_float;
use crate::error::reject;
use crate::kernels;
use crate::shape::dimension_mask;
use crate::{Comparison, DType, Result, Scalar, Tensor};

static VECTOR_NORM: Site = Site::operator("aten::linalg_vector_norm");

node_site! {
    VECTOR_NORM_NODE = "LinalgVectorNormBackward0";
}

/// The order of a norm.
#[derive(Clone, Copy)]
enum Order {
    Zero,
    One,
    Two,
    Largest,
    Smallest,
    Other(f64),
}

impl Order {
    fn of(order: f64) -> Self {
        match order {
            0.0 => Self::Zero,
            1.0 => Self::One,
            2.0 => Self::Two,
            f64::INFINITY => Self::Largest,
            f64::NEG_INFINITY => Self::Smallest,
            order => Self::Other(order),
        }
    }
}

impl Tensor {
    /// Returns the norm of the given order, over all elements or along some dimensions.
    ///
    /// An infinite order gives the largest or smallest absolute value, and order zero the number of
    /// nonzero elements.
    ///
    /// # Errors
    /// Returns an error if the dtype is not floating-point or a dimension does not exist.
    pub fn vector_norm(
        &self,
        order: f64,
        dimensions: Option<&[i64]>,
        keep: KeepDims,
    ) -> Result<Self> {
        let no_dtype: Option<DType> = None;
        let _scope = open(
            &VECTOR_NORM,
            (self, order, dimensions, keep.flag(), no_dtype),
        );
        if !self.dtype().is_float() {
            return reject!(
                Runtime,
                "linalg.vector_norm: Expected a floating point or complex tensor as input. Got {}",
                self.dtype().title()
            );
        }
        let reduced = dimension_mask(dimensions.unwrap_or(&[]), self.rank())?;
        let is_empty = self
            .dims()
            .iter()
            .zip(&reduced)
            .any(|(&size, &is_reduced)| is_reduced && size == 0);
        if (order < 0.0 || order == f64::INFINITY) && is_empty {
            return reject!(
                Runtime,
                "linalg.vector_norm cannot compute the {order} norm on an empty tensor because the operation does not \
                 have an identity"
            );
        }
        let is_along_some = dimensions.is_some();
        differentiable(
            &VECTOR_NORM_NODE,
            [self],
            || self.lengths(order, &reduced, keep),
            |norm| {
                let (own, norm) = (Saved::new(self), Saved::new(norm));
                let reduced = reduced.clone();
                Formula::unary_saving(move |gradient| {
                    let keep = if is_along_some { keep } else { KeepDims::Yes };
                    let norm = restore(norm.get()?, &reduced, keep)?;
                    let gradient = restore(gradient, &reduced, keep)?;
                    norm_gradient(order, own.get()?, &norm, &gradient, &reduced)
                })
            },
        )
    }

    fn lengths(&self, order: f64, reduced: &[bool], keep: KeepDims) -> Result<Self> {
        let result = result_space(&reduced_dims(self.dims(), reduced, keep), self.dtype())?;
        if keep == KeepDims::No {
            with_combined(&result, self.dims(), reduced)?;
        }
        let order = Order::of(order);
        by_float!(self.dtype(), "linalg_vector_norm", T => {
            let powers = kernels::map(self, move |x: T| match order {
                Order::Zero => T::from(u8::from(x != 0.0)),
                Order::One | Order::Largest | Order::Smallest => x.abs(),
                Order::Two => x * x,
                Order::Other(order) => x.abs().powf(order as T),
            })?;
            if let Order::Largest | Order::Smallest = order {
                let is_largest = matches!(order, Order::Largest);
                kernels::fold(&result, &powers, reduced, move |x: T, y: T| {
                    // NaN propagates.
                    if x.is_nan() || (!y.is_nan() && is_largest == (x > y)) { x } else { y }
                })?;
                return Ok(result);
            }
            kernels::sum::<T>(&result, &powers, reduced)?;
            kernels::map(&result, move |sum: T| match order {
                Order::Two => sum.sqrt(),
                Order::Other(order) => sum.powf(1.0 / order as T),
                Order::Zero | Order::One | Order::Largest | Order::Smallest => sum,
            })
        })
    }
}

/// Returns the gradient of a norm; zero if the norm is not differentiable.
fn norm_gradient(
    order: f64,
    own: &Tensor,
    norm: &Tensor,
    gradient: &Tensor,
    reduced: &[bool],
) -> Result<Tensor> {
    let zero = Scalar::Int(0);
    let order = match Order::of(order) {
        Order::Zero => return own.zeros_like(),
        Order::One => return own.elementwise(Elementwise::Sgn)?.mul(gradient),
        Order::Two => {
            let slope = own.div(norm)?;
            slope.masked_fill_(&norm.compare(Comparison::Eq, zero)?, zero)?;
            return gradient.mul(&slope);
        }
        Order::Largest | Order::Smallest => return end_gradient(own, norm, gradient, reduced),
        Order::Other(order) => order,
    };
    let size = own.elementwise(Elementwise::Abs)?;
    let is_flat = norm.compare(Comparison::Eq, zero)?;
    let slope = if order < 2.0 {
        let power = size.pow(Scalar::Float(order - 1.0))?;
        if order < 1.0 {
            power.masked_fill_(&own.compare(Comparison::Eq, zero)?, zero)?;
        }
        own.elementwise(Elementwise::Sgn)?.mul(&power)?
    } else {
        own.mul(&size.pow(Scalar::Float(order - 2.0))?)?
    };
    let scale = gradient.div(&norm.pow(Scalar::Float(order - 1.0))?)?;
    scale.masked_fill_(&is_flat, zero)?;
    slope.mul(&scale)
}

/// Returns the gradient of an infinite norm, shared by all elements of that absolute value.
fn end_gradient(
    own: &Tensor,
    norm: &Tensor,
    gradient: &Tensor,
    reduced: &[bool],
) -> Result<Tensor> {
    let size = own.elementwise(Elementwise::Abs)?;
    let is_it = size.compare(Comparison::Eq, norm)?.to(own.dtype())?;
    let marked = reduced.iter().enumerate().filter(|(_, reduced)| **reduced);
    let dimensions: Vec<i64> = marked.map(|(at, _)| at as i64).collect();
    let count = is_it.sum(Some(&dimensions), KeepDims::Yes, None)?;
    let share = gradient.div(&count)?;
    own.elementwise(Elementwise::Sgn)?.mul(&is_it)?.mul(&share)
}
