//! The second operand of an operator: a tensor, or a number that stands for a tensor without
//! dimensions.
//!
//! A number becomes a real zero-dimensional tensor, as in torch, so that its conversion is an
//! operator like any other; it only weighs less when the common type is chosen.

use std::borrow::Cow;

use crate::dtype::Weight;
use crate::{DType, Scalar, Tensor};

/// A tensor or a number.
#[derive(Clone, Copy, Debug)]
pub enum Operand<'a> {
    /// A tensor.
    Tensor(&'a Tensor),
    /// A number.
    Scalar(Scalar),
}

impl<'a> Operand<'a> {
    /// Returns the type that takes part, and how much it counts.
    pub(crate) fn kind(self) -> (DType, Weight) {
        match self {
            Self::Tensor(tensor) => (tensor.dtype(), tensor.weight()),
            Self::Scalar(value) => (value.dtype(), Weight::Number),
        }
    }

    /// Returns the tensor that takes part, and how much its type counts.
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
