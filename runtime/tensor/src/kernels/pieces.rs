//! Splits the runs of a walk into contiguous pieces, so that an operator needs only one loop, over
//! slices.
//!
//! Strided elements are gathered first and, if written, scattered afterwards; a repeated element is
//! expanded once.

use std::ops::Range;

use smallvec::SmallVec;

use crate::Element;

/// The number of elements gathered at a time, small enough for the first-level cache.
const PIECE: usize = 1 << 10;

/// Returns the pieces of a run whose operands have these strides.
pub(super) fn pieces(
    strides: &[usize],
    count: usize,
) -> impl Iterator<Item = Range<usize>> + use<> {
    let lies_together = strides.iter().all(|&stride| stride == 1);
    cut(count, if lies_together { count } else { PIECE })
}

/// Returns the pieces of a run whose first operand is written; a repeated one is processed element
/// by element.
pub(super) fn written_pieces(
    strides: &[usize],
    count: usize,
) -> impl Iterator<Item = Range<usize>> + use<> {
    let lies_together = strides.iter().all(|&stride| stride == 1);
    let size = match strides.first() {
        Some(0) => 1,
        _ if lies_together => count,
        _ => PIECE,
    };
    cut(count, size)
}

fn cut(count: usize, size: usize) -> impl Iterator<Item = Range<usize>> {
    (0..count)
        .step_by(size.max(1))
        .map(move |start| start..count.min(start + size))
}

/// The elements of one operand, piece by piece.
pub(super) struct Pieces<T> {
    /// Stored inline if few, which matters for small operators.
    gathered: SmallVec<[T; 32]>,
    /// The position of the element that fills `gathered`, if it holds a repeated one.
    repeated: Option<usize>,
}

impl<T: Element> Pieces<T> {
    /// Creates an empty buffer.
    pub(super) fn new() -> Self {
        Self {
            gathered: SmallVec::new(),
            repeated: None,
        }
    }

    /// Returns the elements of a piece of the run that begins at `start`.
    #[inline]
    pub(super) fn read<'a>(
        &'a mut self,
        own: &'a [T],
        (start, stride): (usize, usize),
        piece: Range<usize>,
    ) -> &'a [T] {
        if stride == 1 {
            return &own[start + piece.start..start + piece.end];
        }
        self.gather(own, (start, stride), piece)
    }

    /// Calls `change` with the elements of a piece of the run that begins at `start`, and stores
    /// the result.
    #[inline]
    pub(super) fn rewrite(
        &mut self,
        own: &mut [T],
        (start, stride): (usize, usize),
        piece: Range<usize>,
        change: impl FnOnce(&mut [T]),
    ) {
        if stride == 1 {
            return change(&mut own[start + piece.start..start + piece.end]);
        }
        self.gather(own, (start, stride), piece.clone());
        self.repeated = None;
        change(&mut self.gathered);
        for (index, &element) in piece.zip(&self.gathered) {
            own[start + index * stride] = element;
        }
    }

    #[inline(never)]
    fn gather(&mut self, own: &[T], (start, stride): (usize, usize), piece: Range<usize>) -> &[T] {
        let count = piece.len();
        if stride == 0 {
            if self.repeated != Some(start) || self.gathered.len() < count {
                self.gathered.clear();
                self.gathered.resize(count, own[start]);
                self.repeated = Some(start);
            }
            return &self.gathered[..count];
        }
        self.repeated = None;
        self.gathered.clear();
        let apart = own[start + piece.start * stride..].iter().step_by(stride);
        self.gathered.extend(apart.take(count).copied());
        &self.gathered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_together_is_read_in_one_piece() {
        let own: Vec<i64> = (0..5000).collect();
        let mut reader = Pieces::new();
        let mut cuts = pieces(&[1, 1], 4000);
        assert_eq!((cuts.next(), cuts.next()), (Some(0..4000), None));
        assert_eq!(reader.read(&own, (10, 1), 0..4000), &own[10..4010]);
        assert!(reader.gathered.is_empty());
    }

    #[test]
    fn what_lies_apart_is_gathered_and_scattered() {
        let mut own: Vec<i64> = (0..7000).collect();
        let mut writer = Pieces::new();
        for piece in written_pieces(&[3], 2000) {
            assert!(piece.len() <= PIECE);
            writer.rewrite(&mut own, (5, 3), piece, |elements| {
                for element in elements {
                    *element = -*element;
                }
            });
        }
        let expected = (0_usize..7000).map(|place| {
            let is_changed = place >= 5 && (place - 5) % 3 == 0 && (place - 5) / 3 < 2000;
            if is_changed {
                -(place as i64)
            } else {
                place as i64
            }
        });
        assert!(own.into_iter().eq(expected));
    }

    #[test]
    fn an_element_is_repeated_until_the_next_one() {
        let own = [7_i64, 8, 9];
        let mut reader = Pieces::new();
        assert_eq!(reader.read(&own, (1, 0), 0..2), [8, 8]);
        assert_eq!(reader.read(&own, (1, 0), 2..5), [8, 8, 8]);
        assert_eq!(reader.read(&own, (2, 0), 0..1), [9]);
        assert_eq!(reader.read(&own, (0, 2), 0..2), [7, 9]);
        assert_eq!(reader.read(&own, (2, 0), 0..2), [9, 9]);
    }

    #[test]
    fn an_element_that_is_written_repeatedly_is_written_in_turn() {
        let mut own = [1_i64];
        let mut writer = Pieces::new();
        for piece in written_pieces(&[0, 1], 10) {
            writer.rewrite(&mut own, (0, 0), piece, |elements| {
                for element in elements {
                    *element *= 2;
                }
            });
        }
        assert_eq!(own, [1024]);
    }
}
