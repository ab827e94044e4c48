//! The median of elements: `median`.

use super::create::{Options, empty, empty_strided};
use super::reduce::{KeepDims, reduced_dims};
use crate::autograd::{Formula, Saved, differentiable, differentiable_first, node_site};
use crate::dispatch::{Absent, Site, open};
use crate::error::reject;
use crate::kernels;
use crate::layout::Layout;
use crate::shape::{dimension_index, signed};
use crate::{DType, Result, Tensor};

static CLONE: Site = Site::operator("aten::clone");
static MEDIAN: Site = Site::operator("aten::median");

node_site! {
    MEDIAN_ALL_NODE = "MedianBackward0";
    MEDIAN_NODE = "MedianBackward1";
}

impl Tensor {
    /// Returns the median of all elements: the lower one of two candidates, or NaN if any element
    /// is NaN.
    ///
    /// # Errors
    /// Returns an error if memory cannot be allocated.
    pub fn median(&self) -> Result<Self> {
        let _scope = open(&MEDIAN, (self,));
        differentiable(
            &MEDIAN_ALL_NODE,
            [self],
            || {
                {
                    let _scope = open(&CLONE, (self, Absent));
                    let (layout, _) = kernels::result_layout(self.dims(), [self.layout()])?;
                    let room = empty_strided(layout.dims(), layout.strides(), self.dtype(), None)?;
                    room.copy_(&self.untracked())?;
                }
                let result = empty(&[], self.dtype(), &Options::like(self))?;
                if self.count() == 0 {
                    kernels::fill(&result, crate::Scalar::Float(f64::NAN));
                    return Ok(result);
                }
                let flat = kernels::pack(self)?;
                let flat =
                    flat.with_layout(Layout::contiguous(smallvec::smallvec![self.count()])?)?;
                let place = flat.middle_places(0)?;
                kernels::copy_into(
                    &result,
                    &kernels::take(&flat, &[place.to_vec::<i64>()?[0] as usize], &[])?,
                );
                Ok(result)
            },
            |result| {
                let (own, result) = (Saved::new(self), Saved::result(result, &MEDIAN_ALL_NODE));
                Formula::unary_saving(move |gradient| {
                    gradient.shared_evenly(own.get()?, result.get()?)
                })
            },
        )
    }

    /// Returns the medians along a dimension, and their indices.
    ///
    /// # Errors
    /// Returns an error if the dimension does not exist or is empty.
    pub fn median_along(&self, dimension: i64, keep: KeepDims) -> Result<[Self; 2]> {
        let _scope = open(&MEDIAN, (self, dimension, keep.flag()));
        let at = dimension_index(dimension, self.rank())?;
        if self.dims().get(at) == Some(&0) {
            return reject!(
                Index,
                "median(): Expected reduction dim {at} to have non-zero size."
            );
        }
        differentiable_first(
            &MEDIAN_NODE,
            [self],
            || {
                drop(empty(&[0], self.dtype(), &Options::like(self))?);
                drop(empty(&[0], DType::I64, &Options::strided(DType::I64))?);
                if self.rank() == 0 {
                    let place = Self::from_slice(&[0_i64], &[])?;
                    let own = kernels::duplicate(self)?;
                    return Ok([own, place]);
                }
                let places = self.middle_places(at)?;
                let values = self.gather_elements(dimension, &places)?;
                let mut reduced = vec![false; self.rank()];
                reduced[at] = true;
                let layout = Layout::contiguous(reduced_dims(self.dims(), &reduced, keep))?;
                let values = kernels::pack(&values)?.with_layout(layout.clone())?;
                Ok([values, places.with_layout(layout)?])
            },
            |[_, places]| self.selecting_formula(dimension, places, keep),
        )
    }

    /// Returns the indices of the medians along a dimension, which is kept with size one.
    fn middle_places(&self, at: usize) -> Result<Self> {
        let [outer, middle, inner] = self.spans(at);
        let order = kernels::sorted_places(&kernels::pack(self)?, [outer, middle, inner], false)?;
        let lowest = (middle - 1) / 2;
        let mut dims = self.dims().to_vec();
        dims[at] = 1;
        let last = places_of_rank(&order, [outer, middle, inner], middle - 1, &dims)?;
        let found = places_of_rank(&order, [outer, middle, inner], lowest, &dims)?;
        if !self.dtype().is_float() {
            return Ok(found);
        }
        // NaN is last in the order and, if present, is the result.
        let none = self.gather_elements(at as i64, &last)?.to_f64_vec()?;
        let chosen: Vec<i64> = (none.iter())
            .zip(last.to_vec::<i64>()?)
            .zip(found.to_vec::<i64>()?)
            .map(|((value, last), found)| if value.is_nan() { last } else { found })
            .collect();
        Self::from_slice(&chosen, &signed(&dims))
    }
}

/// Returns, as a tensor, the indices of the elements at one rank of a sorted order.
fn places_of_rank(
    order: &[i64],
    [outer, middle, inner]: [usize; 3],
    rank: usize,
    dims: &[usize],
) -> Result<Tensor> {
    let places: Vec<i64> = (0..outer)
        .flat_map(|block| {
            let begin = (block * middle + rank) * inner;
            order[begin..begin + inner].iter().copied()
        })
        .collect();
    Tensor::from_slice(&places, &signed(dims))
}
