//! Operators that order or accumulate along a dimension: `sort`, `topk`, `cumsum`, `flip`.

use super::create::{Options, empty, empty_strided, result_space};
use crate::autograd::{Formula, Saved, differentiable, differentiable_first, node_site};
use crate::dispatch::{Absent, Device, Site, open};
use crate::error::reject;
use crate::kernels;
use crate::layout::Layout;
use crate::shape::{checked_sizes, dimension_index, signed};
use crate::{DType, End, KeepDims, Result, Tensor};

static ARANGE: Site = Site::operator("aten::arange");
static AS_STRIDED: Site = Site::operator("aten::as_strided");
static COPY: Site = Site::operator("aten::copy_");
static CUMSUM: Site = Site::operator("aten::cumsum");
static EMPTY_LIKE: Site = Site::operator("aten::empty_like");
static FLIP: Site = Site::operator("aten::flip");
static RESIZE: Site = Site::operator("aten::resize_");
static SELECTING_BACKWARD: Site = Site::operator("aten::value_selecting_reduction_backward");
static SORT: Site = Site::operator("aten::sort");
static TO: Site = Site::operator("aten::to");
static TOPK: Site = Site::operator("aten::topk");
static ZEROS: Site = Site::operator("aten::zeros");

node_site! {
    CUMSUM_NODE = "CumsumBackward0";
    FLIP_NODE = "FlipBackward0";
    SORT_NODE = "SortBackward0";
    TOPK_NODE = "TopkBackward0";
}

/// Torch's number for the strided layout.
const STRIDED: i64 = 0;

impl Tensor {
    /// Sorts the elements along a dimension, beginning with the `first` end, and returns them with
    /// their indices.
    ///
    /// # Errors
    /// Returns an error if the dimension does not exist or memory cannot be allocated.
    pub fn sort(&self, dimension: i64, first: End) -> Result<[Self; 2]> {
        let is_descending = first == End::Highest;
        let _scope = open(&SORT, (self, dimension, is_descending));
        let _stable = open(&SORT, (self, false, dimension, is_descending));
        let at = dimension_index(dimension, self.rank())?;
        differentiable_first(
            &SORT_NODE,
            [self],
            || {
                let [values, places] = self.in_order(at, first, self.lane(at))?;
                drop(open(&COPY, (&values, self, false)));
                self.open_range(at, &places)?;
                Ok([values, places])
            },
            |[_, places]| self.selecting_formula(dimension, places, KeepDims::Yes),
        )
    }

    /// Returns the `count` most extreme elements along a dimension, in order, with their indices.
    ///
    /// # Errors
    /// Returns an error if the dimension does not exist or has fewer than `count` elements.
    pub fn topk(&self, count: i64, dimension: i64, end: End, is_sorted: bool) -> Result<[Self; 2]> {
        let _scope = open(
            &TOPK,
            (self, count, dimension, end == End::Highest, is_sorted),
        );
        let at = dimension_index(dimension, self.rank())?;
        if count < 0 || count > self.lane(at) as i64 {
            return reject!(Runtime, "selected index k out of range");
        }
        differentiable_first(
            &TOPK_NODE,
            [self],
            || self.in_order(at, end, count as usize),
            |[_, places]| self.selecting_formula(dimension, places, KeepDims::Yes),
        )
    }

    /// Returns the cumulative sums along a dimension.
    ///
    /// # Errors
    /// Returns an error if the dimension does not exist or memory cannot be allocated.
    pub fn cumsum(&self, dimension: i64, dtype: Option<DType>) -> Result<Self> {
        let _scope = open(&CUMSUM, (self, dimension, dtype));
        let at = dimension_index(dimension, self.rank())?;
        let wanted = match dtype {
            Some(dtype) => dtype,
            None if self.dtype().is_float() => self.dtype(),
            None => DType::I64,
        };
        differentiable(
            &CUMSUM_NODE,
            [self],
            || {
                let own = self.to(wanted)?;
                kernels::running_sums(&kernels::pack(&own)?, own.spans(at))
            },
            |_| {
                let (lane, own) = (self.lane(at), self.dtype());
                Formula::unary(move |gradient| {
                    let gradient = gradient.to(own)?;
                    if gradient.count() <= 1 || lane == 1 {
                        return Ok(gradient);
                    }
                    let back = gradient.flip(&[dimension])?;
                    back.cumsum(dimension, None)?.flip(&[dimension])
                })
            },
        )
    }

    /// Reverses the order of the elements along dimensions.
    ///
    /// # Errors
    /// Returns an error if a dimension does not exist or is repeated.
    pub fn flip(&self, dimensions: &[i64]) -> Result<Self> {
        const PRESERVE: i64 = 1;
        let _scope = open(&FLIP, (self, dimensions));
        let flipped = crate::shape::dimension_mask(dimensions, self.rank())?;
        let list = dimensions.to_vec();
        differentiable(
            &FLIP_NODE,
            [self],
            || {
                {
                    let arguments = (self, Absent, Absent, Absent, Absent, PRESERVE);
                    let _scope = open(&EMPTY_LIKE, arguments);
                    empty_strided(self.dims(), self.strides(), self.dtype(), None)?;
                }
                if list.is_empty() {
                    return kernels::pack(&self.untracked())?.duplicate();
                }
                let arguments = (self, self.dims(), self.strides(), Absent);
                drop(open(&AS_STRIDED, arguments));
                self.turned(&flipped)
            },
            |_| {
                let list = list.clone();
                Formula::unary(move |gradient| gradient.flip(&list))
            },
        )
    }

    fn turned(&self, flipped: &[bool]) -> Result<Self> {
        let mut places = vec![self.offset()];
        for ((&dim, &stride), &is_flipped) in self.dims().iter().zip(self.strides()).zip(flipped) {
            let step = |index: usize| if is_flipped { dim - 1 - index } else { index };
            places = (places.iter())
                .flat_map(|&place| (0..dim).map(move |index| place + step(index) * stride as usize))
                .collect();
        }
        kernels::take(self, &places, self.dims())
    }

    /// Returns the size of a dimension; a zero-dimensional tensor has one of size one.
    fn lane(&self, at: usize) -> usize {
        self.dims().get(at).copied().unwrap_or(1)
    }

    /// Returns the number of elements outside of a dimension, along it and inside of it.
    pub(in crate::ops) fn spans(&self, at: usize) -> [usize; 3] {
        let outer = self.dims().iter().take(at).product();
        let inner = self.dims().iter().skip(at + 1).product();
        [outer, self.lane(at), inner]
    }

    /// Returns the first `count` elements along a dimension in sorted order, with their indices.
    fn in_order(&self, at: usize, first: End, count: usize) -> Result<[Self; 2]> {
        let flat = kernels::pack(self)?;
        let [outer, middle, inner] = self.spans(at);
        let found = kernels::sorted_places(&flat, [outer, middle, inner], first == End::Highest)?;
        let mut kept = Vec::with_capacity(outer * count * inner);
        for block in 0..outer {
            let begin = block * middle * inner;
            kept.extend_from_slice(&found[begin..begin + count * inner]);
        }
        let mut dims = self.dims().to_vec();
        if let Some(lane) = dims.get_mut(at) {
            *lane = count;
        }
        let places = Self::from_slice(&kept, &signed(&dims))?;
        let values = if self.rank() == 0 {
            flat.untracked().contents()?
        } else {
            self.gather_elements(at as i64, &places)?
        };
        Ok([values, places])
    }

    /// Returns a copy of the elements without recording an operator.
    fn contents(&self) -> Result<Self> {
        let copy = result_space(self.dims(), self.dtype())?;
        kernels::copy_into(&copy, self);
        Ok(copy)
    }

    /// Records the range that torch fills indices with before it sorts.
    fn open_range(&self, at: usize, places: &Self) -> Result<()> {
        let count = self.lane(at) as i64;
        let range = {
            let arguments = (0_i64, count, DType::I64, STRIDED, Device, Absent);
            let _scope = open(&ARANGE, arguments);
            let space = empty(&[0], DType::I64, &Options::strided(DType::I64))?;
            let _inner = open(&ARANGE, (0_i64, count, 1_i64, &space));
            drop(open(&RESIZE, (&space, [count].as_slice(), Absent)));
            result_space(&[count as usize], DType::I64)?
        };
        let one = |index: usize, own: i64, other: i64| if index == at { own } else { other };
        let dims: Vec<i64> = (0..self.rank()).map(|index| one(index, count, 1)).collect();
        let strides: Vec<i64> = (0..self.rank()).map(|index| one(index, 1, 0)).collect();
        drop(open(
            &AS_STRIDED,
            (&range, dims.as_slice(), strides.as_slice(), Absent),
        ));
        let strides = strides.iter().map(|&stride| stride as isize).collect();
        let spread = range.with_layout(Layout::strided(checked_sizes(&dims)?, strides, 0)?)?;
        drop(open(&COPY, (places, &spread, false)));
        Ok(())
    }

    /// Returns the formula that sends the gradients of selected elements back to their origin.
    pub(in crate::ops) fn selecting_formula(
        &self,
        dimension: i64,
        places: &Self,
        keep: KeepDims,
    ) -> Formula {
        let (places, sizes) = (Saved::new(places), signed(self.dims()));
        Formula::unary_saving(move |gradient| {
            let (mut gradient, mut places) = (gradient.clone(), places.get()?.clone());
            let arguments = (&gradient, dimension, &places, sizes.as_slice(), keep.flag());
            let _scope = open(&SELECTING_BACKWARD, arguments);
            if keep == KeepDims::No && !sizes.is_empty() {
                gradient = gradient.unsqueeze(dimension)?;
                places = places.unsqueeze(dimension)?;
            }
            let dtype = gradient.dtype();
            let whole = {
                let _scope = open(&ZEROS, (sizes.as_slice(), dtype, STRIDED, Device, Absent));
                let whole = empty(&sizes, dtype, &Options::strided(dtype))?;
                whole.zero_()?;
                whole
            };
            whole.scatter_(dimension, &places, &gradient)?;
            Ok(whole)
        })
    }
}

/// Records that a 64-bit index needs no conversion.
pub(in crate::ops) fn show_index_type(index: &Tensor) {
    if index.count() > 0 {
        drop(open(&TO, (index, DType::I64, false, false, Absent)));
    }
}
