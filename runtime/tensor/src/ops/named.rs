//! Operators that call another one inside a scope of their own: `expand_as`, `square`, `positive`,
//! and Python's `x.T` and `max(x, y)`.

use super::extreme::End;
use crate::dispatch::{Absent, Site, open};
use crate::shape::signed;
use crate::{Logic, Operand, Result, Scalar, Tensor};

static AND: Site = Site::operator("aten::__and__");
static EXPAND_AS: Site = Site::operator("aten::expand_as");
static MAX: Site = Site::operator("aten::max");
static MIN: Site = Site::operator("aten::min");
static NUMPY_T: Site = Site::operator("aten::numpy_T");
static OR: Site = Site::operator("aten::__or__");
static POSITIVE: Site = Site::operator("aten::positive");
static RANDN_LIKE: Site = Site::operator("aten::randn_like");
static RAND_LIKE: Site = Site::operator("aten::rand_like");
static SQUARE: Site = Site::operator("aten::square");
static XOR: Site = Site::operator("aten::__xor__");

impl Tensor {
    /// Expands to the shape of another tensor.
    ///
    /// # Errors
    /// Fails in the same cases as `expand`.
    pub fn expand_as(&self, other: &Self) -> Result<Self> {
        let _scope = open(&EXPAND_AS, (self, other));
        self.expand(&signed(other.dims()))
    }

    /// Returns the square of each element.
    ///
    /// # Errors
    /// Returns an error if memory cannot be allocated.
    pub fn square(&self) -> Result<Self> {
        let _scope = open(&SQUARE, (self,));
        self.pow(Scalar::Int(2))
    }

    /// Returns the tensor unchanged.
    #[must_use]
    pub fn positive(&self) -> Self {
        let _scope = open(&POSITIVE, (self,));
        self.clone()
    }

    /// Creates a tensor like this one with uniform draws from zero up to but excluding one.
    ///
    /// # Errors
    /// Returns an error if the dtype is not floating-point or memory cannot be allocated.
    pub fn rand_like(&self) -> Result<Self> {
        let _scope = open(&RAND_LIKE, (self, Absent, Absent, Absent, Absent, Absent));
        let room = self.empty_like()?;
        room.uniform_(0.0, 1.0)?;
        Ok(room)
    }

    /// Creates a tensor like this one with draws from the standard normal distribution.
    ///
    /// # Errors
    /// Returns an error if the dtype is not floating-point or memory cannot be allocated.
    pub fn randn_like(&self) -> Result<Self> {
        let _scope = open(&RANDN_LIKE, (self, Absent, Absent, Absent, Absent, Absent));
        let room = self.empty_like()?;
        room.normal_(0.0, 1.0)?;
        Ok(room)
    }

    /// Reverses the order of the dimensions.
    ///
    /// # Errors
    /// Returns an error if memory cannot be allocated.
    pub fn numpy_t(&self) -> Result<Self> {
        let _scope = open(&NUMPY_T, (self,));
        let order: Vec<i64> = (0..self.rank() as i64).rev().collect();
        self.permute(&order)
    }

    /// Returns the larger or smaller of each pair of elements.
    ///
    /// # Errors
    /// Fails in the same cases as `maximum`.
    pub fn extreme_beside(&self, end: End, other: &Self) -> Result<Self> {
        match end {
            End::Highest => {
                let _scope = open(&MAX, (self, other));
                self.maximum(other)
            }
            End::Lowest => {
                let _scope = open(&MIN, (self, other));
                self.minimum(other)
            }
        }
    }

    /// Combines booleans logically, or integers bit by bit, as Python's operators do.
    ///
    /// # Errors
    /// Fails in the same cases as `logic`.
    pub fn logic_operator<'a>(&self, how: Logic, other: impl Into<Operand<'a>>) -> Result<Self> {
        let site = match how {
            Logic::And => &AND,
            Logic::Or => &OR,
            Logic::Xor => &XOR,
        };
        let other = other.into();
        let (shown, _) = other.weigh();
        let _scope = open(site, (self, &*shown));
        self.logic(how, other)
    }
}
