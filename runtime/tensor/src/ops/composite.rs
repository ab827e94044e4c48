//! Operators composed only of other operators, which also provide their gradients.

use super::extreme::End;
use super::reduce::KeepDims;
use super::unary::Elementwise;
use crate::dispatch::{Site, open};
use crate::error::reject;
use crate::shape::{dimension_index, signed};
use crate::{Comparison, Error, Result, Scalar, Tensor};

static ARGSORT: Site = Site::operator("aten::argsort");
static ISNAN: Site = Site::operator("aten::isnan");
static LOGSUMEXP: Site = Site::operator("aten::logsumexp");
static OUTER: Site = Site::operator("aten::outer");
static REPEAT: Site = Site::operator("aten::repeat");

impl Tensor {
    /// Returns the indices that would sort the elements along a dimension.
    ///
    /// # Errors
    /// Fails in the same cases as `sort`.
    pub fn argsort(&self, dimension: i64, first: End) -> Result<Self> {
        let _scope = open(&ARGSORT, (self, dimension, first == End::Highest));
        let [_, places] = self.sort(dimension, first)?;
        Ok(places)
    }

    /// Returns which elements are NaN.
    ///
    /// # Errors
    /// Returns an error if memory cannot be allocated.
    pub fn isnan(&self) -> Result<Self> {
        let _scope = open(&ISNAN, (self,));
        self.compare(Comparison::Ne, self)
    }

    /// Returns the outer product of two vectors.
    ///
    /// # Errors
    /// Returns an error if an operand is not a vector.
    pub fn outer(&self, other: &Self) -> Result<Self> {
        let _scope = open(&OUTER, (self, other));
        for vector in [self, other] {
            if vector.rank() != 1 {
                return reject!(
                    Runtime,
                    "outer: Expected 1-D argument self, but got {}-D",
                    vector.rank()
                );
            }
        }
        self.reshape(&[self.count() as i64, 1])?.mul(other)
    }

    /// Returns the logarithm of the sum of exponentials along a dimension.
    ///
    /// # Errors
    /// Returns an error if the dimension does not exist or is empty.
    pub fn logsumexp(&self, dimension: i64, keep: KeepDims) -> Result<Self> {
        let _scope = open(&LOGSUMEXP, (self, [dimension].as_slice(), keep.flag()));
        dimension_index(dimension, self.rank())?;
        let [largest, _] = self
            .detached()
            .extreme_along(End::Highest, dimension, KeepDims::Yes)?;
        let endless = largest
            .elementwise(Elementwise::Abs)?
            .compare(Comparison::Eq, Scalar::Float(f64::INFINITY))?;
        largest.masked_fill_(&endless, Scalar::Int(0))?;
        let sum = self.sub(&largest)?.elementwise(Elementwise::Exp)?.sum(
            Some(&[dimension]),
            keep,
            None,
        )?;
        let largest = match keep {
            KeepDims::Yes => largest,
            KeepDims::No if self.rank() == 0 => largest,
            KeepDims::No => largest.squeeze(dimension)?,
        };
        sum.elementwise(Elementwise::Log)?.add(&largest)
    }

    /// Repeats the tensor along each dimension, and along new leading ones.
    ///
    /// # Errors
    /// Returns an error if there are fewer repeat counts than dimensions, or one is negative.
    pub fn repeat(&self, times: &[i64]) -> Result<Self> {
        let _scope = open(&REPEAT, (self, times));
        if times.len() < self.rank() {
            return reject!(
                Runtime,
                "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"
            );
        }
        let mut dims = vec![1; times.len() - self.rank()];
        dims.extend(signed(self.dims()));
        let pairs = || times.iter().zip(&dims);
        let apart: Vec<i64> = pairs().flat_map(|(_, &dim)| [1, dim]).collect();
        let wide: Vec<i64> = pairs().flat_map(|(&time, &dim)| [time, dim]).collect();
        let whole = pairs().map(|(&time, &dim)| time.checked_mul(dim));
        let whole: Vec<i64> = whole.collect::<Option<_>>().ok_or(Error::CountOverflow)?;
        self.reshape(&apart)?.expand(&wide)?.reshape(&whole)
    }
}
