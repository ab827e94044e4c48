//! Reports the roles of the runtime's tensors to the recorder.
//!
//! The profiler walks the modules and optimizers of any framework, and asks these functions whether
//! an object is a tensor of the embedded runtime.

use mindprof_model::TensorRole;
use mindprof_record::tensor_role;
use pyo3::prelude::*;

use crate::tensor::Tensor;

/// Reports the role of a tensor to the recorder. Returns whether `value` is a tensor of the
/// runtime.
pub fn note_role(value: &Bound<'_, PyAny>, role: TensorRole) -> bool {
    let Ok(tensor) = value.cast::<Tensor>() else {
        return false;
    };
    tell(&tensor.get().0, role);
    true
}

/// Reports the gradient of a parameter to the recorder, if it has one. Returns whether `value` is a
/// tensor of the runtime.
pub fn note_gradient(value: &Bound<'_, PyAny>) -> bool {
    let Ok(parameter) = value.cast::<Tensor>() else {
        return false;
    };
    if let Some(gradient) = parameter.get().0.grad() {
        tell(&gradient, TensorRole::Gradient);
    }
    true
}

fn tell(tensor: &mindtorch_tensor::Tensor, role: TensorRole) {
    let (address, bytes) = (tensor.storage_address(), tensor.storage_bytes());
    tensor_role(role, address as u64, bytes as u64);
}
