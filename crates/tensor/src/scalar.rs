//! Numbers that are not tensors: an operand, a fill value, or what `item` gives back.
//!
//! They come from the caller (a Python `int`, `float` or `bool`) and become elements of whichever type the operator
//! computes in.

/// A number outside of any tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// A truth value.
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

    /// Returns whether this is exactly one, so that multiplying by it may be left out.
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
