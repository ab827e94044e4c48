//! Advanced indexing with tensors: `index`, `index_put_`, `index_select`, `nonzero`.
//!
//! Each index tensor replaces a dimension. The index shapes broadcast; if the indices are adjacent,
//! their common shape takes the place of the first one, otherwise it comes first.

use super::create::{Options, empty};
use super::extreme::index_type;
use crate::autograd::{Formula, Saved, differentiable, in_place, node_site};
use crate::dispatch::{Absent, Site, open};
use crate::error::reject;
use crate::kernels::{self, Put};
use crate::shape::{Dims, broadcast, count, dimension_index, signed, storage_bytes};
use crate::storage::reserve;
use crate::{DType, Error, KeepDims, Result, Tensor};

static AS_STRIDED: Site = Site::operator("aten::as_strided");
static AS_STRIDED_IN_PLACE: Site = Site::operator("aten::as_strided_");
static INDEX: Site = Site::operator("aten::index");
static INDEX_PUT: Site = Site::operator("aten::index_put_");
static INDEX_PUT_INNER: Site = Site::operator("aten::_index_put_impl_");
static INDEX_SELECT: Site = Site::operator("aten::index_select");
static MASKED_SCATTER: Site = Site::operator("aten::masked_scatter_");
static MASKED_SELECT: Site = Site::operator("aten::masked_select");
static MASKED_SELECT_BACKWARD: Site = Site::operator("aten::masked_select_backward");
static NONZERO: Site = Site::operator("aten::nonzero");

node_site! {
    INDEX_NODE = "IndexBackward0";
    INDEX_PUT_NODE = "IndexPutBackward0";
    INDEX_SELECT_NODE = "IndexSelectBackward0";
    MASKED_SELECT_NODE = "MaskedSelectBackward0";
}

impl Tensor {
    /// Picks elements by index tensors, one per dimension; `None` keeps a whole dimension.
    ///
    /// # Errors
    /// Returns an error if an index is out of range, the shapes do not broadcast, or an index holds
    /// neither integers nor booleans.
    pub fn index(&self, indices: &[Option<Self>]) -> Result<Self> {
        let _scope = open(&INDEX, (self, Absent));
        let plan = Plan::build(self, indices)?;
        differentiable(
            &INDEX_NODE,
            [self],
            || {
                self.tell_places(indices)?;
                let taken = kernels::take(self, &plan.places, &plan.dims)?;
                plan.arrange(&taken)
            },
            |_| {
                let sizes = signed(self.dims());
                let indices = indices.to_vec();
                Formula::unary(move |gradient| {
                    let whole = gradient.new_zeros(&sizes, None)?;
                    whole.put_by_index(&indices, gradient, Put::Add)?;
                    Ok(whole)
                })
            },
        )
    }

    /// Writes to the elements that index tensors pick.
    ///
    /// # Errors
    /// Fails in the same cases as `index`, and if the values do not broadcast to the
    /// picked elements or have another dtype.
    pub fn index_put_(&self, indices: &[Option<Self>], values: &Self, put: Put) -> Result<()> {
        let _scope = open(&INDEX_PUT, (self, Absent, values, put == Put::Add));
        self.put_by_index(indices, values, put)
    }

    fn put_by_index(&self, indices: &[Option<Self>], values: &Self, put: Put) -> Result<()> {
        let is_added = put == Put::Add;
        let _scope = open(&INDEX_PUT_INNER, (self, Absent, values, is_added, is_added));
        if values.dtype() != self.dtype() && values.rank() != 0 {
            return reject!(
                Runtime,
                "Index put requires the source and destination dtypes match, got {} for the destination and {} for \
                 the source.",
                self.dtype().title(),
                values.dtype().title()
            );
        }
        let plan = Plan::build(self, indices)?;
        if self.layout().repeats() {
            return Err(Error::OverlappingWrite);
        }
        in_place(
            &INDEX_PUT_NODE,
            self,
            [values],
            || {
                self.tell_places(indices)?;
                let values = values.as_type(self.dtype())?;
                let dims = broadcast(&plan.result_dims(), values.dims())?;
                if dims.as_slice() != plan.result_dims().as_slice() {
                    return reject!(
                        Runtime,
                        "shape mismatch: value tensor of shape {:?} cannot be broadcast to indexing result of shape \
                         {:?}",
                        values.dims(),
                        plan.result_dims()
                    );
                }
                let spread = values
                    .with_layout(values.layout().expanded(&signed(&dims), values.dtype())?)?;
                let mut packed = kernels::pack(&plan.unarrange(&spread)?)?;
                if packed.shares_storage(self) {
                    packed = packed.duplicate()?;
                }
                kernels::put(self, &plan.places, &packed, put);
                Ok(())
            },
            || {
                let (indices, sizes) = (indices.to_vec(), signed(values.dims()));
                Formula::plain(move |gradients| {
                    let gradient = gradients.only();
                    let rest = gradients.when(0, || {
                        let rest = gradient.duplicate()?;
                        if put == Put::Replace {
                            let zero = Self::zeros(&[], Some(gradient.dtype()))?;
                            rest.index_put_(&indices, &zero, Put::Replace)?;
                        }
                        Ok(rest)
                    })?;
                    let dims: Dims = sizes.iter().map(|&size| size as usize).collect();
                    let picked =
                        gradients.when(1, || gradient.index(&indices)?.sum_to_any(&dims))?;
                    Ok(smallvec::smallvec![rest, picked])
                })
            },
        )
    }

    /// Records the operators with which torch turns indices into storage positions: the strides of
    /// the tensor, and the indices as a row.
    fn tell_places(&self, indices: &[Option<Self>]) -> Result<()> {
        let places = || indices.iter().flatten();
        if places().any(|index| index.dtype() == DType::Bool) {
            return Ok(());
        }
        drop(open(
            &AS_STRIDED,
            (self, self.dims(), self.strides(), Absent),
        ));
        for index in places() {
            index.untracked().reshape(&signed(index.dims()))?;
        }
        Ok(())
    }

    /// Returns the elements that a mask selects, in order.
    ///
    /// # Errors
    /// Returns an error if the mask is not boolean, or the shapes do not broadcast.
    pub fn masked_select(&self, mask: &Self) -> Result<Self> {
        let _scope = open(&MASKED_SELECT, (self, mask));
        if mask.dtype() != DType::Bool {
            return reject!(Runtime, "masked_select: expected BoolTensor for mask");
        }
        let dims = broadcast(self.dims(), mask.dims())?;
        let spread = |tensor: &Self| {
            tensor.with_layout(tensor.layout().expanded(&signed(&dims), tensor.dtype())?)
        };
        differentiable(
            &MASKED_SELECT_NODE,
            [self],
            || {
                drop(empty(&[0], self.dtype(), &Options::like(self))?);
                mask.sum(None, KeepDims::No, None)?.item()?;
                let result = spread(self)?.marked(&spread(mask)?)?;
                result.as_strided(result.dims(), result.strides())?;
                Ok(result)
            },
            |_| {
                let (own, mask, dims) = (Saved::new(self), Saved::new(mask), dims.clone());
                Formula::unary_saving(move |gradient| {
                    let (own, mask) = (own.get()?, mask.get()?);
                    let _scope = open(&MASKED_SELECT_BACKWARD, (gradient, own, mask));
                    let mask = mask.expand(&signed(&dims))?;
                    let whole = own.expand_to(&dims)?.zeros_like()?;
                    let scope = open(&MASKED_SCATTER, (&whole, &mask, gradient));
                    let places = Plan::build(&whole, &[Some(mask.untracked())])?.places;
                    kernels::put(&whole, &places, &kernels::pack(gradient)?, Put::Replace);
                    drop(scope);
                    whole.sum_to_any(&Dims::from_slice(own.dims()))
                })
            },
        )
    }

    /// Returns the elements that a mask of the same shape selects, without opening a scope.
    fn marked(&self, mask: &Self) -> Result<Self> {
        if self.rank() == 0 {
            let row = |tensor: &Self| tensor.with_layout(tensor.layout().unsqueezed(0)?);
            return row(self)?.marked(&row(mask)?);
        }
        let plan = Plan::build(self, &[Some(mask.untracked())])?;
        kernels::take(self, &plan.places, &plan.dims)
    }

    /// Picks indices of a dimension by an index tensor.
    ///
    /// # Errors
    /// Returns an error if the index is not a vector of integers, or an index is out of range.
    pub fn index_select(&self, dimension: i64, index: &Self) -> Result<Self> {
        let _scope = open(&INDEX_SELECT, (self, dimension, index));
        let at = dimension_index(dimension, self.rank())?;
        if index.rank() > 1 {
            return reject!(
                Index,
                "index_select(): Index is supposed to be a vector, but got dim: {} with type: {} and size: {:?}",
                index.rank(),
                index.dtype().title(),
                index.dims()
            );
        }
        index_type(index, "index_select")?;
        let size = self.dims().get(at).map_or(1, |&size| size as i64);
        let outside = |place: &i64| *place < 0 || *place >= size;
        if let Some(place) = index.to_vec::<i64>()?.into_iter().find(outside) {
            return reject!(
                Index,
                "index out of range in self: index {place} of {size} places"
            );
        }
        differentiable(
            &INDEX_SELECT_NODE,
            [self],
            || self.select_places(at, index),
            |_| {
                let (sizes, kept) = (signed(self.dims()), Saved::new(index));
                Formula::unary_saving(move |gradient| {
                    let whole = Self::zeros(&sizes, Some(gradient.dtype()))?;
                    let mut indices: Vec<Option<Self>> = vec![None; at];
                    indices.push(Some(kept.get()?.clone()));
                    whole.index_put_(&indices, gradient, Put::Add)?;
                    Ok(whole)
                })
            },
        )
    }

    /// Returns the indices of the nonzero elements, one row each.
    ///
    /// # Errors
    /// Returns an error if memory cannot be allocated.
    pub fn nonzero(&self) -> Result<Self> {
        let _scope = open(&NONZERO, (self,));
        drop(empty(&[0], DType::I64, &Options::strided(DType::I64))?);
        let places = kernels::nonzero(self)?;
        let rows = if self.rank() == 0 {
            kernels::nonzero(&self.with_layout(self.layout().unsqueezed(0)?)?)?
                .first()
                .map_or(0, Vec::len)
        } else {
            places[0].len()
        };
        let mut elements = reserve(rows * self.rank())?;
        for row in 0..rows {
            elements.extend(places.iter().map(|column| column[row]));
        }
        let found = Self::from_slice(&elements, &[rows as i64, self.rank() as i64])?;
        let arguments = (&found, found.dims(), found.strides(), Absent);
        drop(open(&AS_STRIDED_IN_PLACE, arguments));
        Ok(found)
    }

    fn select_places(&self, at: usize, index: &Self) -> Result<Self> {
        let _room = empty(&[0], self.dtype(), &Options::like(self))?;
        let mut indices: Vec<Option<Self>> = vec![None; at];
        indices.push(Some(index.untracked()));
        if self.rank() == 0 {
            return self.duplicate();
        }
        let plan = Plan::build(self, &indices)?;
        let taken = kernels::take(self, &plan.places, &plan.dims)?;
        let result = plan.arrange(&taken)?;
        if at == 0 && self.count() > 0 && result.count() > 0 {
            self.select(0, 0)?;
            result.select(0, 0)?;
        }
        Ok(result)
    }

    /// Sums to any shape that broadcasts to this one, including one with additional leading
    /// dimensions of size one.
    fn sum_to_any(&self, dims: &[usize]) -> Result<Self> {
        if dims.len() > self.rank() {
            return self
                .sum_to(&dims[dims.len() - self.rank()..])?
                .view(&signed(dims));
        }
        self.sum_to(dims)
    }
}

/// The elements that index tensors pick, resolved to storage positions before any is read or written.
struct Plan {
    /// The storage positions, in the order of `dims`.
    places: Vec<usize>,
    /// The sizes of the picked elements, with those of the indices first.
    dims: Dims,
    /// The number of sizes that belong to the indices.
    index_rank: usize,
    /// The number of dimensions before the indices in the result.
    before: usize,
}

impl Plan {
    fn build(tensor: &Tensor, indices: &[Option<Tensor>]) -> Result<Self> {
        let indices = spread_masks(tensor, indices)?;
        let used: Vec<usize> = (0..indices.len())
            .filter(|&at| indices[at].is_some())
            .collect();
        let mut shape = Dims::new();
        for index in indices.iter().flatten() {
            shape = broadcast(&shape, index.dims()).or_else(|_| {
                let shapes: Vec<&[usize]> = indices.iter().flatten().map(Tensor::dims).collect();
                reject!(
                    Index,
                    "shape mismatch: indexing tensors could not be broadcast together with shapes {shapes:?}"
                )
            })?;
        }
        let adjacent = used.windows(2).all(|pair| pair[1] == pair[0] + 1);
        let before = if adjacent {
            used.first().copied().unwrap_or(0)
        } else {
            0
        };
        let rest = (0..tensor.rank()).filter(|at| indices.get(*at).is_none_or(Option::is_none));
        let rest: Vec<usize> = rest.collect();
        let mut dims = shape.clone();
        dims.extend(rest.iter().map(|&at| tensor.dims()[at]));
        storage_bytes(count(&dims).ok(), &dims, tensor.dtype())?;
        let offsets = kernels::index_offsets(tensor, &indices, &shape)?;
        let rest_layout = tensor.layout().permuted(&rest)?;
        let places = kernels::combine(&offsets, &rest_layout)?;
        Ok(Self {
            places,
            dims,
            index_rank: shape.len(),
            before,
        })
    }

    /// Returns the order of the result's dimensions, in terms of those of the picked elements.
    fn order(&self) -> Vec<usize> {
        let rest_start = self.index_rank;
        let mut order: Vec<usize> = (rest_start..rest_start + self.before).collect();
        order.extend(0..self.index_rank);
        order.extend(rest_start + self.before..self.dims.len());
        order
    }

    fn result_dims(&self) -> Dims {
        self.order().iter().map(|&at| self.dims[at]).collect()
    }

    /// Moves the dimensions of the indices to their place in the result.
    fn arrange(&self, taken: &Tensor) -> Result<Tensor> {
        if self.before == 0 {
            return Ok(taken.clone());
        }
        kernels::pack(&taken.with_layout(taken.layout().permuted(&self.order())?)?)
    }

    /// Moves the dimensions of the indices to the front.
    fn unarrange(&self, values: &Tensor) -> Result<Tensor> {
        let order = self.order();
        let mut back = vec![0; order.len()];
        for (index, &at) in order.iter().enumerate() {
            back[at] = index;
        }
        values.with_layout(values.layout().permuted(&back)?)
    }
}

/// Converts masks into index tensors, and checks dtypes.
fn spread_masks(tensor: &Tensor, indices: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
    let mut spread: Vec<Option<Tensor>> = Vec::new();
    for index in indices {
        let Some(index) = index else {
            spread.push(None);
            continue;
        };
        if index.dtype() == DType::Bool {
            let at = spread.len();
            let covered = tensor.dims().get(at..at + index.rank());
            if covered != Some(index.dims()) {
                let dimension = at
                    + (index.dims().iter())
                        .zip(tensor.dims().iter().skip(at))
                        .position(|(mask, own)| mask != own)
                        .unwrap_or(0);
                return reject!(
                    Index,
                    "The shape of the mask {:?} at index {} does not match the shape of the indexed tensor {:?} at \
                     index {dimension}",
                    index.dims(),
                    dimension - at,
                    tensor.dims()
                );
            }
            for column in kernels::nonzero(index)? {
                let count = column.len() as i64;
                spread.push(Some(Tensor::from_slice(&column, &[count])?));
            }
            continue;
        }
        if index.dtype().is_float() {
            return reject!(
                Index,
                "tensors used as indices must be long, int, byte or bool tensors"
            );
        }
        spread.push(Some(index.untracked()));
    }
    if spread.len() > tensor.rank() {
        return reject!(
            Index,
            "too many indices for tensor of dimension {}",
            tensor.rank()
        );
    }
    Ok(spread)
}
