//! Cyclic shifts along dimensions: `roll`.

use crate::autograd::{Formula, differentiable, node_site};
use crate::dispatch::{Site, open};
use crate::error::reject;
use crate::shape::{dimension_index, signed};
use crate::{Result, Tensor};

static ROLL: Site = Site::operator("aten::roll");

node_site! {
    ROLL_NODE = "RollBackward0";
}

impl Tensor {
    /// Shifts the elements cyclically along the given dimensions or, if there are none, along the
    /// flattened tensor.
    ///
    /// # Errors
    /// Returns an error if the numbers of shifts and dimensions differ, or a dimension does not
    /// exist.
    pub fn roll(&self, shifts: &[i64], dimensions: &[i64]) -> Result<Self> {
        let _scope = open(&ROLL, (self, shifts, dimensions));
        if shifts.is_empty() {
            return reject!(Runtime, "`shifts` required");
        }
        if dimensions.is_empty() && shifts.len() == 1 {
            return self.rolling(shifts, dimensions, || {
                let flat = self.contiguous()?.view(&[-1])?;
                flat.roll(shifts, &[0])?.view(&signed(self.dims()))
            });
        }
        if shifts.len() != dimensions.len() {
            return reject!(
                Runtime,
                "shifts and dimensions must align. shifts: {}, dims:{}",
                shifts.len(),
                dimensions.len()
            );
        }
        for &dimension in dimensions {
            dimension_index(dimension, self.rank())?;
        }
        self.rolling(shifts, dimensions, || {
            if let (&[shift], &[dimension]) = (shifts, dimensions) {
                return self.rolled(shift, dimension);
            }
            let mut pairs = shifts.iter().zip(dimensions);
            pairs.try_fold(self.untracked(), |tensor, (&shift, &dimension)| {
                tensor.roll(&[shift], &[dimension])
            })
        })
    }

    fn rolling(
        &self,
        shifts: &[i64],
        dimensions: &[i64],
        compute: impl FnOnce() -> Result<Self>,
    ) -> Result<Self> {
        differentiable(&ROLL_NODE, [self], compute, |_| {
            let back: Vec<i64> = shifts
                .iter()
                .rev()
                .map(|&shift| shift.wrapping_neg())
                .collect();
            let dimensions: Vec<i64> = dimensions.iter().rev().copied().collect();
            Formula::unary(move |gradient| gradient.roll(&back, &dimensions))
        })
    }

    fn rolled(&self, shift: i64, dimension: i64) -> Result<Self> {
        let size = self.dims().get(dimension_index(dimension, self.rank())?);
        let size = size.map_or(1, |&size| size as i64);
        if self.count() == 0 || self.rank() == 0 {
            return self.duplicate();
        }
        let start = (size - shift.rem_euclid(size)) % size;
        let first = self.narrow(dimension, start, size - start)?;
        let last = self.narrow(dimension, 0, start)?;
        Self::cat(&[first, last], dimension)
    }
}
