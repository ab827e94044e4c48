//! Reads tensors that modules and optimizers hold: the facts that torch's event tree shows of them.

#![expect(
    unsafe_code,
    reason = "tensors are read by the probed layout or through torch's C interface"
)]

use mindprof_model::{DType, TensorIdentity};

use crate::ivalue::Value;
use crate::observer::Observer;
use crate::tensor::{TensorFacts, identity, storage_address};

/// The facts of a tensor at one time, copied from it. [`Observer::read_tensor`] creates it.
#[derive(Clone, Debug)]
pub struct HeldTensor {
    /// The object.
    pub identity: TensorIdentity,
    /// The address of its storage; zero if it has none in CPU memory.
    pub storage: u64,
    /// Its dtype.
    pub dtype: DType,
    /// Its sizes.
    pub dims: Vec<usize>,
    /// Its strides in elements; empty if it has none.
    pub strides: Vec<isize>,
}

impl Observer {
    /// Reads a tensor by the address of its `TensorImpl`. Returns `None` for an undefined tensor
    /// and for one without sizes.
    ///
    /// # Safety
    /// The address is zero, or that of a `TensorImpl` that stays alive until this returns.
    pub unsafe fn read_tensor(&self, implementation: u64) -> Option<HeldTensor> {
        if implementation == 0 || implementation == self.tensors.symbols.undefined {
            return None;
        }
        let tensor = Value::new(implementation, 0);
        // SAFETY: the address is neither zero nor the undefined tensor, so the caller guarantees a
        // live tensor.
        unsafe {
            let facts = TensorFacts::of(&tensor, &self.tensors)?;
            Some(HeldTensor {
                identity: identity(&tensor, &facts, &self.tensors),
                storage: storage_address(&tensor, &facts, &self.tensors),
                dtype: facts.dtype,
                dims: facts.dims.to_vec(),
                strides: facts.strides.to_vec(),
            })
        }
    }
}
