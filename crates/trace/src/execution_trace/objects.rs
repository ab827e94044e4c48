//! The ids of nodes, tensors and storages, from one counter in the order of first use.
//!
//! A storage is identified by its address between allocation and free, a tensor by its storage and
//! view: two views of the same elements in the same layout are one tensor.

use mindprof_model::DType;
use rustc_hash::FxHashMap;

/// Assigns ids to nodes, tensors and storages.
///
/// The writer walks the recording in the order of time, so that an address whose storage was freed
/// gets a new id when it is used again.
#[derive(Debug)]
pub(super) struct Objects {
    next: u64,
    storages: FxHashMap<u64, Storage>,
}

#[derive(Debug)]
struct Storage {
    id: u64,
    tensors: FxHashMap<(DType, Box<[u64]>, u64), u64>,
}

/// The view of a tensor onto its storage.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    pub(super) dtype: DType,
    pub(super) dims: &'a [u64],
    pub(super) strides: &'a [u64],
    pub(super) offset: u64,
}

impl Objects {
    /// Creates a counter that starts at `first`.
    pub(super) fn from(first: u64) -> Self {
        Self {
            next: first,
            storages: FxHashMap::default(),
        }
    }

    /// Returns the next id.
    pub(super) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Returns the ids of a tensor and of its storage.
    pub(super) fn tensor(&mut self, address: u64, view: View<'_>) -> (u64, u64) {
        let layout: Box<[u64]> = view.dims.iter().chain(view.strides).copied().collect();
        let key = (view.dtype, layout, view.offset);
        if let Some(storage) = self.storages.get(&address)
            && let Some(&tensor) = storage.tensors.get(&key)
        {
            return (tensor, storage.id);
        }
        let tensor = self.number();
        if !self.storages.contains_key(&address) {
            let id = self.number();
            let tensors = FxHashMap::default();
            self.storages.insert(address, Storage { id, tensors });
        }
        let storage = self.storages.get_mut(&address).expect("it is there now");
        storage.tensors.insert(key, tensor);
        (tensor, storage.id)
    }

    /// Forgets the storage at an address that was freed.
    pub(super) fn release(&mut self, address: u64) {
        self.storages.remove(&address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(offset: u64) -> View<'static> {
        View {
            dtype: DType::F32,
            dims: &[2],
            strides: &[1],
            offset,
        }
    }

    #[test]
    fn views_share_a_storage_until_it_is_released() {
        let mut objects = Objects::from(3);
        assert_eq!(objects.tensor(64, view(0)), (3, 4));
        assert_eq!(objects.tensor(64, view(1)), (5, 4));
        assert_eq!(objects.tensor(64, view(0)), (3, 4));
        objects.release(64);
        assert_eq!(objects.tensor(64, view(0)), (6, 7));
    }
}
