//! Operators that look for elements along dimensions: `max`, `argmax`, `any`, `all`; and `var`.

use super::create::result_space;
use super::reduce::{KeepDims, reduced_dims, restore};
use crate::autograd::{Formula, Saved, differentiable, differentiable_first, node_site};
use crate::dispatch::{Site, open};
use crate::element::by_dtype;
use crate::error::reject;
use crate::kernels;
use crate::shape::{dimension_index, dimension_mask};
use crate::{Comparison, DType, Error, Result, Scalar, Tensor};

static ALL: Site = Site::operator("aten::all");
static ANY: Site = Site::operator("aten::any");
static ARGMAX: Site = Site::operator("aten::argmax");
static ARGMIN: Site = Site::operator("aten::argmin");
static MAX: Site = Site::operator("aten::max");
static MIN: Site = Site::operator("aten::min");
static VAR: Site = Site::operator("aten::var");

node_site! {
    MAX_ALL_NODE = "MaxBackward1";
    MAX_NODE = "MaxBackward0";
    MIN_ALL_NODE = "MinBackward1";
    MIN_NODE = "MinBackward0";
    VAR_NODE = "VarBackward0";
}

/// Which end of the order is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The smallest element.
    Lowest,
    /// The largest element.
    Highest,
}

impl Tensor {
    /// Returns the largest or the smallest element.
    ///
    /// # Errors
    /// When there is none.
    pub fn extreme(&self, end: End) -> Result<Self> {
        let (site, node, name) = match end {
            End::Highest => (&MAX, &MAX_ALL_NODE, "max"),
            End::Lowest => (&MIN, &MIN_ALL_NODE, "min"),
        };
        let _scope = open(site, (self,));
        if self.count() == 0 {
            return reject!(
                Runtime,
                "{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim \
                 with the 'dim' argument."
            );
        }
        differentiable(
            node,
            [self],
            || {
                let flat = kernels::pack(self)?;
                let place = kernels::extreme_places(&flat, [1, self.count(), 1], end)?[0];
                let result = result_space(&[], self.dtype())?;
                kernels::fill(&result, flat.to_scalars()?[place]);
                Ok(result)
            },
            |result| {
                let (own, result) = (Saved::new(self), Saved::result(result, node));
                Formula::unary_saving(move |gradient| {
                    let hits = own.get()?.compare(Comparison::Eq, result.get()?)?;
                    let count = hits.sum(None, KeepDims::No, None)?;
                    hits.mul(&gradient.div(&count)?)
                })
            },
        )
    }

    /// Returns the largest or smallest elements along a dimension, and where they are.
    ///
    /// # Errors
    /// When the dimension does not exist or is empty.
    pub fn extreme_along(&self, end: End, dimension: i64, keep: KeepDims) -> Result<[Self; 2]> {
        let (site, node) = match end {
            End::Highest => (&MAX, &MAX_NODE),
            End::Lowest => (&MIN, &MIN_NODE),
        };
        let _scope = open(site, (self, dimension, keep.flag()));
        differentiable_first(
            node,
            [self],
            || {
                let places = self.places_along(end, dimension, keep)?;
                let kept = match keep {
                    KeepDims::Yes => places.untracked(),
                    KeepDims::No => places.unsqueeze(dimension)?,
                };
                let values = if self.rank() == 0 {
                    self.duplicate()?
                } else {
                    let values = self.gather_elements(dimension, &kept)?;
                    match keep {
                        KeepDims::Yes => values,
                        KeepDims::No => values.squeeze(dimension)?,
                    }
                };
                let values = kernels::pack(&values)?;
                Ok([values, places])
            },
            |[_, places]| {
                let (places, own) = (Saved::new(places), self.untracked());
                let own_dims = own.dims().to_vec();
                Formula::unary_saving(move |gradient| {
                    let (mut gradient, mut places) = (gradient.clone(), places.get()?.clone());
                    if keep == KeepDims::No && !own_dims.is_empty() {
                        gradient = gradient.unsqueeze(dimension)?;
                        places = places.unsqueeze(dimension)?;
                    }
                    let sizes: Vec<i64> = own_dims.iter().map(|&dim| dim as i64).collect();
                    let whole = Self::zeros(&sizes, Some(gradient.dtype()))?;
                    if own_dims.is_empty() {
                        return Ok(gradient);
                    }
                    whole.scatter_add_elements(dimension, &places, &gradient)?;
                    Ok(whole)
                })
            },
        )
    }

    /// Returns where the largest or smallest elements are, along a dimension or in all.
    ///
    /// # Errors
    /// When the dimension does not exist, or there are no elements.
    pub fn arg_extreme(&self, end: End, dimension: Option<i64>, keep: KeepDims) -> Result<Self> {
        let (site, name) = match end {
            End::Highest => (&ARGMAX, "argmax"),
            End::Lowest => (&ARGMIN, "argmin"),
        };
        let _scope = open(site, (self, dimension, keep.flag()));
        let Some(dimension) = dimension else {
            if self.count() == 0 {
                return reject!(
                    Index,
                    "{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction \
                     dim with the 'dim' argument."
                );
            }
            let flat = kernels::pack(self)?;
            let place = kernels::extreme_places(&flat, [1, self.count(), 1], end)?[0];
            let result = result_space(&[], DType::I64)?;
            kernels::fill(&result, Scalar::Int(place as i64));
            return Ok(result);
        };
        self.places_along(end, dimension, keep)
    }

    /// Returns whether all elements, or any, are true; along a dimension or of all.
    ///
    /// # Errors
    /// When the dimension does not exist.
    pub fn truth(&self, all: Truth, dimension: Option<i64>, keep: KeepDims) -> Result<Self> {
        let site = match all {
            Truth::All => &ALL,
            Truth::Any => &ANY,
        };
        let _scope = open(site, (self,));
        let dimensions: &[i64] = dimension.as_slice();
        let reduced = dimension_mask(dimensions, self.rank())?;
        let truths = self.compare(Comparison::Ne, Scalar::Int(0))?;
        let counted = match all {
            Truth::Any => truths,
            Truth::All => truths.bitwise_not()?,
        };
        let dims = reduced_dims(self.dims(), &reduced, keep);
        let count = result_space(&dims, DType::I64)?;
        kernels::sum::<i64>(&count, &*counted.as_type(DType::I64)?, &reduced)?;
        let how = match all {
            Truth::Any => Comparison::Ne,
            Truth::All => Comparison::Eq,
        };
        count.compare(how, Scalar::Int(0))
    }

    /// Returns the variance of all elements, or along some dimensions.
    ///
    /// # Errors
    /// When the type is not floating-point or a dimension does not exist.
    pub fn var(&self, dimensions: Option<&[i64]>, correction: i64, keep: KeepDims) -> Result<Self> {
        let list = dimensions.unwrap_or(&[]);
        let _scope = open(&VAR, (self, list, correction, keep.flag()));
        if !self.dtype().is_float() {
            return reject!(
                Runtime,
                "std and var only support floating point and complex dtypes"
            );
        }
        let reduced = dimension_mask(list, self.rank())?;
        let count: usize = (self.dims().iter().zip(&reduced))
            .filter(|(_, reduced)| **reduced)
            .map(|(&dim, _)| dim)
            .product();
        let degrees = count as f64 - correction as f64;
        let list = list.to_vec();
        let formula_list = list.clone();
        differentiable(
            &VAR_NODE,
            [self],
            || {
                let centred = self.sub(&self.mean(Some(&list), KeepDims::Yes, None)?)?;
                let squares = centred.mul(&centred)?;
                squares.sum(Some(&list), keep, None)?.div(degrees.max(0.0))
            },
            |_| {
                let kept = Saved::new(self);
                Formula::unary_saving(move |gradient| {
                    let own = kept.get()?;
                    let centred =
                        own.sub(&own.mean(Some(&formula_list), KeepDims::Yes, None)?)?;
                    let gradient = restore(gradient, &reduced, keep)?;
                    centred.mul(2.0 / degrees)?.mul(&gradient)
                })
            },
        )
    }

    fn places_along(&self, end: End, dimension: i64, keep: KeepDims) -> Result<Self> {
        let at = dimension_index(dimension, self.rank())?;
        if self.rank() == 0 {
            return result_space(&[], DType::I64);
        }
        if self.dims()[at] == 0 {
            return Err(Error::Rejected {
                exception: crate::Exception::Index,
                message: format!(
                    "max(): Expected reduction dim {at} to have non-zero size, found shape {:?}",
                    self.dims()
                ),
            });
        }
        let flat = kernels::pack(self)?;
        let outer = self.dims()[..at].iter().product();
        let inner = self.dims()[at + 1..].iter().product();
        let places = kernels::extreme_places(&flat, [outer, self.dims()[at], inner], end)?;
        let mut reduced = vec![false; self.rank()];
        reduced[at] = true;
        let dims = reduced_dims(self.dims(), &reduced, keep);
        let result = result_space(&dims, DType::I64)?;
        let values: Vec<i64> = places.into_iter().map(|place| place as i64).collect();
        Ok(Self::from_elements(values, result.layout().clone()))
    }
}

/// Which truth is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// Every element is true.
    All,
    /// At least one is.
    Any,
}

/// Checks that the elements have the type that an index has.
pub(in crate::ops) fn index_type(index: &Tensor, subject: &str) -> Result<()> {
    match index.dtype() {
        DType::I64 | DType::I32 => Ok(()),
        DType::Bool | DType::BF16 | DType::F32 | DType::F64 => {
            let found = by_dtype!(index.dtype(), T => <T as crate::Element>::DTYPE.title());
            reject!(
                Runtime,
                "{subject}(): Expected dtype int64 for index, found {found}"
            )
        }
    }
}
