//! A map from ids to small numbers, for ids that are mostly dense.

use rustc_hash::FxHashMap;

/// Ids below this are dense whatever the number of entries.
const ALWAYS_DENSE: u64 = 1 << 12;
/// The room for each entry up to which ids count as dense.
const ROOM: u64 = 4;
const NONE: u32 = u32::MAX;

/// A map from ids to numbers below `u32::MAX`. The ids of a database count its rows, so an array
/// holds most of them in a tenth of the room of a hash table.
#[derive(Debug, Default)]
pub(super) struct IdMap {
    dense: Vec<u32>,
    sparse: FxHashMap<u64, u32>,
    len: u64,
}

impl IdMap {
    pub(super) fn insert(&mut self, id: u64, value: u32) {
        self.len += 1;
        if id >= ALWAYS_DENSE && id / ROOM > self.len {
            self.sparse.insert(id, value);
            return;
        }
        let index = id as usize;
        if self.dense.len() <= index {
            self.dense.resize(index + 1, NONE);
        }
        self.dense[index] = value;
    }

    pub(super) fn get(&self, id: u64) -> Option<u32> {
        let dense = self.dense.get(id as usize).copied();
        let dense = dense.filter(|&value| value != NONE);
        dense.or_else(|| self.sparse.get(&id).copied())
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dense_and_sparse_ids_are_found() {
        let mut map = IdMap::default();
        assert!(map.is_empty());
        let ids = [0, 7, 4095, 1 << 28, (1 << 28) + 1, u64::MAX];
        for (value, id) in (0..).zip(ids) {
            map.insert(id, value);
        }
        for (value, id) in (0..).zip(ids) {
            assert_eq!(map.get(id), Some(value), "{id}");
        }
        assert_eq!(map.get(8), None);
        assert_eq!(map.get(1 << 40), None);
    }
}
