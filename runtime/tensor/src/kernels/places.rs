//! Reads and writes elements by lists of storage positions.

use super::Walk;
use crate::element::by_dtype;
use crate::error::reject;
use crate::layout::Layout;
use crate::ops::Triangle;
use crate::shape::Dims;
use crate::storage::{self, reserve, zeroed};
use crate::{Element, Logical, Result, Tensor};

/// How to write an element: the mode of `index_put_` and `scatter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// Replace the existing element.
    Replace,
    /// Add to the existing element.
    Add,
}

/// Reads the elements at positions of the tensor's storage.
pub(crate) fn take(tensor: &Tensor, places: &[usize], dims: &[usize]) -> Result<Tensor> {
    let layout = Layout::contiguous(Dims::from_slice(dims))?;
    by_dtype!(tensor.dtype(), T => storage::read_one(tensor.storage(), |own: &[T]| {
        let mut elements = reserve(places.len())?;
        elements.extend(places.iter().map(|&place| own[place]));
        Ok(Tensor::from_elements(elements, layout))
    }))
}

/// Writes the elements of a contiguous tensor, of the same dtype but another storage, to positions
/// of the tensor's storage.
pub(crate) fn put(tensor: &Tensor, places: &[usize], source: &Tensor, put: Put) {
    by_dtype!(tensor.dtype(), T => storage::write(
        tensor.storage(),
        [source.storage()],
        |own: &mut [T], [values]: [&[T]; 1]| {
            let values = &values[source.offset().min(values.len())..];
            for (&place, &value) in places.iter().zip(values) {
                own[place] = match put {
                    Put::Replace => value,
                    Put::Add => own[place].plus(value),
                };
            }
        },
    ));
}

/// Returns the storage position of each element that `index` picks along a dimension.
pub(crate) fn along(tensor: &Tensor, at: usize, index: &Tensor) -> Result<Vec<usize>> {
    let (dims, strides) = (tensor.dims(), tensor.strides());
    for (dimension, (&own, &other)) in dims.iter().zip(index.dims()).enumerate() {
        if dimension != at && other > own {
            return reject!(
                Runtime,
                "Size does not match at dimension {dimension} expected index {:?} to be no larger than self {:?} \
                 apart from dimension {at}",
                index.dims(),
                dims
            );
        }
    }
    let chosen = index.to_vec::<i64>()?;
    let mut places = reserve(chosen.len())?;
    let mut position = vec![0_usize; index.rank()];
    for &choice in &chosen {
        let size = dims.get(at).copied().unwrap_or(1);
        let Some(choice) = usize::try_from(choice).ok().filter(|&choice| choice < size) else {
            return reject!(
                Runtime,
                "index {choice} is out of bounds for dimension {at} with size {size}"
            );
        };
        let mut place = tensor.offset();
        for (dimension, &at_position) in position.iter().enumerate() {
            let index = if dimension == at { choice } else { at_position };
            place += index * strides.get(dimension).copied().unwrap_or(0) as usize;
        }
        places.push(place);
        for dimension in (0..position.len()).rev() {
            position[dimension] += 1;
            if position[dimension] < index.dims()[dimension] {
                break;
            }
            position[dimension] = 0;
        }
    }
    Ok(places)
}

/// Returns the storage offset of the indexed dimensions for each element of the indices' common
/// shape.
pub(crate) fn index_offsets(
    tensor: &Tensor,
    indices: &[Option<Tensor>],
    shape: &[usize],
) -> Result<Vec<usize>> {
    let count = crate::shape::count(shape)?;
    let mut offsets = zeroed::<usize>(count)?;
    for (at, index) in indices.iter().enumerate() {
        let Some(index) = index else {
            continue;
        };
        let (size, stride) = (tensor.dims()[at] as i64, tensor.strides()[at] as usize);
        let wide = Layout::contiguous(Dims::from_slice(shape))?;
        let chosen = index.to_vec::<i64>()?;
        let own = Layout::contiguous(Dims::from_slice(index.dims()))?;
        let mut bad = None;
        Walk::over(shape, [&wide, &own]).each(|[place, from]| {
            let choice = chosen[from];
            if choice < -size || choice >= size {
                bad = Some(choice);
                return;
            }
            offsets[place] += choice.rem_euclid(size) as usize * stride;
        });
        if let Some(choice) = bad {
            return reject!(
                Index,
                "index {choice} is out of bounds for dimension {at} with size {size}"
            );
        }
    }
    Ok(offsets)
}

/// Returns the storage positions of all picked elements: each offset, combined with all positions
/// of the dimensions that are not indexed.
pub(crate) fn combine(offsets: &[usize], rest: &Layout) -> Result<Vec<usize>> {
    let mut inner = reserve(rest.count())?;
    Walk::over(rest.dims(), [rest]).each(|[place]| inner.push(place));
    let mut places = reserve(offsets.len().saturating_mul(inner.len()))?;
    for &offset in offsets {
        places.extend(inner.iter().map(|&place| offset + place));
    }
    Ok(places)
}

/// Returns the indices of the nonzero elements, as one list per dimension.
pub(crate) fn nonzero(tensor: &Tensor) -> Result<Vec<Vec<i64>>> {
    let truths = tensor.to_vec::<Logical>()?;
    let count = truths.iter().filter(|truth| truth.is_true()).count();
    let columns = (0..tensor.rank()).map(|_| reserve(count));
    let mut columns: Vec<Vec<i64>> = columns.collect::<Result<_>>()?;
    let marked = truths.into_iter().enumerate();
    for (mut place, _) in marked.filter(|(_, truth)| truth.is_true()) {
        for dimension in (0..tensor.rank()).rev() {
            let size = tensor.dims()[dimension];
            columns[dimension].push((place % size) as i64);
            place /= size;
        }
    }
    Ok(columns)
}

/// Zeroes the elements outside of a triangle of each matrix of a contiguous tensor.
pub(crate) fn clear_triangle(tensor: &Tensor, part: Triangle, diagonal: i64) {
    let rank = tensor.rank();
    let (rows, columns) = (tensor.dims()[rank - 2], tensor.dims()[rank - 1]);
    by_dtype!(tensor.dtype(), T => storage::write(
        tensor.storage(),
        [],
        |own: &mut [T], []: [&[T]; 0]| {
            for (place, element) in own.iter_mut().enumerate() {
                let row = (place / columns % rows) as i64;
                let distance = (place % columns) as i64 - row;
                let outside = match part {
                    Triangle::Lower => distance > diagonal,
                    Triangle::Upper => distance < diagonal,
                };
                if outside {
                    *element = T::default();
                }
            }
        },
    ));
}
