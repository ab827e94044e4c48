//! What a program says of its tensors: their storages are looked up, and become roles in the
//! recorder.

#![expect(unsafe_code, reason = "tensors are asked through torch's C interface")]

use mindprof_model::TensorRole;
use mindprof_record::tensor_role;

use crate::inputs::{dtype_of, storage_address};
use crate::observer::Observer;
use crate::symbols::{StorageSymbols, TensorHandle, TensorSymbols};

/// torch's number of the host among kinds of devices.
const HOST: i32 = 0;

impl Observer {
    /// Records the role of a tensor whose `TensorImpl` lies at `implementation`. Nothing is recorded
    /// of one that is not strided or does not lie on the host.
    ///
    /// # Safety
    /// The address is of a `TensorImpl` that lives as long as the call.
    pub unsafe fn tensor_role(&self, role: TensorRole, implementation: u64) {
        let symbols = &self.symbols.tensor;
        if implementation == 0 || implementation == symbols.undefined {
            return;
        }
        // A handle is the address of what holds the address of the implementation.
        let handle = (&raw const implementation).cast();
        // SAFETY: by the caller's word.
        if let Some((address, bytes)) = unsafe { storage(handle, symbols) } {
            tensor_role(role, address, bytes);
        }
    }
}

/// Returns where the storage of a tensor begins, and how many bytes it has.
///
/// # Safety
/// The handle is of a tensor that is defined.
unsafe fn storage(tensor: TensorHandle, symbols: &TensorSymbols) -> Option<(u64, u64)> {
    let StorageSymbols { bytes, device_kind } = symbols.storage?;
    let (mut layout, mut device, mut dtype, mut size) = (0, HOST, 0, 0);
    // SAFETY: the functions write one answer each, and throw nothing.
    let is_told = unsafe {
        if let Some(ask) = symbols.layout {
            ask(tensor, &raw mut layout);
        }
        // What has no storage is not asked for it: torch would write to standard error.
        layout == 0
            && device_kind(tensor, &raw mut device) == 0
            && device == HOST
            && (symbols.dtype)(tensor, &raw mut dtype) == 0
            && bytes(tensor, &raw mut size) == 0
    };
    if !is_told {
        return None;
    }
    // SAFETY: as above.
    let address = unsafe { storage_address(tensor, dtype_of(dtype), symbols) };
    let size = u64::try_from(size).ok().filter(|_| address != 0)?;
    Some((address, size))
}
