//! Distinct elements: `unique`.

use super::create::{Options, empty, result_space};
use super::extreme::End;
use crate::dispatch::{Absent, Site, open};
use crate::kernels;
use crate::{DType, Result, Scalar, Tensor};

static RESIZE: Site = Site::operator("aten::resize_");
static UNIQUE: Site = Site::operator("aten::_unique2");

/// The optional results of [`Tensor::unique`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UniqueOptions {
    /// Whether to return the index of each element among the distinct ones.
    pub inverse: bool,
    /// Whether to return how often each distinct element occurs.
    pub counts: bool,
}

impl Tensor {
    /// Returns the sorted distinct elements, the index of each element among them, and how often
    /// each one occurs.
    ///
    /// # Errors
    /// Returns an error if memory cannot be allocated.
    pub fn unique(&self, options: UniqueOptions) -> Result<[Self; 3]> {
        let UniqueOptions { inverse, counts } = options;
        let _scope = open(&UNIQUE, (self, true, inverse, counts));
        let rooms = [self.dtype(), DType::I64, DType::I64, DType::I64]
            .map(|dtype| empty(&[0], dtype, &Options::strided(dtype)));
        let flat = kernels::pack(&self.untracked().flatten(0, -1)?)?;
        let [values, places] = flat.sort(-1, End::Lowest)?;
        let mut uniques: Vec<Scalar> = Vec::new();
        let (mut firsts, mut inverses) = (Vec::new(), vec![0_i64; flat.count()]);
        let mut numbers: Vec<i64> = Vec::new();
        for (value, place) in values
            .to_scalars()?
            .into_iter()
            .zip(places.to_vec::<i64>()?)
        {
            // NaN equals nothing, so each one is distinct.
            if uniques.last() != Some(&value) {
                uniques.push(value);
                firsts.push(flat.offset() + place as usize);
                numbers.push(0);
            }
            inverses[place as usize] = uniques.len() as i64 - 1;
            if let Some(number) = numbers.last_mut() {
                *number += 1;
            }
        }
        let shown = if inverse || counts { rooms.len() } else { 1 };
        for room in rooms.into_iter().take(shown) {
            drop(open(
                &RESIZE,
                (&room?, [uniques.len() as i64].as_slice(), Absent),
            ));
        }
        let uniques = kernels::take(&flat, &firsts, &[firsts.len()])?;
        let shape = result_space(self.dims(), DType::I64)?;
        let inverses = Self::from_elements(inverses, shape.layout().clone());
        let numbers = Self::from_slice(&numbers, &[numbers.len() as i64])?;
        Ok([uniques, inverses, numbers])
    }
}
