//! The shapes of inputs.

use mindprof_model::Input;

/// Returns the dimensions of a tensor. Empty if the input is not a tensor.
pub fn dims<'a>(input: &Input<'a>) -> &'a [u64] {
    match input {
        Input::Tensor { dims, .. } => dims,
        Input::Other
        | Input::Device
        | Input::TensorList(_)
        | Input::Int(_)
        | Input::Float(_)
        | Input::Bool(_)
        | Input::IntList(_)
        | Input::FloatList(_)
        | Input::BoolList(_)
        | Input::Complex { .. }
        | Input::NumberList(_) => &[],
    }
}
