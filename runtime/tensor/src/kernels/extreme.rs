//! Finds the positions of the largest and the smallest elements.

use super::with_slice;
use crate::element::by_dtype;
use crate::ops::End;
use crate::storage::reserve;
use crate::{Element, Result, Tensor};

/// Returns the position of the extreme element along the middle dimension, for each outer and inner
/// position.
///
/// The tensor is contiguous and has `outer * middle * inner` elements. NaN is more extreme than any
/// number.
pub(crate) fn extreme_places(tensor: &Tensor, dims: [usize; 3], end: End) -> Result<Vec<usize>> {
    by_dtype!(tensor.dtype(), T => with_slice(tensor, |own: &[T]| places(own, dims, end)))
}

#[expect(clippy::eq_op, reason = "only NaN differs from itself")]
fn places<T: Element>(
    own: &[T],
    [outer, middle, inner]: [usize; 3],
    end: End,
) -> Result<Vec<usize>> {
    let beats = |x: T, best: T| {
        best == best
            && (x != x
                || match end {
                    End::Highest => x > best,
                    End::Lowest => x < best,
                })
    };
    let mut found = reserve(outer * inner)?;
    for block in 0..outer {
        for lane in 0..inner {
            let at = |place: usize| own[(block * middle + place) * inner + lane];
            let best = (1..middle).fold(0, |best, place| {
                if beats(at(place), at(best)) {
                    place
                } else {
                    best
                }
            });
            found.push(best);
        }
    }
    Ok(found)
}
