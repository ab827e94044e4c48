//! Reductions along dimensions: `sum` and `mean`.

use smallvec::SmallVec;

use super::create::result_space;
use crate::autograd::{Formula, differentiable, node_site};
use crate::dispatch::{Site, open};
use crate::element::by_number;
use crate::kernels;
use crate::shape::{Dims, Strides, dimension_mask, signed};
use crate::{DType, Error, Result, Scalar, Tensor};

static MEAN: Site = Site::operator("aten::mean");
static SUM: Site = Site::operator("aten::sum");

node_site! {
    MEAN_ALL_NODE = "MeanBackward0";
    MEAN_NODE = "MeanBackward1";
    SUM_ALL_NODE = "SumBackward0";
    SUM_NODE = "SumBackward1";
}

/// Whether a reduction keeps the reduced dimensions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeepDims {
    /// They are removed.
    #[default]
    No,
    /// They are kept with size one.
    Yes,
}

impl KeepDims {
    pub(in crate::ops) fn flag(self) -> bool {
        self == Self::Yes
    }
}

impl Tensor {
    /// Sums all elements, or those along some dimensions. An empty list means all dimensions.
    ///
    /// Integers are added as 64-bit integers unless a dtype is given.
    ///
    /// # Errors
    /// Returns an error if a dimension does not exist or is repeated, or memory cannot be
    /// allocated.
    pub fn sum(
        &self,
        dimensions: Option<&[i64]>,
        keep: KeepDims,
        dtype: Option<DType>,
    ) -> Result<Self> {
        match dimensions {
            None => {
                let _scope = open(&SUM, (self, dtype));
                differentiable(
                    &SUM_ALL_NODE,
                    [self],
                    || self.sum_along(&[], keep, dtype),
                    |_| {
                        let sizes = signed(self.dims());
                        Formula::unary(move |gradient| gradient.expand(&sizes))
                    },
                )
            }
            Some(list) => self.sum_along(list, keep, dtype),
        }
    }

    /// Averages all elements, or those along some dimensions. An empty list means all dimensions.
    ///
    /// # Errors
    /// Returns an error if the dtype is not floating-point, a dimension does not exist or is
    /// repeated, or memory cannot be allocated.
    pub fn mean(
        &self,
        dimensions: Option<&[i64]>,
        keep: KeepDims,
        dtype: Option<DType>,
    ) -> Result<Self> {
        match dimensions {
            None => {
                let _scope = open(&MEAN, (self, dtype));
                differentiable(
                    &MEAN_ALL_NODE,
                    [self],
                    || self.mean_along(&[], keep, dtype),
                    |_| {
                        let (sizes, count) = (signed(self.dims()), self.count() as i64);
                        Formula::unary(move |gradient| {
                            gradient.expand(&sizes)?.div_number(Scalar::Int(count))
                        })
                    },
                )
            }
            Some(list) => self.mean_along(list, keep, dtype),
        }
    }

    fn sum_along(&self, dimensions: &[i64], keep: KeepDims, dtype: Option<DType>) -> Result<Self> {
        let _scope = open(&SUM, (self, dimensions, keep.flag(), dtype));
        let reduced = dimension_mask(dimensions, self.rank())?;
        let natural = if self.dtype().is_float() {
            self.dtype()
        } else {
            DType::I64
        };
        differentiable(
            &SUM_NODE,
            [self],
            || {
                let dims = reduced_dims(self.dims(), &reduced, keep);
                let space = result_space(&dims, dtype.unwrap_or(natural))?;
                sum_into(&space, self, &reduced, keep)?;
                Ok(space)
            },
            |_| {
                let (sizes, reduced) = (signed(self.dims()), reduced.clone());
                Formula::unary(move |gradient| restore(gradient, &reduced, keep)?.expand(&sizes))
            },
        )
    }

    fn mean_along(&self, dimensions: &[i64], keep: KeepDims, dtype: Option<DType>) -> Result<Self> {
        let _scope = open(&MEAN, (self, dimensions, keep.flag(), dtype));
        let actual = dtype.unwrap_or(self.dtype());
        if !actual.is_float() {
            return Err(Error::MeanOfIntegers {
                subject: if dtype.is_some() { "Optional" } else { "Input" },
                dtype: actual,
            });
        }
        let reduced = dimension_mask(dimensions, self.rank())?;
        let count: usize = combined(self.dims(), &reduced).product();
        let count = Scalar::Int(count as i64);
        differentiable(
            &MEAN_NODE,
            [self],
            || {
                let space = result_space(&reduced_dims(self.dims(), &reduced, keep), actual)?;
                self.mean_into(&space, dimensions, &reduced, keep)?;
                Ok(space)
            },
            |_| {
                let (sizes, reduced) = (signed(self.dims()), reduced.clone());
                Formula::unary(move |gradient| {
                    restore(gradient, &reduced, keep)?
                        .expand(&sizes)?
                        .div_number(count)
                })
            },
        )
    }

    /// Writes means into a tensor that the caller has created.
    fn mean_into(
        &self,
        space: &Self,
        dimensions: &[i64],
        reduced: &[bool],
        keep: KeepDims,
    ) -> Result<()> {
        if space.dtype() != space.dtype().computed() {
            // The quotient is rounded, not the sum.
            let wide = space.to(space.dtype().computed())?;
            self.mean_into(&wide, dimensions, reduced, keep)?;
            return space.copy_(&wide);
        }
        {
            let arguments = (self, dimensions, keep.flag(), space.dtype(), space);
            let _scope = open(&SUM, arguments);
            sum_into(space, self, reduced, keep)?;
        }
        let count: usize = combined(self.dims(), reduced).product();
        space.div_in_place(Scalar::Int(count as i64))
    }

    /// Writes the mean of all elements into a tensor that the caller has created, as losses do.
    pub(in crate::ops) fn mean_all_into(&self, space: &Self) -> Result<()> {
        let no_dtype: Option<DType> = None;
        let _scope = open(&MEAN, (self, [0_i64; 0].as_slice(), false, no_dtype, space));
        let reduced = dimension_mask(&[], self.rank())?;
        self.mean_into(space, &[], &reduced, KeepDims::No)
    }

    /// Writes the sum of all elements into a tensor that the caller has created, as losses do.
    pub(in crate::ops) fn sum_all_into(&self, space: &Self) -> Result<()> {
        let no_dtype: Option<DType> = None;
        let _scope = open(&SUM, (self, [0_i64; 0].as_slice(), false, no_dtype, space));
        let reduced = dimension_mask(&[], self.rank())?;
        sum_into(space, self, &reduced, KeepDims::No)
    }
}

/// Restores the reduced dimensions of a gradient, with size one.
pub(in crate::ops) fn restore(
    gradient: &Tensor,
    reduced: &[bool],
    keep: KeepDims,
) -> Result<Tensor> {
    let mut gradient = gradient.clone();
    if keep == KeepDims::No {
        for (dimension, _) in reduced.iter().enumerate().filter(|(_, reduced)| **reduced) {
            gradient = gradient.unsqueeze(dimension as i64)?;
        }
    }
    Ok(gradient)
}

pub(in crate::ops) fn combined<'a>(
    dims: &'a [usize],
    reduced: &'a [bool],
) -> impl Iterator<Item = usize> + 'a {
    let marked = dims.iter().zip(reduced).filter(|(_, reduced)| **reduced);
    marked.map(|(&dim, _)| dim)
}

pub(in crate::ops) fn reduced_dims(dims: &[usize], reduced: &[bool], keep: KeepDims) -> Dims {
    dims.iter()
        .zip(reduced)
        .filter_map(|(&dim, &reduced)| match (reduced, keep) {
            (false, _) => Some(dim),
            (true, KeepDims::Yes) => Some(1),
            (true, KeepDims::No) => None,
        })
        .collect()
}

/// Fills `space` with the sums in the steps that torch records: a view with the reduced dimensions
/// restored, the conversion of the operand, zeros, and the sums.
fn sum_into(space: &Tensor, operand: &Tensor, reduced: &[bool], keep: KeepDims) -> Result<()> {
    let view = match keep {
        KeepDims::Yes => space.clone(),
        KeepDims::No => with_combined(space, operand.dims(), reduced)?,
    };
    let converted;
    let operand = if operand.dtype() == space.dtype() {
        operand
    } else {
        converted = operand.to(space.dtype())?;
        &converted
    };
    if operand.count() == 0 {
        return space.zero_();
    }
    view.fill_(Scalar::Float(0.0))?;
    by_number!(space.dtype(), T => kernels::sum::<T>(space, operand, reduced))
}

/// Returns a view of a result with the reduced dimensions restored, with size one.
pub(in crate::ops) fn with_combined(
    space: &Tensor,
    dims: &[usize],
    reduced: &[bool],
) -> Result<Tensor> {
    let mut own_strides = space.strides().iter();
    let strides: Strides = reduced
        .iter()
        .map(|&reduced| {
            if reduced {
                0
            } else {
                own_strides.next().copied().unwrap_or(0)
            }
        })
        .collect();
    let dims: SmallVec<[usize; 6]> = dims
        .iter()
        .zip(reduced)
        .map(|(&dim, &reduced)| if reduced { 1 } else { dim })
        .collect();
    space.as_strided(&dims, &strides)
}
