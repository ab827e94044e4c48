//! View operators, which share elements under another shape, and `reshape`, which copies if no view
//! exists.

use crate::autograd::{Below, Formula, differentiable, differentiable_view, node_site};
use crate::dispatch::{Absent, Site, open, returning};
use crate::error::reject;
use crate::layout::Layout;
use crate::shape::{Dims, Strides, checked_sizes, dimension_index, infer_view, signed};
use crate::{Error, Result, Tensor};

static ALIAS: Site = Site::operator("aten::alias");
static AS_STRIDED: Site = Site::operator("aten::as_strided");
static AS_STRIDED_IN_PLACE: Site = Site::operator("aten::as_strided_");
static DETACH: Site = Site::operator("aten::detach");
static DETACH_NODE: Site = Site::operator("detach");
static DETACH_IN_PLACE: Site = Site::operator("aten::detach_");
static DETACH_IN_PLACE_NODE: Site = Site::operator("detach_");
static EXPAND: Site = Site::operator("aten::expand");
static FLATTEN: Site = Site::operator("aten::flatten");
static MATRIX_TRANSPOSE: Site = Site::operator("aten::mT");
static PERMUTE: Site = Site::operator("aten::permute");
static RESHAPE: Site = Site::operator("aten::reshape");
static RESHAPE_ALIAS: Site = Site::operator("aten::_reshape_alias");
static SQUEEZE: Site = Site::operator("aten::squeeze");
static SQUEEZE_IN_PLACE: Site = Site::operator("aten::squeeze_");
static T: Site = Site::operator("aten::t");
static TRANSPOSE: Site = Site::operator("aten::transpose");
static UNSAFE_VIEW: Site = Site::operator("aten::_unsafe_view");
static UNSQUEEZE: Site = Site::operator("aten::unsqueeze");
static VIEW: Site = Site::operator("aten::view");
static VIEW_AS: Site = Site::operator("aten::view_as");

node_site! {
    ALIAS_NODE = "AliasBackward0";
    AS_STRIDED_NODE = "AsStridedBackward0";
    EXPAND_NODE = "ExpandBackward0";
    PERMUTE_NODE = "PermuteBackward0";
    RESHAPE_ALIAS_NODE = "ReshapeAliasBackward0";
    SQUEEZE_ALL_NODE = "SqueezeBackward0";
    SQUEEZE_IN_PLACE_NODE = "SqueezeBackward4";
    SQUEEZE_NODE = "SqueezeBackward1";
    T_NODE = "TBackward0";
    TRANSPOSE_NODE = "TransposeBackward0";
    UNSAFE_VIEW_NODE = "UnsafeViewBackward0";
    UNSQUEEZE_NODE = "UnsqueezeBackward0";
    VIEW_NODE = "ViewBackward0";
}

impl Tensor {
    /// Transposes a matrix; a vector or a zero-dimensional tensor stays as it is.
    ///
    /// # Errors
    /// Returns an error if the tensor has more than two dimensions.
    pub fn t(&self) -> Result<Self> {
        let _scope = open(&T, (self,));
        differentiable_view(
            &T_NODE,
            self,
            || match self.rank() {
                0 | 1 => self.transpose(0, 0),
                2 => self.transpose(0, 1),
                rank => Err(Error::NotAMatrix { rank }),
            },
            |_| Formula::unary(Tensor::t),
        )
    }

    /// Swaps two dimensions.
    ///
    /// # Errors
    /// Returns an error if a dimension does not exist.
    pub fn transpose(&self, first: i64, second: i64) -> Result<Self> {
        let _scope = open(&TRANSPOSE, (self, first, second));
        differentiable_view(
            &TRANSPOSE_NODE,
            self,
            || {
                let first = dimension_index(first, self.rank())?;
                let second = dimension_index(second, self.rank())?;
                if first == second {
                    let _scope = open(&ALIAS, (self,));
                    return Ok(self.alias());
                }
                self.as_layout(self.layout().transposed(first, second)?)
            },
            |_| Formula::unary(move |gradient| gradient.transpose(first, second)),
        )
    }

    /// Reorders the dimensions.
    ///
    /// # Errors
    /// Returns an error if a dimension is missing, does not exist or is repeated.
    pub fn permute(&self, order: &[i64]) -> Result<Self> {
        let _scope = open(&PERMUTE, (self, order));
        if order.len() != self.rank() {
            return reject!(
                Runtime,
                "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the \
                 desired ordering of dimensions i.e. input.dim() = {} is not equal to len(dims) = {}",
                self.rank(),
                order.len()
            );
        }
        let mut places = Dims::new();
        for &dimension in order {
            let place = dimension_index(dimension, self.rank())?;
            if places.contains(&place) {
                return reject!(Runtime, "permute(): duplicate dims are not allowed.");
            }
            places.push(place);
        }
        differentiable_view(
            &PERMUTE_NODE,
            self,
            || self.as_layout(self.layout().permuted(&places)?),
            |_| {
                let mut back = vec![0_i64; places.len()];
                for (index, &place) in places.iter().enumerate() {
                    back[place] = index as i64;
                }
                Formula::unary(move |gradient| gradient.permute(&back))
            },
        )
    }

    /// Expands dimensions of size one and adds leading ones, without copying. A size of -1 keeps
    /// the existing one.
    ///
    /// # Errors
    /// Returns an error if a dimension whose size is not one would have to be expanded.
    pub fn expand(&self, sizes: &[i64]) -> Result<Self> {
        let _scope = open(&EXPAND, (self, sizes, false));
        differentiable_view(
            &EXPAND_NODE,
            self,
            || self.as_layout(self.layout().expanded(sizes, self.dtype())?),
            |_| {
                let dims = Dims::from_slice(self.dims());
                Formula::unary(move |gradient| gradient.sum_to(&dims))
            },
        )
    }

    /// Returns a view with another shape. One size may be -1 and is inferred.
    ///
    /// # Errors
    /// Returns an error if the shape has a different number of elements, or cannot be expressed
    /// without a copy.
    pub fn view(&self, sizes: &[i64]) -> Result<Self> {
        let _scope = open(&VIEW, (self, sizes));
        differentiable_view(
            &VIEW_NODE,
            self,
            || self.viewed(sizes)?.ok_or(Error::ViewNeedsCopy),
            |_| reshape_formula(self),
        )
    }

    /// Returns the elements in another shape, copying only if no view exists. One size may be -1
    /// and is inferred.
    ///
    /// # Errors
    /// Returns an error if the shape has a different number of elements.
    pub fn reshape(&self, sizes: &[i64]) -> Result<Self> {
        let _scope = open(&RESHAPE, (self, sizes));
        let dims = infer_view(sizes, self.count())?;
        if self.is_contiguous() {
            return self.view(sizes);
        }
        let sizes = signed(&dims);
        if let Some(view) = self.viewed(&sizes)? {
            // A tracked tensor goes through `view`, so that its node has the name that torch gives
            // it.
            if crate::autograd::is_tracking() && self.requires_grad() {
                return self.view(&sizes);
            }
            let _scope = open(&RESHAPE_ALIAS, (self, sizes.as_slice(), view.strides()));
            return differentiable_view(
                &RESHAPE_ALIAS_NODE,
                self,
                || Ok(view),
                |_| reshape_formula(self),
            );
        }
        self.duplicate_contiguous()?.unsafe_view(&sizes)
    }

    /// Merges the dimensions from `start` to `end`, inclusive.
    ///
    /// # Errors
    /// Returns an error if a dimension does not exist, or `start` comes after `end`.
    pub fn flatten(&self, start: i64, end: i64) -> Result<Self> {
        let _scope = open(&FLATTEN, (self, start, end));
        let first = dimension_index(start, self.rank())?;
        let last = dimension_index(end, self.rank())?;
        if first > last {
            return reject!(
                Runtime,
                "flatten() has invalid args: start_dim cannot come after end_dim"
            );
        }
        if self.rank() == 0 {
            return self.reshape(&[1]);
        }
        if first == last {
            return Ok(self.clone());
        }
        let dims = self.dims();
        let mut sizes = signed(&dims[..first]);
        sizes.push(dims[first..=last].iter().product::<usize>() as i64);
        sizes.extend(signed(&dims[last + 1..]));
        if self.is_contiguous() || self.viewed(&sizes)?.is_some() {
            return self.view(&sizes);
        }
        self.reshape(&sizes)
    }

    /// Inserts a dimension of size one.
    ///
    /// # Errors
    /// Returns an error if the dimension is out of range.
    pub fn unsqueeze(&self, dimension: i64) -> Result<Self> {
        let _scope = open(&UNSQUEEZE, (self, dimension));
        let at = dimension_index(dimension, self.rank() + 1)?;
        differentiable_view(
            &UNSQUEEZE_NODE,
            self,
            || self.as_layout(self.layout().unsqueezed(at)?),
            |_| Formula::unary(move |gradient| gradient.squeeze(at as i64)),
        )
    }

    /// Removes a dimension if its size is one.
    ///
    /// # Errors
    /// Returns an error if the dimension does not exist.
    pub fn squeeze(&self, dimension: i64) -> Result<Self> {
        let _scope = open(&SQUEEZE, (self, dimension));
        let at = dimension_index(dimension, self.rank())?;
        let removed = self.dims().get(at) == Some(&1);
        differentiable_view(
            &SQUEEZE_NODE,
            self,
            || self.as_layout(self.layout().squeezed(at)?),
            |_| {
                Formula::unary(move |gradient| {
                    if removed {
                        gradient.unsqueeze(at as i64)
                    } else {
                        Ok(gradient.clone())
                    }
                })
            },
        )
    }

    /// Removes all dimensions of size one.
    ///
    /// # Errors
    /// Never fails; the return type matches `squeeze`.
    pub fn squeeze_all(&self) -> Result<Self> {
        let _scope = open(&SQUEEZE, (self,));
        differentiable_view(
            &SQUEEZE_ALL_NODE,
            self,
            || {
                let kept = |index: &usize| self.dims()[*index] != 1;
                let places: Dims = (0..self.rank()).filter(kept).collect();
                self.as_layout(self.layout().permuted(&places)?)
            },
            |_| {
                let removed = |index: &usize| self.dims()[*index] == 1;
                let places: Dims = (0..self.rank()).filter(removed).collect();
                Formula::unary(move |gradient| {
                    places
                        .iter()
                        .try_fold(gradient.clone(), |gradient, &place| {
                            gradient.unsqueeze(place as i64)
                        })
                })
            },
        )
    }

    /// Returns a view of the storage with the given sizes, strides and offset.
    ///
    /// # Errors
    /// Returns an error if a number is negative or the view extends beyond the storage.
    pub fn as_strided_at(
        &self,
        sizes: &[i64],
        strides: &[i64],
        offset: Option<i64>,
    ) -> Result<Self> {
        let _scope = open(&AS_STRIDED, (self, sizes, strides, offset));
        if sizes.len() != strides.len() {
            return reject!(
                Runtime,
                "mismatch in length of strides and shape: {sizes:?} and {strides:?}"
            );
        }
        if strides.iter().any(|&stride| stride < 0) {
            return reject!(
                Runtime,
                "as_strided: Negative strides are not supported at the moment, got strides: {strides:?}"
            );
        }
        let offset = match offset {
            Some(offset) => match usize::try_from(offset) {
                Ok(offset) => offset,
                Err(_) => return reject!(Runtime, "Tensor: invalid storage offset {offset}"),
            },
            None => self.offset(),
        };
        let strides: Strides = strides.iter().map(|&stride| stride as isize).collect();
        let layout = Layout::strided(checked_sizes(sizes)?, strides, offset)?;
        let own = self.layout().clone();
        let piece = layout.clone();
        differentiable_view(
            &AS_STRIDED_NODE,
            self,
            || self.with_layout(layout),
            |_| Formula::unary(move |gradient| super::index::spread(gradient, &own, &piece)),
        )
    }

    /// Returns a view that is detached from the graph.
    ///
    /// # Errors
    /// Never fails; the return type matches other views.
    pub fn detach(&self) -> Result<Self> {
        let _scope = open(&DETACH, (self,));
        let _below = Below::enter();
        drop(open(&DETACH_NODE, (self,)));
        Ok(self.alias())
    }

    /// Detaches this tensor from its graph, in place.
    ///
    /// # Errors
    /// Returns an error if this tensor is a view.
    pub fn detach_(&self) -> Result<()> {
        let _scope = open(&DETACH_IN_PLACE, (self,));
        let _below = Below::enter();
        drop(open(&DETACH_IN_PLACE_NODE, (self,)));
        self.cut()
    }

    /// Returns a view of the storage with the given sizes and strides, starting where this tensor
    /// starts.
    pub(crate) fn as_strided(&self, dims: &[usize], strides: &[isize]) -> Result<Self> {
        let layout = Layout::strided(
            Dims::from_slice(dims),
            Strides::from_slice(strides),
            self.offset(),
        )?;
        self.as_layout(layout)
    }

    /// Expands to a shape that this tensor broadcasts to; records nothing if it already has that
    /// shape.
    pub(in crate::ops) fn expand_to(&self, dims: &[usize]) -> Result<Self> {
        if self.dims() == dims {
            return Ok(self.clone());
        }
        self.expand(&signed(dims))
    }

    /// Swaps the last two dimensions.
    pub(in crate::ops) fn matrix_transpose(&self) -> Result<Self> {
        let _scope = open(&MATRIX_TRANSPOSE, (self,));
        self.transpose(-2, -1)
    }

    /// Removes a dimension of a tensor that nobody else holds.
    pub(in crate::ops) fn squeeze_in_place(self, dimension: i64) -> Result<Self> {
        let _scope = open(&SQUEEZE_IN_PLACE, (&self, dimension));
        let at = dimension_index(dimension, self.rank())?;
        let layout = self.layout().squeezed(at)?;
        let removed = layout.dims().len() < self.rank();
        differentiable(
            &SQUEEZE_IN_PLACE_NODE,
            [&self],
            || {
                let _scope = open(
                    &AS_STRIDED_IN_PLACE,
                    (&self, layout.dims(), layout.strides(), Absent),
                );
                Ok(self.with_layout(layout.clone())?.into_owner())
            },
            |_| {
                Formula::unary(move |gradient| {
                    if removed {
                        gradient.unsqueeze(at as i64)
                    } else {
                        Ok(gradient.clone())
                    }
                })
            },
        )
    }

    /// Changes the shape of a tensor that nobody else holds.
    pub(in crate::ops) fn unsafe_view(self, sizes: &[i64]) -> Result<Self> {
        let _scope = open(&UNSAFE_VIEW, (&self, sizes));
        differentiable(
            &UNSAFE_VIEW_NODE,
            [&self],
            || {
                let view = self.viewed(sizes)?.ok_or(Error::ViewNeedsCopy)?;
                Ok(view.into_owner())
            },
            |_| reshape_formula(&self),
        )
    }

    /// Returns a view with another layout, recorded as `aten::as_strided`.
    pub(in crate::ops) fn as_layout(&self, layout: Layout) -> Result<Self> {
        let _scope = open(&AS_STRIDED, (self, layout.dims(), layout.strides(), Absent));
        returning(self.with_layout(layout))
    }

    /// Records the `as_strided_` that torch applies to a result from an external library.
    pub(in crate::ops) fn tell_as_strided(&self) {
        drop(open(
            &AS_STRIDED_IN_PLACE,
            (self, self.dims(), self.strides(), Absent),
        ));
    }

    /// Returns a view with the sizes of another tensor.
    ///
    /// # Errors
    /// Fails in the same cases as `view`.
    pub fn view_as(&self, other: &Self) -> Result<Self> {
        let _scope = open(&VIEW_AS, (self, other));
        self.view(&signed(other.dims()))
    }

    /// Returns a view of all elements that autograd treats as a distinct tensor.
    ///
    /// # Errors
    /// Never fails; the return type matches other views.
    pub fn view_as_self(&self) -> Result<Self> {
        let _scope = open(&ALIAS, (self,));
        differentiable_view(
            &ALIAS_NODE,
            self,
            || Ok(self.alias()),
            |_| Formula::unary(|gradient| Ok(gradient.clone())),
        )
    }

    fn viewed(&self, sizes: &[i64]) -> Result<Option<Self>> {
        let dims = infer_view(sizes, self.count())?;
        self.layout()
            .view_strides(&dims)
            .map(|strides| self.with_layout(Layout::strided(dims, strides, self.offset())?))
            .transpose()
    }
}

/// Returns the formula of an operator that keeps the order of elements: it restores the operand's
/// shape.
fn reshape_formula(operand: &Tensor) -> Formula {
    let sizes = signed(operand.dims());
    Formula::unary(move |gradient| gradient.reshape(&sizes))
}
