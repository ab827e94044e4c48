//! The second operand of a binary operator: a tensor or a number.
//!
//! As in torch, a number becomes a real zero-dimensional tensor, so that its conversion is recorded
//! like any other operator. It only has a lower priority in type promotion.

use std::borrow::Cow;

use crate::dtype::Weight;
use crate::{DType, Scalar, Tensor};

/// The second operand of a binary operator.
///
/// Python callers may pass a number wherever a tensor is accepted; this type keeps the two apart
/// until promotion has chosen a dtype.
#[derive(Clone, Copy, Debug)]
pub enum Operand<'a> {
    /// A tensor.
    Tensor(&'a Tensor),
    /// A number.
    Scalar(Scalar),
}

impl<'a> Operand<'a> {
    /// Returns the dtype of the operand and its priority in type promotion.
    pub(crate) fn kind(self) -> (DType, Weight) {
        match self {
            Self::Tensor(tensor) => (tensor.dtype(), tensor.weight()),
            Self::Scalar(value) => (value.dtype(), Weight::Number),
        }
    }

    /// Returns the operand as a tensor, and its priority in type promotion.
    pub(crate) fn weigh(self) -> (Cow<'a, Tensor>, Weight) {
        match self {
            Self::Tensor(tensor) => (Cow::Borrowed(tensor), tensor.weight()),
            Self::Scalar(value) => (Cow::Owned(Tensor::from_scalar(value)), Weight::Number),
        }
    }
}

impl<'a> From<&'a Tensor> for Operand<'a> {
    fn from(tensor: &'a Tensor) -> Self {
        Self::Tensor(tensor)
    }
}

impl<T: Into<Scalar>> From<T> for Operand<'_> {
    fn from(value: T) -> Self {
        Self::Scalar(value.into())
    }
}
