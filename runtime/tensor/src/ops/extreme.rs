//! Operators that search along dimensions: `max`, `argmax`, `any`, `all`.

use super::create::{Options, empty, result_space};
use super::reduce::{KeepDims, reduced_dims, with_combined};
use crate::autograd::{Formula, Saved, differentiable, differentiable_first, node_site};
use crate::dispatch::{Absent, Site, open};
use crate::element::by_dtype;
use crate::error::reject;
use crate::kernels;
use crate::shape::{dimension_index, dimension_mask, signed};
use crate::{Comparison, DType, Error, Logical, Result, Scalar, Tensor};

static ALL: Site = Site::operator("aten::all");
static ANY: Site = Site::operator("aten::any");
static ARGMAX: Site = Site::operator("aten::argmax");
static ARGMIN: Site = Site::operator("aten::argmin");
static AS_STRIDED: Site = Site::operator("aten::as_strided_");
static MAX: Site = Site::operator("aten::max");
static MIN: Site = Site::operator("aten::min");
static SQUEEZE: Site = Site::operator("aten::squeeze_");
static UNSQUEEZE: Site = Site::operator("aten::unsqueeze_");

node_site! {
    MAX_ALL_NODE = "MaxBackward1";
    MAX_NODE = "MaxBackward0";
    MIN_ALL_NODE = "MinBackward1";
    MIN_NODE = "MinBackward0";
}

/// Which extreme to search for, or which end of an order comes first.
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
    /// Returns an error if the tensor is empty.
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
                let result = empty(&[], self.dtype(), &Options::like(self))?;
                result.fill_(flat.to_scalars()?[place])?;
                Ok(result)
            },
            |result| {
                let (own, result) = (Saved::new(self), Saved::result(result, node));
                Formula::unary_saving(move |gradient| {
                    gradient.shared_evenly(own.get()?, result.get()?)
                })
            },
        )
    }

    /// Distributes this gradient of a result evenly among the elements of `own` that equal the
    /// result.
    pub(in crate::ops) fn shared_evenly(&self, own: &Self, result: &Self) -> Result<Self> {
        let hits = match result.isnan()?.item()? {
            Scalar::Bool(true) => own.isnan()?,
            _ => own.compare(Comparison::Eq, result)?,
        };
        let whole = self.new_zeros(&signed(own.dims()), None)?;
        let count = hits.sum(None, KeepDims::No, None)?;
        whole.masked_fill_by_(&hits, &self.div(&count)?)?;
        Ok(whole)
    }

    /// Returns the largest or smallest elements along a dimension, and their indices.
    ///
    /// # Errors
    /// Returns an error if the dimension does not exist or is empty.
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
                if self.rank() == 0 {
                    return Ok([self.duplicate()?, places]);
                }
                let at = dimension_index(dimension, self.rank())?;
                let kept = match keep {
                    KeepDims::Yes => places.untracked(),
                    KeepDims::No => places.with_layout(places.layout().unsqueezed(at)?)?,
                };
                let values = self.gather_elements(dimension, &kept)?;
                if keep == KeepDims::Yes {
                    return Ok([values, places]);
                }
                for (site, shown) in [(&UNSQUEEZE, &places), (&SQUEEZE, &kept)] {
                    for _ in 0..2 {
                        let _scope = open(site, (shown, dimension));
                        let arguments = (shown, kept.dims(), kept.strides(), Absent);
                        drop(open(&AS_STRIDED, arguments));
                    }
                }
                let values = values.with_layout(places.layout().clone())?;
                Ok([values, places])
            },
            |[_, places]| self.selecting_formula(dimension, places, keep),
        )
    }

    /// Returns the indices of the largest or smallest elements, along a dimension or overall.
    ///
    /// # Errors
    /// Returns an error if the dimension does not exist, or there are no elements.
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
            let flat = kernels::pack(&self.untracked().reshape(&[-1])?)?;
            let place = kernels::extreme_places(&flat, [1, self.count(), 1], end)?[0];
            let result = result_space(&[], DType::I64)?;
            with_combined(&result, flat.dims(), &[true])?;
            kernels::fill(&result, Scalar::Int(place as i64));
            return Ok(result);
        };
        let places = self.places_along(end, dimension, keep)?;
        if keep == KeepDims::No && self.rank() > 0 {
            let reduced = dimension_mask(&[dimension], self.rank())?;
            with_combined(&places, self.dims(), &reduced)?;
        }
        Ok(places)
    }

    /// Returns whether all or any elements are true, along a dimension or overall.
    ///
    /// # Errors
    /// Returns an error if the dimension does not exist.
    pub fn truth(&self, all: Truth, dimension: Option<i64>, keep: KeepDims) -> Result<Self> {
        let site = match all {
            Truth::All => &ALL,
            Truth::Any => &ANY,
        };
        let _scope = match dimension {
            Some(dimension) => open(site, (self, dimension, keep.flag())),
            None => open(site, (self,)),
        };
        let reduced = dimension_mask(dimension.as_slice(), self.rank())?;
        let result = result_space(&reduced_dims(self.dims(), &reduced, keep), DType::Bool)?;
        let view = match keep {
            KeepDims::Yes => result.clone(),
            KeepDims::No => with_combined(&result, self.dims(), &reduced)?,
        };
        let truths = match self.dtype() {
            DType::Bool => self.untracked(),
            _ => self.untracked().to(DType::Bool)?,
        };
        view.fill_(Scalar::Bool(all == Truth::All))?;
        if truths.count() > 0 {
            kernels::fold(
                &result,
                &truths,
                &reduced,
                move |x: Logical, y: Logical| match all {
                    Truth::All => x & y,
                    Truth::Any => x | y,
                },
            )?;
        }
        Ok(result)
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

/// The quantifier of [`Tensor::truth`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// Every element is true.
    All,
    /// At least one element is true.
    Any,
}

/// Checks that a tensor has the dtype of an index.
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
