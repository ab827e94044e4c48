//! The dtypes of the tensors among an operator's inputs, those in lists of tensors included.

use std::ops::ControlFlow;

use mindprof_model::{DType, Input, InputsIter};

/// A tensor among the inputs of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InputTensor {
    /// Its dtype, which may be unknown.
    pub(crate) dtype: DType,
    /// Whether it has dimensions. One without is often a Python number, which is of double
    /// precision.
    pub(crate) has_dims: bool,
}

/// Visits the tensors in order until a visit breaks off.
pub(crate) fn visit_tensors<B>(
    inputs: InputsIter<'_>,
    visit: &mut dyn FnMut(InputTensor) -> ControlFlow<B>,
) -> ControlFlow<B> {
    for input in inputs {
        match input {
            Input::Tensor { dtype, dims, .. } => visit(InputTensor {
                dtype,
                has_dims: !dims.is_empty(),
            })?,
            Input::TensorList(list) => visit_tensors(list, visit)?,
            Input::Other
            | Input::Int(_)
            | Input::Float(_)
            | Input::Bool(_)
            | Input::IntList(_)
            | Input::FloatList(_)
            | Input::BoolList(_)
            | Input::Complex { .. }
            | Input::NumberList(_)
            | Input::Device => {}
        }
    }
    ControlFlow::Continue(())
}

/// Returns the dtype of the first tensor with dimensions, if there is one.
pub(crate) fn first_dtype(inputs: InputsIter<'_>) -> Option<DType> {
    let found = visit_tensors(inputs, &mut |tensor| {
        if tensor.has_dims {
            ControlFlow::Break(tensor.dtype)
        } else {
            ControlFlow::Continue(())
        }
    });
    found.break_value()
}

/// Returns the dtype that an operator works on: that of the first tensor with dimensions, or else of
/// the first tensor. `None` if it has no tensors, or if the dtype is unknown.
pub(crate) fn main_dtype(inputs: InputsIter<'_>) -> Option<DType> {
    let mut first = None;
    let found = visit_tensors(inputs, &mut |tensor| {
        first = first.or(Some(tensor.dtype));
        if tensor.has_dims {
            ControlFlow::Break(tensor.dtype)
        } else {
            ControlFlow::Continue(())
        }
    });
    let dtype = found.break_value().or(first);
    dtype.filter(|dtype| *dtype != DType::Unknown)
}

/// Returns the names of the known dtypes in Python, each once, in order.
pub(crate) fn distinct_dtypes(inputs: InputsIter<'_>) -> Vec<&'static str> {
    let mut names = Vec::new();
    let _: ControlFlow<()> = visit_tensors(inputs, &mut |tensor| {
        let name = tensor.dtype.name();
        if tensor.dtype != DType::Unknown && !names.contains(&name) {
            names.push(name);
        }
        ControlFlow::Continue(())
    });
    names
}
