//! Maps each error to the Python exception that torch raises for it.

use crate::Error;

/// The Python exception class of an error.
///
/// The binding turns it into an exception type, so that `except` clauses written for torch keep
/// working.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exception {
    /// `RuntimeError`.
    Runtime,
    /// `IndexError`.
    Index,
    /// `ValueError`.
    Value,
    /// `TypeError`.
    Type,
    /// `NotImplementedError`, a subclass of `RuntimeError`.
    NotImplemented,
}

impl Error {
    /// Returns the Python exception that torch raises for this error.
    pub fn exception(&self) -> Exception {
        match self {
            Self::DimensionOutOfRange { .. } => Exception::Index,
            Self::Rejected { exception, .. } => *exception,
            Self::WrongCount { .. } => Exception::Value,
            Self::BooleanSubtraction
            | Self::MixedBooleanSubtraction
            | Self::BooleanNegation
            | Self::BooleanRelu
            | Self::MeanOfIntegers { .. }
            | Self::NotImplemented { .. } => Exception::NotImplemented,
            Self::Broadcast { .. }
            | Self::Expand { .. }
            | Self::ExpandTooFew { .. }
            | Self::ExpandLeading { .. }
            | Self::OutputShape { .. }
            | Self::OverlappingRead
            | Self::OverlappingWrite
            | Self::RepeatedDimension { .. }
            | Self::NotAMatrix { .. }
            | Self::InvalidShape { .. }
            | Self::InvalidShapeDimension { .. }
            | Self::TwoInferred
            | Self::AmbiguousShape { .. }
            | Self::ViewNeedsCopy
            | Self::NegativeDimension { .. }
            | Self::NegativeZeros
            | Self::StorageOverflow { .. }
            | Self::StrideOverflow
            | Self::CountOverflow
            | Self::OutOfMemory { .. }
            | Self::OutOfBounds { .. }
            | Self::ScalarOverflow { .. }
            | Self::NotOneElement { .. }
            | Self::FractionalAlpha
            | Self::BooleanAlpha
            | Self::MatmulRank { .. }
            | Self::MmRank { .. }
            | Self::MmShapes { .. }
            | Self::MmTypes { .. }
            | Self::MvRank { .. }
            | Self::MvShapes { .. }
            | Self::MvTypes { .. }
            | Self::DotRank { .. }
            | Self::DotShapes { .. }
            | Self::DotTypes { .. }
            | Self::BmmRank { .. }
            | Self::BmmShapes { .. }
            | Self::BmmTypes { .. }
            | Self::SavedModified { .. }
            | Self::GraphFreed
            | Self::GradientShape { .. }
            | Self::OutputGradientShape { .. }
            | Self::BackwardWithoutGrad { .. }
            | Self::BackwardOfMany
            | Self::InputWithoutGrad
            | Self::UnusedInput
            | Self::InPlaceOnLeaf
            | Self::InPlaceOnLeafView
            | Self::InPlaceOnUntrackedView
            | Self::DetachView
            | Self::RequiresGradOfIntegers
            | Self::RequiresGradOfResult
            | Self::RetainWithoutGrad
            | Self::HookWithoutGrad
            | Self::HookType { .. }
            | Self::HookSize { .. }
            | Self::GradType { .. }
            | Self::GradShape { .. }
            | Self::ResultType { .. }
            | Self::DivisionByZero
            | Self::Callback => Exception::Runtime,
        }
    }
}
