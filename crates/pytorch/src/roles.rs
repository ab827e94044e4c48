//! What a program says of its tensors: their storages are looked up, and become roles in the
//! recorder.

#![expect(unsafe_code, reason = "tensors are asked through torch's C interface")]

use mindprof_model::TensorRole;
use mindprof_record::tensor_role;

use crate::ivalue::Value;
use crate::observer::Observer;
use crate::tensor::{TensorFacts, Tensors, storage_address};

impl Observer {
    /// Records the role of a tensor whose `TensorImpl` lies at `implementation`. Nothing is recorded
    /// of one that is not strided or does not lie on the host.
    ///
    /// # Safety
    /// The address is of a `TensorImpl` that lives as long as the call.
    pub unsafe fn tensor_role(&self, role: TensorRole, implementation: u64) {
        if implementation == 0 || implementation == self.tensors.symbols.undefined {
            return;
        }
        // SAFETY: by the caller's word.
        let storage = unsafe { storage(&Value::new(implementation, 0), &self.tensors) };
        if let Some((address, bytes)) = storage {
            tensor_role(role, address, bytes);
        }
    }
}

/// Returns where the storage of a tensor begins on the host, and how many bytes it has.
///
/// # Safety
/// The value is a tensor that is defined.
unsafe fn storage(tensor: &Value, tensors: &Tensors) -> Option<(u64, u64)> {
    let symbols = tensors.symbols.storage?;
    let mut bytes = 0;
    // SAFETY: by the caller's word; the function writes one answer and throws nothing. What has no
    // strides has no storage, and is not asked for it: torch would write to standard error.
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
