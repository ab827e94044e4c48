//! Operators that a host's language composes of others: it opens their scopes itself.
//!
//! What such an operator is given comes as values; its gradient is that of the operators inside.

use mindprof_record::{Name, NameKind, OpenScope, is_recording, open_with};

use crate::autograd::next_sequence;
use crate::dispatch::{Absent, Argument};
use crate::{Scalar, Tensor};

/// One argument of a composed operator.
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
    /// Something absent, or not told apart.
    Absent,
}

/// Opens the scope of a composed operator, to be closed by its caller. Returns none when nothing
/// records.
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
