//! Operators that Python composes from other operators, and whose scopes Python opens itself.
//!
//! Their arguments arrive as [`OperatorInput`] values. They have no autograd node of their own: the
//! operators inside provide the gradient.

use mindprof_record::{Name, NameKind, OpenScope, is_recording, open_with};

use crate::autograd::next_sequence;
use crate::dispatch::{Absent, Argument};
use crate::{Scalar, Tensor};

/// An argument of a composed operator.
///
/// The Python binding converts arguments into this type, so that a composed operator records the
/// same inputs as a built-in one.
#[derive(Clone, Debug)]
pub enum OperatorInput {
    /// A tensor.
    Tensor(Tensor),
    /// A list of tensors.
    Tensors(Vec<Tensor>),
    /// A number.
    Scalar(Scalar),
    /// A list of integers.
    Integers(Vec<i64>),
    /// An argument that is absent or whose value is not recorded.
    Absent,
}

/// Opens the scope of a composed operator, which the caller must close. Returns `None` if nothing
/// is recording.
pub fn open_operator(name: &str, inputs: &[OperatorInput]) -> Option<OpenScope> {
    if !is_recording() {
        return None;
    }
    let name = Name::intern(name, NameKind::Operator);
    let mut scope = open_with(name, |encoder| {
        for input in inputs {
            match input {
                OperatorInput::Tensor(tensor) => tensor.encode(encoder),
                OperatorInput::Tensors(tensors) => tensors.as_slice().encode(encoder),
                OperatorInput::Scalar(value) => value.encode(encoder),
                OperatorInput::Integers(values) => values.as_slice().encode(encoder),
                OperatorInput::Absent => Absent.encode(encoder),
            }
        }
    })?;
    let is_tensor = |input: &OperatorInput| {
        matches!(input, OperatorInput::Tensor(_) | OperatorInput::Tensors(_))
    };
    if inputs.iter().any(is_tensor)
        && let Some(sequence) = next_sequence()
    {
        scope.set_sequence(sequence);
    }
    Some(scope)
}
