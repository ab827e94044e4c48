//! Operators that combine elements along dimensions: `sum` and `mean`.

use smallvec::SmallVec;

use super::create::result_space;
use crate::dispatch::{Site, open};
use crate::element::by_dtype;
use crate::kernels;
use crate::shape::{Dims, Strides, dimension_mask};
use crate::{DType, Error, Result, Scalar, Tensor};

static MEAN: Site = Site::operator("aten::mean");
static SUM: Site = Site::operator("aten::sum");

/// What becomes of the dimensions that were combined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeepDims {
    /// They are removed.
    #[default]
    No,
    /// They stay, with size one.
    Yes,
}

impl KeepDims {
    fn flag(self) -> bool {
        self == Self::Yes
    }
}

impl Tensor {
    /// Adds all elements, or those along some dimensions. An empty list means all dimensions.
    ///
    /// Integers are added as 64-bit ones unless a type is given.
    ///
    /// # Errors
    /// When a dimension does not exist or is named twice, or there is no memory.
    pub fn sum(
        &self,
        dimensions: Option<&[i64]>,
        keep: KeepDims,
        dtype: Option<DType>,
    ) -> Result<Self> {
        match dimensions {
            None => {
                let _scope = open(&SUM, (self, dtype));
                self.sum_along(&[], keep, dtype)
            }
            Some(list) => self.sum_along(list, keep, dtype),
        }
    }

    /// Averages all elements, or those along some dimensions. An empty list means all dimensions.
    ///
    /// # Errors
    /// When the type is not floating-point, a dimension does not exist or is named twice, or there is no memory.
    pub fn mean(
        &self,
        dimensions: Option<&[i64]>,
        keep: KeepDims,
        dtype: Option<DType>,
    ) -> Result<Self> {
        match dimensions {
            None => {
                let _scope = open(&MEAN, (self, dtype));
                self.mean_along(&[], keep, dtype)
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
        let dims = reduced_dims(self.dims(), &reduced, keep);
        let space = result_space(&dims, dtype.unwrap_or(natural))?;
        sum_into(&space, self, &reduced, keep)?;
        Ok(space)
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
        let space = result_space(&reduced_dims(self.dims(), &reduced, keep), actual)?;
        {
            let _scope = open(&SUM, (self, dimensions, keep.flag(), actual, &space));
            sum_into(&space, self, &reduced, keep)?;
        }
        let count: usize = combined(self.dims(), &reduced).product();
        space.div_in_place(Scalar::Int(count as i64))?;
        Ok(space)
    }
}

fn combined<'a>(dims: &'a [usize], reduced: &'a [bool]) -> impl Iterator<Item = usize> + 'a {
    let marked = dims.iter().zip(reduced).filter(|(_, reduced)| **reduced);
    marked.map(|(&dim, _)| dim)
}

fn reduced_dims(dims: &[usize], reduced: &[bool], keep: KeepDims) -> Dims {
    dims.iter()
        .zip(reduced)
        .filter_map(|(&dim, &reduced)| match (reduced, keep) {
            (false, _) => Some(dim),
            (true, KeepDims::Yes) => Some(1),
            (true, KeepDims::No) => None,
        })
        .collect()
}

/// Fills `space` with the sums, step by step as torch does: a view that has the combined dimensions back, the
/// conversion of the operand, zeros, and the sums.
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
    by_dtype!(space.dtype(), T => kernels::sum::<T>(space, operand, reduced))
}

/// Looks at a result as if the combined dimensions were still there, with size one.
fn with_combined(space: &Tensor, dims: &[usize], reduced: &[bool]) -> Result<Tensor> {
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
