//! Products along dimensions: `prod`.

use super::create::{Options, empty, result_space};
use super::reduce::{KeepDims, reduced_dims, restore, with_combined};
use crate::autograd::{Formula, Saved, differentiable, node_site};
use crate::dispatch::{Site, open};
use crate::element::{Number, by_number};
use crate::kernels;
use crate::shape::dimension_mask;
use crate::{Comparison, DType, Result, Scalar, Tensor};

static PROD: Site = Site::operator("aten::prod");

node_site! {
    PROD_ALL_NODE = "ProdBackward0";
    PROD_NODE = "ProdBackward1";
}

impl Tensor {
    /// Multiplies all elements, or those along a dimension. Integers are multiplied as 64-bit
    /// integers unless a dtype is given.
    ///
    /// # Errors
    /// Returns an error if the dimension does not exist or memory cannot be allocated.
    pub fn prod(
        &self,
        dimension: Option<i64>,
        keep: KeepDims,
        dtype: Option<DType>,
    ) -> Result<Self> {
        let _scope = match dimension {
            Some(dimension) => open(&PROD, (self, dimension, keep.flag(), dtype)),
            None => open(&PROD, (self, dtype)),
        };
        let reduced = dimension_mask(dimension.as_slice(), self.rank())?;
        let natural = if self.dtype().is_float() {
            self.dtype()
        } else {
            DType::I64
        };
        let wanted = dtype.unwrap_or(natural);
        let node = match dimension {
            Some(_) => &PROD_NODE,
            None => &PROD_ALL_NODE,
        };
        differentiable(
            node,
            [self],
            || self.products(dimension, &reduced, keep, wanted),
            |result| {
                let (own, result) = (Saved::new(self), Saved::result(result, node));
                let reduced = reduced.clone();
                Formula::unary_saving(move |gradient| {
                    let (natural, result) = (own.get()?.dtype(), result.get()?);
                    let own = own.get()?.to(gradient.dtype())?;
                    let slope = match dimension {
                        None => all_gradient(gradient, &own, result)?,
                        Some(dimension) => {
                            let result = restore(result, &reduced, keep)?;
                            let gradient = restore(gradient, &reduced, keep)?;
                            lane_gradient(&gradient, &own, &result, dimension)?
                        }
                    };
                    if slope.dtype() == natural {
                        Ok(slope)
                    } else {
                        slope.to_like(natural)
                    }
                })
            },
        )
    }

    fn products(
        &self,
        dimension: Option<i64>,
        reduced: &[bool],
        keep: KeepDims,
        dtype: DType,
    ) -> Result<Self> {
        if dimension.is_none() {
            drop(empty(&[0], dtype, &Options::like(self))?);
        }
        let result = result_space(&reduced_dims(self.dims(), reduced, keep), dtype)?;
        let view = match keep {
            KeepDims::Yes => result.clone(),
            KeepDims::No => with_combined(&result, self.dims(), reduced)?,
        };
        let own = self.as_type(dtype)?;
        view.fill_(Scalar::Int(1))?;
        if own.count() > 0 {
            by_number!(dtype, T => kernels::fold(&result, &own, reduced, T::times))?;
        }
        Ok(result)
    }
}

/// Returns the gradient of the product of all elements.
fn all_gradient(gradient: &Tensor, own: &Tensor, result: &Tensor) -> Result<Tensor> {
    if own.rank() == 0 {
        return Ok(gradient.clone());
    }
    let zeros = own.compare(Comparison::Eq, Scalar::Int(0))?;
    let count = zeros.nonzero()?.dims()[0];
    match count {
        0 => gradient.mul(&result.div(own)?),
        1 => {
            // Only the single zero affects the product, by the product of the others.
            let others = own.masked_fill(&zeros, Scalar::Int(1))?;
            let others = others.prod(None, KeepDims::No, None)?;
            zeros.to(own.dtype())?.mul(&others.mul(gradient)?)
        }
        _ => own.zeros_like(),
    }
}

/// Returns the gradient of products along a dimension.
fn lane_gradient(
    gradient: &Tensor,
    own: &Tensor,
    result: &Tensor,
    dimension: i64,
) -> Result<Tensor> {
    if own.rank() == 0 {
        return Ok(gradient.clone());
    }
    let zeros = own.compare(Comparison::Eq, Scalar::Int(0))?;
    let counts = zeros.sum(Some(&[dimension]), KeepDims::Yes, None)?;
    let all = counts.sum(None, KeepDims::No, None)?.item()?;
    if all.to_f64() == 0.0 {
        return gradient.mul(&result.div(own)?);
    }
    let filled = own.masked_fill(&zeros, Scalar::Int(1))?;
    let others = filled.prod(Some(dimension), KeepDims::Yes, None)?;
    // Without zeros, each element's gradient is the product of the others. With one zero, only that
    // element has a gradient; with several, none has.
    let alone = counts.compare(Comparison::Eq, Scalar::Int(1))?;
    let none = counts.compare(Comparison::Eq, Scalar::Int(0))?;
    let moved = zeros.to(own.dtype())?.mul(&alone.to(own.dtype())?)?;
    let slope = Tensor::choose(&none, &others.div(&filled)?, &others.mul(&moved)?)?;
    gradient.mul(&slope)
}
