//! Sizes, strides and offset: where the elements of a tensor lie in its storage.
//!
//! View operators compute a new layout over the same storage, and kernels turn layouts into loops
//! (`kernels::walk`).

use smallvec::SmallVec;

use crate::shape::{Dims, Strides, count};
use crate::{DType, Error, Result};

/// The sizes, strides and storage offset of a tensor, counted in elements.
///
/// A layout never refers to a storage by itself. A [`Tensor`](crate::Tensor) pairs the two, so that
/// views differ in their layout only.
#[derive(Debug)]
pub(crate) struct Layout {
    dims: Dims,
    strides: Strides,
    offset: usize,
    count: usize,
    contiguous: bool,
}

impl Clone for Layout {
    fn clone(&self) -> Self {
        // `from_slice` copies all words at once; the derived clone goes one by one.
        Self {
            dims: SmallVec::from_slice(&self.dims),
            strides: SmallVec::from_slice(&self.strides),
            ..*self
        }
    }
}

impl Layout {
    /// Creates a row-major layout: the last dimension is innermost.
    pub(crate) fn contiguous(dims: Dims) -> Result<Self> {
        let count = count(&dims)?;
        let mut strides = Strides::from_elem(1, dims.len());
        let mut stride = 1_isize;
        for dimension in (0..dims.len()).rev() {
            strides[dimension] = stride;
            stride = isize::try_from(dims[dimension].max(1))
                .ok()
                .and_then(|dim| stride.checked_mul(dim))
                .ok_or(Error::StrideOverflow)?;
        }
        Ok(Self {
            dims,
            strides,
            offset: 0,
            count,
            contiguous: true,
        })
    }

    /// Creates a dense layout in which the first dimension of `order` is innermost.
    pub(crate) fn ordered(dims: &[usize], order: &[usize]) -> Result<Self> {
        let mut strides = Strides::from_elem(1, dims.len());
        let mut stride = 1_isize;
        for &dimension in order {
            strides[dimension] = stride;
            stride = isize::try_from(dims[dimension].max(1))
                .ok()
                .and_then(|dim| stride.checked_mul(dim))
                .ok_or(Error::StrideOverflow)?;
        }
        Self::strided(Dims::from_slice(dims), strides, 0)
    }

    /// Creates a layout with the given sizes, strides and offset.
    pub(crate) fn strided(dims: Dims, strides: Strides, offset: usize) -> Result<Self> {
        let count = count(&dims)?;
        let contiguous = count == 0 || is_contiguous(&dims, &strides);
        Ok(Self {
            dims,
            strides,
            offset,
            count,
            contiguous,
        })
    }

    /// Returns the same sizes and strides with offset zero.
    #[inline]
    pub(crate) fn at_start(&self) -> Self {
        Self {
            dims: SmallVec::from_slice(&self.dims),
            strides: SmallVec::from_slice(&self.strides),
            offset: 0,
            ..*self
        }
    }

    #[inline]
    pub(crate) fn dims(&self) -> &[usize] {
        &self.dims
    }

    #[inline]
    pub(crate) fn strides(&self) -> &[isize] {
        &self.strides
    }

    #[inline]
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    #[inline]
    pub(crate) fn rank(&self) -> usize {
        self.dims.len()
    }

    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Returns whether the elements are contiguous in row-major order.
    #[inline]
    pub(crate) fn is_contiguous(&self) -> bool {
        self.contiguous
    }

    /// Returns whether the elements fill one contiguous range, each position once, in any order.
    pub(crate) fn is_dense(&self) -> bool {
        if self.contiguous {
            return true;
        }
        let mut order: SmallVec<[usize; 6]> = (0..self.rank())
            .filter(|&dimension| self.dims[dimension] != 1)
            .collect();
        order.sort_by_key(|&dimension| self.strides[dimension]);
        let mut expected = 1;
        order.iter().all(|&dimension| {
            let fits = self.strides[dimension] == expected;
            expected *= self.dims[dimension] as isize;
            fits
        })
    }

    /// Returns whether several elements share a position because a dimension is expanded.
    pub(crate) fn repeats(&self) -> bool {
        let mut dims = self.dims.iter().zip(&self.strides);
        // A layout without elements cannot repeat any.
        self.count > 0 && dims.any(|(&dim, &stride)| stride == 0 && dim > 1)
    }

    /// Returns the position after the last element, or zero if there are no elements.
    ///
    /// The result is `None` if the position cannot be represented.
    pub(crate) fn end(&self) -> Option<usize> {
        if self.count == 0 {
            return Some(0);
        }
        let mut last = self.offset;
        for (&dim, &stride) in self.dims.iter().zip(&self.strides) {
            last = (dim - 1)
                .checked_mul(stride as usize)
                .and_then(|reach| last.checked_add(reach))?;
        }
        last.checked_add(1)
    }

    /// Returns the same sizes and strides with the offset counted from `origin`, which must not lie
    /// after the first element.
    pub(crate) fn moved(&self, origin: usize) -> Result<Self> {
        let offset = self.offset.saturating_sub(origin);
        Self::strided(self.dims.clone(), self.strides.clone(), offset)
    }

    /// Reorders the dimensions.
    pub(crate) fn permuted(&self, order: &[usize]) -> Result<Self> {
        let dims = order.iter().map(|&index| self.dims[index]).collect();
        let strides = order.iter().map(|&index| self.strides[index]).collect();
        Self::strided(dims, strides, self.offset)
    }

    /// Selects one index of a dimension and removes the dimension.
    pub(crate) fn selected(&self, at: usize, index: usize) -> Result<Self> {
        let (mut dims, mut strides) = (self.dims.clone(), self.strides.clone());
        dims.remove(at);
        let stride = strides.remove(at) as usize;
        Self::strided(dims, strides, self.offset + index * stride)
    }

    /// Keeps every `step`th index of a dimension, from `start` up to but excluding `end`.
    pub(crate) fn sliced(&self, at: usize, start: usize, end: usize, step: usize) -> Result<Self> {
        let (mut dims, mut strides) = (self.dims.clone(), self.strides.clone());
        let offset = self.offset + start * strides[at] as usize;
        dims[at] = end.saturating_sub(start).div_ceil(step);
        strides[at] = strides[at].saturating_mul(step as isize);
        Self::strided(dims, strides, offset)
    }

    /// Swaps two dimensions.
    pub(crate) fn transposed(&self, first: usize, second: usize) -> Result<Self> {
        let (mut dims, mut strides) = (self.dims.clone(), self.strides.clone());
        dims.swap(first, second);
        strides.swap(first, second);
        Self::strided(dims, strides, self.offset)
    }

    /// Expands dimensions of size one and adds leading ones, without copying. A size of -1 keeps
    /// the existing one.
    pub(crate) fn expanded(&self, target: &[i64], dtype: DType) -> Result<Self> {
        let Some(leading) = target.len().checked_sub(self.rank()) else {
            return Err(Error::ExpandTooFew {
                dtype,
                target: target.to_vec(),
                sizes: self.dims.to_vec(),
            });
        };
        let mut dims = Dims::from_elem(1, target.len());
        let mut strides = Strides::from_elem(0, target.len());
        // The stride of a new dimension of size one: the extent of the dimension after it.
        let mut reach = 1;
        for (dimension, &wanted) in target.iter().enumerate().rev() {
            let own = dimension.checked_sub(leading);
            let existing = own.map_or(1, |own| self.dims[own]);
            let stride = own.map_or(reach, |own| self.strides[own]);
            if own.is_none() && wanted < 0 {
                return Err(Error::ExpandLeading { wanted, dimension });
            }
            if wanted == -1 || usize::try_from(wanted) == Ok(existing) {
                (dims[dimension], strides[dimension]) = (existing, stride);
            } else if existing == 1 && wanted >= 0 {
                (dims[dimension], strides[dimension]) = (wanted as usize, 0);
            } else {
                return Err(Error::Expand {
                    wanted,
                    existing,
                    dimension,
                    target: target.to_vec(),
                    sizes: self.dims.to_vec(),
                });
            }
            reach = strides[dimension].saturating_mul(dims[dimension] as isize);
        }
        Self::strided(dims, strides, self.offset)
    }

    /// Returns the strides under which the same elements have the sizes `dims`, or `None` if no
    /// such view exists.
    ///
    /// Adjacent dimensions that form one contiguous run can be merged and split. A new dimension
    /// that would span two runs has no stride.
    pub(crate) fn view_strides(&self, dims: &[usize]) -> Option<Strides> {
        if self.contiguous {
            return Layout::contiguous(Dims::from_slice(dims))
                .ok()
                .map(|layout| layout.strides);
        }
        let mut strides = Strides::from_elem(1, dims.len());
        let mut new = dims.len();
        let mut own = self.rank();
        while own > 0 {
            // A run: dimensions from `own` down to `first`, each contiguous with the next.
            let innermost = self.strides[own - 1];
            let mut piece = self.dims[own - 1];
            let mut first = own - 1;
            while first > 0
                && (self.dims[first - 1] == 1
                    || self.strides[first - 1] == innermost * piece as isize)
            {
                first -= 1;
                piece *= self.dims[first];
            }
            // Takes as many new dimensions as fill that run.
            let mut filled = 1;
            while new > 0 && (filled < piece || dims[new - 1] == 1) {
                new -= 1;
                strides[new] = innermost * filled as isize;
                filled *= dims[new];
            }
            if filled != piece {
                return None;
            }
            own = first;
        }
        (new == 0).then_some(strides)
    }

    /// Inserts a dimension of size one before dimension `at`.
    pub(crate) fn unsqueezed(&self, at: usize) -> Result<Self> {
        let stride = if at < self.rank() {
            self.dims[at] as isize * self.strides[at]
        } else {
            1
        };
        let (mut dims, mut strides) = (self.dims.clone(), self.strides.clone());
        dims.insert(at, 1);
        strides.insert(at, stride);
        Self::strided(dims, strides, self.offset)
    }

    /// Removes a dimension if it has size one.
    pub(crate) fn squeezed(&self, at: usize) -> Result<Self> {
        let (mut dims, mut strides) = (self.dims.clone(), self.strides.clone());
        if dims.get(at) == Some(&1) {
            dims.remove(at);
            strides.remove(at);
        }
        Self::strided(dims, strides, self.offset)
    }
}

fn is_contiguous(dims: &[usize], strides: &[isize]) -> bool {
    let mut expected = 1;
    for (&dim, &stride) in dims.iter().zip(strides).rev() {
        if dim != 1 {
            if stride != expected {
                return false;
            }
            expected *= dim as isize;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(dims: &[usize], strides: &[isize]) -> Layout {
        Layout::strided(Dims::from_slice(dims), Strides::from_slice(strides), 0).unwrap()
    }

    #[test]
    fn a_view_merges_and_splits_only_within_pieces() {
        let transposed = layout(&[4, 4], &[1, 4]);
        assert_eq!(transposed.view_strides(&[16]), None);
        assert_eq!(
            transposed.view_strides(&[4, 2, 2]).unwrap().as_slice(),
            [1, 8, 4]
        );
        let repeated = layout(&[3, 4], &[0, 1]);
        assert_eq!(
            repeated.view_strides(&[3, 2, 2]).unwrap().as_slice(),
            [0, 2, 1]
        );
        assert_eq!(repeated.view_strides(&[12]), None);
        let batch = layout(&[2, 4, 4], &[16, 1, 4]);
        assert_eq!(
            batch.view_strides(&[1, 2, 4, 1, 4]).unwrap().as_slice(),
            [32, 16, 1, 16, 4]
        );
        assert_eq!(
            batch.view_strides(&[2, 4, 4, 1]).unwrap().as_slice(),
            [16, 1, 4, 4]
        );
        assert_eq!(
            batch.view_strides(&[2, 2, 1, 2, 4]).unwrap().as_slice(),
            [16, 2, 2, 1, 4]
        );
    }

    #[test]
    fn strides_of_empty_dimensions_count_them_as_one() {
        let empty = Layout::contiguous(Dims::from_slice(&[2, 0, 3])).unwrap();
        assert_eq!(empty.strides(), [3, 3, 1]);
        assert_eq!(empty.count(), 0);
    }

    #[test]
    fn sizes_beyond_counting_are_errors() {
        let huge = Dims::from_slice(&[0, 1 << 62, 4]);
        assert_eq!(Layout::contiguous(huge).err(), Some(Error::StrideOverflow));
        let many = layout(&[2, 2], &[2, 1]).expanded(&[1 << 40, 1 << 30, 2, 2], DType::F32);
        assert_eq!(many.err(), Some(Error::CountOverflow));
    }

    #[test]
    fn dense_means_every_place_once() {
        assert!(layout(&[3, 2], &[1, 3]).is_dense());
        assert!(!layout(&[3, 2], &[0, 1]).is_dense());
        assert!(!layout(&[2, 2], &[4, 1]).is_dense());
    }
}
