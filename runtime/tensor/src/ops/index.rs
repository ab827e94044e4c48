//! Basic indexing: `select`, `slice`, `narrow`, and `gather` along a dimension.

use super::extreme::index_type;
use super::sorting::show_index_type;
use crate::autograd::{Formula, Saved, differentiable, differentiable_view, node_site};
use crate::dispatch::{Site, open, returning};
use crate::error::reject;
use crate::kernels;
use crate::layout::Layout;
use crate::shape::{dimension_index, signed};
use crate::{Result, Scalar, Tensor};

static AS_STRIDED: Site = Site::operator("aten::as_strided");
static GATHER_BACKWARD: Site = Site::operator("aten::gather_backward");
static GATHER: Site = Site::operator("aten::gather");
static NARROW: Site = Site::operator("aten::narrow");
static SELECT: Site = Site::operator("aten::select");
static SELECT_BACKWARD: Site = Site::operator("aten::select_backward");
static SLICE: Site = Site::operator("aten::slice");
static SLICE_BACKWARD: Site = Site::operator("aten::slice_backward");
static TRIL: Site = Site::operator("aten::tril");
static TRIU: Site = Site::operator("aten::triu");

node_site! {
    GATHER_NODE = "GatherBackward0";
    SELECT_NODE = "SelectBackward0";
    SLICE_NODE = "SliceBackward0";
    TRIL_NODE = "TrilBackward0";
    TRIU_NODE = "TriuBackward0";
}

/// The triangle of a matrix that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Triangle {
    /// On and below the diagonal.
    Lower,
    /// On and above the diagonal.
    Upper,
}

impl Tensor {
    /// Selects one index of a dimension and removes the dimension.
    ///
    /// # Errors
    /// Returns an error if the dimension does not exist or the index is out of range.
    pub fn select(&self, dimension: i64, index: i64) -> Result<Self> {
        let _scope = open(&SELECT, (self, dimension, index));
        if self.rank() == 0 {
            return reject!(Index, "select() cannot be applied to a 0-dim tensor.");
        }
        let at = dimension_index(dimension, self.rank())?;
        let size = self.dims()[at] as i64;
        if index < -size || index >= size {
            return reject!(
                Index,
                "select(): index {index} out of range for tensor of size {:?} at dimension {at}",
                self.dims()
            );
        }
        let place = index.rem_euclid(size) as usize;
        differentiable_view(
            &SELECT_NODE,
            self,
            || self.at_offset(self.layout().selected(at, place)?),
            |_| {
                let sizes = signed(self.dims());
                Formula::unary(move |gradient| {
                    let arguments = (gradient, sizes.as_slice(), at as i64, place as i64);
                    let _scope = open(&SELECT_BACKWARD, arguments);
                    let whole = Self::zeros(&sizes, Some(gradient.dtype()))?;
                    whole.select(at as i64, place as i64)?.copy_(gradient)?;
                    Ok(whole)
                })
            },
        )
    }

    /// Keeps every `step`th index of a dimension, from `start` up to but excluding `end`, with the
    /// semantics of Python slices.
    ///
    /// # Errors
    /// Returns an error if the dimension does not exist or the step is not positive.
    pub fn slice(
        &self,
        dimension: i64,
        start: Option<i64>,
        end: Option<i64>,
        step: i64,
    ) -> Result<Self> {
        let shown = (start.unwrap_or(0), end.unwrap_or(i64::MAX), step);
        let _scope = open(&SLICE, (self, dimension, shown.0, shown.1, step));
        if self.rank() == 0 {
            return reject!(Runtime, "slice() cannot be applied to a 0-dim tensor.");
        }
        let at = dimension_index(dimension, self.rank())?;
        if step <= 0 {
            return reject!(Runtime, "slice step must be positive");
        }
        let size = self.dims()[at] as i64;
        let bound = |place: i64| {
            if place < 0 {
                place.saturating_add(size)
            } else {
                place
            }
        };
        let first = bound(shown.0).clamp(0, size);
        let last = bound(shown.1).clamp(first, size);
        let range = (first as usize, last as usize, step as usize);
        differentiable_view(
            &SLICE_NODE,
            self,
            || self.at_offset(self.layout().sliced(at, range.0, range.1, range.2)?),
            |_| {
                let sizes = signed(self.dims());
                Formula::unary(move |gradient| {
                    let arguments = (gradient, sizes.as_slice(), at as i64, first, last, step);
                    let _scope = open(&SLICE_BACKWARD, arguments);
                    let whole = Self::zeros(&sizes, Some(gradient.dtype()))?;
                    whole
                        .slice(at as i64, Some(first), Some(last), step)?
                        .copy_(gradient)?;
                    Ok(whole)
                })
            },
        )
    }

    /// Keeps `length` indices of a dimension, beginning with `start`.
    ///
    /// # Errors
    /// Returns an error if the range extends beyond the dimension.
    pub fn narrow(&self, dimension: i64, start: i64, length: i64) -> Result<Self> {
        let _scope = open(&NARROW, (self, dimension, start, length));
        if self.rank() == 0 {
            return reject!(Runtime, "narrow() cannot be applied to a 0-dim tensor.");
        }
        let at = dimension_index(dimension, self.rank())?;
        let size = self.dims()[at] as i64;
        if length < 0 {
            return reject!(Runtime, "narrow(): length must be non-negative.");
        }
        if start < -size || start > size {
            return reject!(
                Index,
                "start out of range (expected to be in range of [{}, {size}], but got {start})",
                -size
            );
        }
        let start = if start < 0 { start + size } else { start };
        if length > size - start {
            return reject!(
                Runtime,
                "start ({start}) + length ({length}) exceeds dimension size ({size})."
            );
        }
        self.slice(dimension, Some(start), Some(start + length), 1)
    }

    /// Gathers elements along a dimension by their indices.
    ///
    /// # Errors
    /// Returns an error if the index does not hold integers, its rank differs, or an index is out
    /// of range.
    pub fn gather(&self, dimension: i64, index: &Self) -> Result<Self> {
        let _scope = open(&GATHER, (self, dimension, index, false));
        index_type(index, "gather")?;
        if index.rank().max(1) != self.rank().max(1) {
            return reject!(
                Runtime,
                "Index tensor must have the same number of dimensions as input tensor"
            );
        }
        differentiable(
            &GATHER_NODE,
            [self],
            || {
                show_index_type(index);
                self.gather_elements(dimension, index)
            },
            |_| {
                let (own, kept) = (self.untracked(), Saved::new(index));
                Formula::unary_saving(move |gradient| {
                    let index = kept.get()?;
                    let arguments = (gradient, &own, dimension, index, false);
                    let _scope = open(&GATHER_BACKWARD, arguments);
                    let whole = gradient.new_zeros(&signed(own.dims()), None)?;
                    whole.scatter_add_(dimension, index, gradient)?;
                    Ok(whole)
                })
            },
        )
    }

    /// Keeps a triangle of a matrix and zeroes the rest.
    ///
    /// # Errors
    /// Returns an error if the tensor has fewer than two dimensions.
    pub fn triangle(&self, part: Triangle, diagonal: i64) -> Result<Self> {
        let (site, node, name) = match part {
            Triangle::Lower => (&TRIL, &TRIL_NODE, "tril"),
            Triangle::Upper => (&TRIU, &TRIU_NODE, "triu"),
        };
        let _scope = open(site, (self, diagonal));
        if self.rank() < 2 {
            return reject!(
                Runtime,
                "{name}: input tensor must have at least 2 dimensions"
            );
        }
        differentiable(
            node,
            [self],
            || {
                let result = kernels::pack(&kernels::duplicate(self)?)?;
                kernels::clear_triangle(&result, part, diagonal);
                Ok(result)
            },
            |_| Formula::unary(move |gradient| gradient.triangle(part, diagonal)),
        )
    }

    pub(in crate::ops) fn gather_elements(&self, dimension: i64, index: &Self) -> Result<Self> {
        let at = dimension_index(dimension, self.rank())?;
        let places = kernels::along(self, at, index)?;
        kernels::take(self, &places, index.dims())
    }

    /// Returns a view of this tensor, recorded as an `as_strided` with an explicit offset.
    fn at_offset(&self, layout: Layout) -> Result<Self> {
        let offset = Scalar::Int(layout.offset() as i64);
        let _scope = open(&AS_STRIDED, (self, layout.dims(), layout.strides(), offset));
        returning(self.with_layout(layout))
    }
}

/// Writes the gradient of a slice into zeros of the shape of the whole tensor.
pub(in crate::ops) fn spread(gradient: &Tensor, whole: &Layout, piece: &Layout) -> Result<Tensor> {
    let result = Tensor::blank(whole.at_start(), gradient.dtype())?;
    let part = result.with_layout(piece.moved(whole.offset())?)?;
    kernels::copy_into(&part, gradient);
    Ok(result)
}
