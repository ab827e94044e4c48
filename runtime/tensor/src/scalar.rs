//! Numbers outside of tensors: operands, fill values and the results of `item`.
//!
//! They come from Python (`int`, `float` or `bool`) and are converted to the dtype that the
//! operator computes in.

use crate::element::by_dtype;
use crate::{DType, Element};

/// A number outside of any tensor.
///
/// It keeps the kind of the Python number that it came from, because type promotion depends on the
/// kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
}

impl Scalar {
    /// Returns the number as a float; large integers are rounded.
    pub fn to_f64(self) -> f64 {
        match self {
            Self::Bool(value) => f64::from(u8::from(value)),
            Self::Int(value) => value as f64,
            Self::Float(value) => value,
        }
    }

    /// Returns the number after a round trip through an element of this dtype.
    pub(crate) fn stored(self, dtype: DType) -> Self {
        by_dtype!(dtype, T => T::from_scalar(self).to_scalar())
    }

    /// Returns whether this is exactly one, so that a multiplication by it can be skipped.
    pub(crate) fn is_one(self) -> bool {
        self == Self::Int(1) || self == Self::Float(1.0)
    }
}

impl From<bool> for Scalar {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Scalar {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<f64> for Scalar {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}
