//! Records the roles of tensors: parameters, gradients and optimizer state, by their storages.

#![expect(
    unsafe_code,
    reason = "tensors are queried through torch's C interface"
)]

use mindprof_model::TensorRole;
use mindprof_record::tensor_role;

use crate::ivalue::Value;
use crate::observer::Observer;
use crate::tensor::{TensorFacts, Tensors, storage_address};

impl Observer {
    /// Records the role of a tensor by the address of its `TensorImpl`. Ignores tensors that are
    /// not strided or not in CPU memory.
    ///
    /// # Safety
    /// The address is zero, or that of a `TensorImpl` that stays alive until this returns.
    pub unsafe fn tensor_role(&self, role: TensorRole, implementation: u64) {
        if implementation == 0 || implementation == self.tensors.symbols.undefined {
            return;
        }
        // SAFETY: the address is neither zero nor the undefined tensor, so the caller guarantees a
        // live tensor.
        let storage = unsafe { storage(&Value::new(implementation, 0), &self.tensors) };
        if let Some((address, bytes)) = storage {
            tensor_role(role, address, bytes);
        }
    }
}

/// Returns the address and the size in bytes of a tensor's storage in CPU memory.
///
/// # Safety
/// The value is a live, defined tensor.
unsafe fn storage(tensor: &Value, tensors: &Tensors) -> Option<(u64, u64)> {
    let symbols = tensors.symbols.storage?;
    let mut bytes = 0;
    // SAFETY: the caller guarantees a live, defined tensor. The function writes one answer and does
    // not throw. A tensor without strides has no storage and is not asked for it, because torch
    // would write to standard error.
    unsafe {
        let facts = TensorFacts::of(tensor, tensors)?;
        if facts.strides.len() < facts.dims.len() {
            return None;
        }
        let address = storage_address(tensor, &facts, tensors);
        let is_told = address != 0 && (symbols.bytes)(tensor.tensor(), &raw mut bytes) == 0;
        Some((address, u64::try_from(bytes).ok().filter(|_| is_told)?))
    }
}
