//! Joining and splitting along a dimension: `cat`, `stack`, `split`, `chunk`, `unbind`.

use smallvec::SmallVec;

use super::create::result_space;
use crate::autocast::Casting;
use crate::autograd::{Formula, differentiable_list, node_site};
use crate::dispatch::{Site, open, returns};
use crate::error::reject;
use crate::shape::{Dims, broadcast, dimension_index, signed};
use crate::storage::reserve;
use crate::{DType, Error, Result, Tensor};

static CAT: Site = Site::operator("aten::cat");
static CHUNK: Site = Site::operator("aten::chunk");
static SPLIT: Site = Site::operator("aten::split");
static BROADCAST_TENSORS: Site = Site::operator("aten::broadcast_tensors");
static STACK: Site = Site::operator("aten::stack");
static UNBIND: Site = Site::operator("aten::unbind");

node_site! {
    CAT_NODE = "CatBackward0";
    SPLIT_NODE = "SplitBackward0";
    SPLIT_SIZES_NODE = "SplitWithSizesBackward0";
    STACK_NODE = "StackBackward0";
    UNBIND_NODE = "UnbindBackward0";
}

impl Tensor {
    /// Concatenates tensors along an existing dimension.
    ///
    /// # Errors
    /// Returns an error if the list is empty, or sizes differ in another dimension.
    pub fn cat(tensors: &[Self], dimension: i64) -> Result<Self> {
        let _scope = open(&CAT, (tensors, dimension));
        if let Some(casting) = Casting::begin() {
            return Self::cat(&casting.promote(tensors)?, dimension);
        }
        let Some(first) = tensors.first() else {
            return reject!(Value, "torch.cat(): expected a non-empty list of Tensors");
        };
        if tensors.iter().any(|tensor| tensor.rank() == 0) {
            let place = tensors.iter().position(|tensor| tensor.rank() == 0);
            return reject!(
                Runtime,
                "zero-dimensional tensor (at position {}) cannot be concatenated",
                place.unwrap_or(0)
            );
        }
        let at = dimension_index(dimension, first.rank())?;
        check_joined(tensors, at)?;
        let operands: SmallVec<[&Self; 4]> = tensors.iter().collect();
        let sizes: Vec<i64> = tensors
            .iter()
            .map(|tensor| tensor.dims()[at] as i64)
            .collect();
        let results = differentiable_list(
            &CAT_NODE,
            &operands,
            || Ok(vec![concatenate(tensors, at)?]),
            |_| {
                Formula::plain(move |gradients| {
                    let gradient = gradients.only();
                    let mut start = 0;
                    let mut parts = crate::autograd::Outputs::new();
                    for (index, &size) in sizes.iter().enumerate() {
                        parts.push(
                            gradients.when(index, || gradient.narrow(at as i64, start, size))?,
                        );
                        start += size;
                    }
                    Ok(parts)
                })
            },
        )?;
        Ok(one(results))
    }

    /// Expands tensors to their common shape.
    ///
    /// # Errors
    /// Returns an error if the shapes do not broadcast.
    pub fn broadcast_tensors(tensors: &[Self]) -> Result<Vec<Self>> {
        let _scope = open(&BROADCAST_TENSORS, (tensors,));
        let mut dims = Dims::new();
        for tensor in tensors {
            dims = broadcast(&dims, tensor.dims())?;
        }
        let spread: Vec<Self> = tensors
            .iter()
            .map(|tensor| tensor.expand_to(&dims))
            .collect::<Result<_>>()?;
        spread.iter().for_each(returns);
        Ok(spread)
    }

    /// Concatenates tensors of equal shape along a new dimension.
    ///
    /// # Errors
    /// Returns an error if the list is empty, or the shapes differ.
    pub fn stack(tensors: &[Self], dimension: i64) -> Result<Self> {
        let _scope = open(&STACK, (tensors, dimension));
        if let Some(casting) = Casting::begin() {
            return Self::stack(&casting.promote(tensors)?, dimension);
        }
        let Some(first) = tensors.first() else {
            return reject!(Runtime, "stack expects a non-empty TensorList");
        };
        for (index, tensor) in tensors.iter().enumerate() {
            if tensor.dims() != first.dims() {
                return reject!(
                    Runtime,
                    "stack expects each tensor to be equal size, but got {:?} at entry 0 and {:?} at entry {index}",
                    first.dims(),
                    tensor.dims()
                );
            }
        }
        let at = dimension_index(dimension, first.rank() + 1)?;
        let operands: SmallVec<[&Self; 4]> = tensors.iter().collect();
        let count = tensors.len();
        let results = differentiable_list(
            &STACK_NODE,
            &operands,
            || Ok(vec![stacked(tensors, at)?]),
            |_| {
                Formula::plain(move |gradients| {
                    let gradient = gradients.only();
                    (0..count)
                        .map(|index| {
                            gradients.when(index, || gradient.select(at as i64, index as i64))
                        })
                        .collect()
                })
            },
        )?;
        Ok(one(results))
    }

    /// Splits into pieces of a given size along a dimension; the last one may be smaller.
    ///
    /// # Errors
    /// Returns an error if the size is negative or the dimension does not exist.
    pub fn split(&self, size: i64, dimension: i64) -> Result<Vec<Self>> {
        let _scope = open(&SPLIT, (self, size, dimension));
        let at = dimension_index(dimension, self.rank())?;
        if self.rank() == 0 {
            return reject!(Runtime, "split expects at least a 1-dimensional tensor");
        }
        let length = self.dims()[at] as i64;
        if size == 0 && length != 0 {
            return reject!(
                Runtime,
                "split_size can only be 0 if dimension size is 0, but got dimension size of {length}"
            );
        }
        if size < 0 {
            return reject!(
                Runtime,
                "split expects split_size be non-negative, but got split_size={size}"
            );
        }
        let pieces = if size == 0 {
            1
        } else {
            (length / size + i64::from(length % size != 0)).max(1)
        };
        let mut sizes = reserve(pieces as usize)?;
        sizes.extend((0..pieces).map(|index| size.min(length - index * size)));
        self.cut_into(&SPLIT_NODE, &sizes, at)
    }

    /// Splits into pieces of the given sizes along a dimension.
    ///
    /// # Errors
    /// Returns an error if the sizes do not add up to that of the dimension.
    pub fn split_sizes(&self, sizes: &[i64], dimension: i64) -> Result<Vec<Self>> {
        let _scope = open(&SPLIT, (self, sizes, dimension));
        let at = dimension_index(dimension, self.rank())?;
        let length = self.dims().get(at).copied().unwrap_or(1) as i64;
        if self.rank() == 0
            || sizes.iter().any(|&size| size < 0)
            || sizes
                .iter()
                .try_fold(0_i64, |sum, &size| sum.checked_add(size))
                != Some(length)
        {
            return reject!(
                Runtime,
                "split_with_sizes expects split_sizes to sum exactly to {length} (input tensor's size at dimension \
                 {at}), but got split_sizes={sizes:?}"
            );
        }
        self.cut_into(&SPLIT_SIZES_NODE, sizes, at)
    }

    /// Splits into a number of pieces along a dimension, equal in size except for the last.
    ///
    /// # Errors
    /// Returns an error if `chunks` is not positive or the dimension does not exist.
    pub fn chunk(&self, chunks: i64, dimension: i64) -> Result<Vec<Self>> {
        let _scope = open(&CHUNK, (self, chunks, dimension));
        if chunks <= 0 {
            return reject!(
                Runtime,
                "chunk expects `chunks` to be greater than 0, got: {chunks}"
            );
        }
        if self.rank() == 0 {
            return reject!(Runtime, "chunk expects at least a 1-dimensional tensor");
        }
        let at = dimension_index(dimension, self.rank())?;
        let length = self.dims()[at] as i64;
        self.split(
            length.div_euclid(chunks) + i64::from(length % chunks != 0),
            at as i64,
        )
    }

    /// Returns the slices of a dimension as separate tensors.
    ///
    /// # Errors
    /// Returns an error if the dimension does not exist.
    pub fn unbind(&self, dimension: i64) -> Result<Vec<Self>> {
        let _scope = open(&UNBIND, (self, dimension));
        let at = dimension_index(dimension, self.rank())?;
        if self.rank() == 0 {
            return reject!(
                Index,
                "Dimension specified as {dimension} but tensor has no dimensions"
            );
        }
        let count = self.dims()[at] as i64;
        let shape = piece_shape(self.dims(), at);
        differentiable_list(
            &UNBIND_NODE,
            &[self],
            || {
                let mut places = reserve(count as usize)?;
                for index in 0..count {
                    places.push(self.select(at as i64, index)?);
                }
                Ok(places)
            },
            |_| {
                let dtype = self.dtype();
                Formula::plain(move |gradients| {
                    let parts = filled(gradients.arrived, |_| shape.clone(), dtype)?;
                    Ok(smallvec::smallvec![Some(Self::stack(&parts, at as i64)?)])
                })
            },
        )
    }

    fn cut_into(
        &self,
        node: &'static crate::autograd::NodeSite,
        sizes: &[i64],
        at: usize,
    ) -> Result<Vec<Self>> {
        let dims = Dims::from_slice(self.dims());
        let kept = sizes.to_vec();
        differentiable_list(
            node,
            &[self],
            || {
                let mut start = 0;
                let mut pieces = reserve(sizes.len())?;
                for &size in sizes {
                    pieces.push(self.narrow(at as i64, start, size)?);
                    start += size;
                }
                Ok(pieces)
            },
            |_| {
                let dtype = self.dtype();
                Formula::plain(move |gradients| {
                    let shape = |index: usize| {
                        let mut dims = dims.clone();
                        dims[at] = kept[index] as usize;
                        dims
                    };
                    let parts = filled(gradients.arrived, shape, dtype)?;
                    Ok(smallvec::smallvec![Some(Self::cat(&parts, at as i64)?)])
                })
            },
        )
    }
}

fn check_joined(tensors: &[Tensor], at: usize) -> Result<()> {
    let first = &tensors[0];
    for (index, tensor) in tensors.iter().enumerate() {
        if tensor.rank() != first.rank() {
            return reject!(
                Runtime,
                "Tensors must have same number of dimensions: got {} and {}",
                first.rank(),
                tensor.rank()
            );
        }
        for (dimension, (&own, &other)) in first.dims().iter().zip(tensor.dims()).enumerate() {
            if dimension != at && own != other {
                return reject!(
                    Runtime,
                    "Sizes of tensors must match except in dimension {at}. Expected size {own} but got size {other} \
                     for tensor number {index} in the list."
                );
            }
        }
    }
    Ok(())
}

fn concatenate(tensors: &[Tensor], at: usize) -> Result<Tensor> {
    let first = &tensors[0];
    let dtype = tensors
        .iter()
        .map(Tensor::dtype)
        .fold(first.dtype(), DType::common);
    let mut dims = Dims::from_slice(first.dims());
    let mut sizes = tensors.iter().map(|tensor| tensor.dims()[at]);
    let size = sizes.try_fold(0_usize, usize::checked_add);
    dims[at] = size.ok_or(Error::CountOverflow)?;
    let result = result_space(&dims, dtype)?;
    let alike = tensors
        .iter()
        .all(|tensor| tensor.dims() == first.dims() && tensor.strides() == first.strides());
    let plain = tensors
        .iter()
        .all(|tensor| tensor.is_contiguous() && tensor.dtype() == dtype);
    let mut start = 0;
    for (index, tensor) in tensors.iter().enumerate() {
        let end = start + tensor.dims()[at];
        let place = if !plain && (index == 0 || !alike) {
            result.narrow(at as i64, start as i64, tensor.dims()[at] as i64)?
        } else {
            result.with_layout(result.layout().sliced(at, start, end, 1)?)?
        };
        crate::kernels::copy_into(&place, tensor);
        start = end;
    }
    Ok(result)
}

fn stacked(tensors: &[Tensor], at: usize) -> Result<Tensor> {
    let first = &tensors[0];
    let mut dims = Dims::from_slice(first.dims());
    dims.insert(at, tensors.len());
    if at < first.rank() {
        return Tensor::cat(tensors, at as i64)?.view(&signed(&dims));
    }
    let widened = tensors
        .iter()
        .map(|tensor| tensor.with_layout(tensor.layout().unsqueezed(at)?))
        .collect::<Result<Vec<_>>>()?;
    Tensor::cat(&widened, at as i64)
}

/// Replaces gradients that have not arrived with zeros.
fn filled(
    arrived: &[Option<Tensor>],
    shape: impl Fn(usize) -> Dims,
    dtype: DType,
) -> Result<Vec<Tensor>> {
    arrived
        .iter()
        .enumerate()
        .map(|(index, gradient)| match gradient {
            Some(gradient) => Ok(gradient.clone()),
            None => Tensor::zeros(&signed(&shape(index)), Some(dtype)),
        })
        .collect()
}

fn piece_shape(dims: &[usize], at: usize) -> Dims {
    let mut shape = Dims::from_slice(dims);
    shape.remove(at);
    shape
}

fn one(results: Vec<Tensor>) -> Tensor {
    results
        .into_iter()
        .next()
        .expect("the operator made one result")
}
