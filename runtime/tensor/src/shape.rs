//! Shape arithmetic: validation of requested sizes, broadcasting and inference of `-1`.
//!
//! Callers pass signed sizes, as Python does. This module checks them, and the rest of the crate
//! works with unsigned ones.

use smallvec::SmallVec;

use crate::error::reject;
use crate::{DType, Error, Result};

/// The sizes of a tensor; up to five dimensions need no allocation.
pub(crate) type Dims = SmallVec<[usize; 5]>;

/// The strides of a tensor in elements, never negative.
pub(crate) type Strides = SmallVec<[isize; 5]>;

/// Checks the sizes of a new tensor.
pub(crate) fn checked_sizes(sizes: &[i64]) -> Result<Dims> {
    sizes
        .iter()
        .map(|&size| {
            usize::try_from(size).map_err(|_| Error::NegativeDimension {
                size,
                sizes: sizes.to_vec(),
            })
        })
        .collect()
}

/// Returns the number of elements of a tensor with these sizes.
pub(crate) fn count(dims: &[usize]) -> Result<usize> {
    if dims.contains(&0) {
        return Ok(0);
    }
    dims.iter()
        .try_fold(1_usize, |product, &dim| product.checked_mul(dim))
        .filter(|&product| isize::try_from(product).is_ok())
        .ok_or(Error::CountOverflow)
}

/// Returns the bytes of `count` elements, for a tensor with the sizes `dims`. A `count` of `None`
/// means that it has overflowed.
pub(crate) fn storage_bytes(count: Option<usize>, dims: &[usize], dtype: DType) -> Result<usize> {
    count
        .and_then(|count| count.checked_mul(dtype.bytes()))
        .filter(|&bytes| isize::try_from(bytes).is_ok())
        .ok_or_else(|| Error::StorageOverflow {
            sizes: signed(dims).to_vec(),
        })
}

/// Converts sizes to the signed form that callers use.
pub(crate) fn signed(dims: &[usize]) -> SmallVec<[i64; 6]> {
    dims.iter().map(|&dim| dim as i64).collect()
}

/// Returns the sizes that both shapes broadcast to.
pub(crate) fn broadcast(left: &[usize], right: &[usize]) -> Result<Dims> {
    let rank = left.len().max(right.len());
    let size_at = |dims: &[usize], dimension: usize| {
        (dimension + dims.len())
            .checked_sub(rank)
            .map_or(1, |index| dims[index])
    };
    (0..rank)
        .map(
            |dimension| match (size_at(left, dimension), size_at(right, dimension)) {
                (left, right) if left == right => Ok(left),
                (1, right) => Ok(right),
                (left, 1) => Ok(left),
                (left, right) => Err(Error::Broadcast {
                    left,
                    right,
                    dimension,
                }),
            },
        )
        .collect()
}

/// Returns the index of a dimension; negative numbers count from the end. A zero-dimensional tensor
/// is treated as one-dimensional.
pub(crate) fn dimension_index(dimension: i64, rank: usize) -> Result<usize> {
    let rank = rank.max(1) as i64;
    if dimension < -rank || dimension >= rank {
        return Err(Error::DimensionOutOfRange {
            lowest: -rank,
            highest: rank - 1,
            dimension,
        });
    }
    Ok(dimension.rem_euclid(rank) as usize)
}

/// Marks the listed dimensions; an empty list marks all of them.
pub(crate) fn dimension_mask(dimensions: &[i64], rank: usize) -> Result<SmallVec<[bool; 6]>> {
    const MOST: usize = 64;
    if rank > MOST && !dimensions.is_empty() {
        return reject!(Runtime, "only tensors with up to {MOST} dims are supported");
    }
    let mut mask = SmallVec::from_elem(dimensions.is_empty(), rank.max(1));
    for &dimension in dimensions {
        let index = dimension_index(dimension, rank)?;
        if mask[index] {
            return Err(Error::RepeatedDimension { dimension: index });
        }
        mask[index] = true;
    }
    mask.truncate(rank);
    Ok(mask)
}

/// Returns the sizes of a view of `count` elements, with a size of -1 inferred.
pub(crate) fn infer_view(shape: &[i64], count: usize) -> Result<Dims> {
    let mut open = None;
    let mut product = Some(1_usize);
    for (dimension, &size) in shape.iter().enumerate() {
        if size == -1 {
            if open.replace(dimension).is_some() {
                return Err(Error::TwoInferred);
            }
        } else if let Ok(size) = usize::try_from(size) {
            product = product.and_then(|product| product.checked_mul(size));
        } else {
            return Err(Error::InvalidShapeDimension {
                size,
                dimension,
                shape: shape.to_vec(),
            });
        }
    }
    let invalid = || Error::InvalidShape {
        shape: shape.to_vec(),
        count,
    };
    let mut dims: Dims = shape.iter().map(|&size| size as usize).collect();
    match (open, product) {
        (None, Some(product)) if product == count => {}
        (Some(_), Some(0)) if count == 0 => {
            return Err(Error::AmbiguousShape {
                shape: shape.to_vec(),
            });
        }
        (Some(dimension), Some(product)) if product != 0 && count.is_multiple_of(product) => {
            dims[dimension] = count / product;
        }
        _ => return Err(invalid()),
    }
    Ok(dims)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_broadcast_from_their_ends() {
        assert_eq!(broadcast(&[3, 1], &[4]).unwrap().as_slice(), [3, 4]);
        assert_eq!(broadcast(&[], &[2, 0]).unwrap().as_slice(), [2, 0]);
        assert_eq!(
            broadcast(&[2, 3, 3], &[3, 4]).unwrap_err().to_string(),
            "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 2"
        );
    }

    #[test]
    fn one_size_of_a_view_may_be_left_open() {
        assert_eq!(infer_view(&[-1, 8], 16).unwrap().as_slice(), [2, 8]);
        assert_eq!(infer_view(&[0, 4], 0).unwrap().as_slice(), [0, 4]);
        let text = |shape: &[i64], count| infer_view(shape, count).unwrap_err().to_string();
        assert_eq!(
            text(&[-1, 5], 16),
            "shape '[-1, 5]' is invalid for input of size 16"
        );
        assert_eq!(text(&[-1, -1], 16), "only one dimension can be inferred");
        assert_eq!(
            text(&[-2, 8], 16),
            "invalid shape dimension -2 at index 0 of shape [-2, 8]"
        );
        assert_eq!(
            text(&[1 << 62, 1 << 62], 4),
            "shape '[4611686018427387904, 4611686018427387904]' is invalid for input of size 4"
        );
        assert!(text(&[-1, 0], 0).contains("is ambiguous"));
    }
}
