//! A table from correlation ids to positions.
//!
//! Collectors count correlation ids up, so a list finds them in the order of the launches, where a
//! hash table would miss the cache at every call. Ids that are far apart are hashed nevertheless.

use rustc_hash::FxHashMap;

const NONE: u32 = u32::MAX;

/// The most entries of the list for each id, and the most for few ids.
const SPREAD: usize = 16;
const ROOM: usize = 1 << 12;

/// Positions by correlation id.
#[derive(Debug)]
pub(crate) enum ByCorrelation {
    /// The positions of the ids from the least one on.
    Near { least: u32, positions: Vec<u32> },
    /// The positions of ids that are far apart.
    Far(FxHashMap<u32, u32>),
}

impl ByCorrelation {
    /// Builds the table of the first position of each id.
    pub(crate) fn build(ids: &[u32]) -> Self {
        let least = ids.iter().copied().min().unwrap_or(0);
        let most = ids.iter().copied().max().unwrap_or(0);
        let range = (most - least) as usize + 1;
        if range > SPREAD * ids.len() + ROOM {
            let mut positions = FxHashMap::default();
            for (position, &id) in (0..).zip(ids) {
                positions.entry(id).or_insert(position);
            }
            return Self::Far(positions);
        }
        let mut positions = vec![NONE; range];
        for (position, &id) in (0..).zip(ids) {
            let slot = &mut positions[(id - least) as usize];
            *slot = (*slot).min(position);
        }
        Self::Near { least, positions }
    }

    /// Returns the first position of an id.
    pub(crate) fn get(&self, id: u32) -> Option<usize> {
        let position = match self {
            Self::Near { least, positions } => {
                let slot = id.checked_sub(*least)?;
                positions.get(slot as usize).copied()
            }
            Self::Far(positions) => positions.get(&id).copied(),
        };
        let position = position.filter(|position| *position != NONE)?;
        Some(position as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_and_far_ids_have_their_first_position() {
        for apart in [1, 100_000_000] {
            let ids = [5, 7, 5, 9].map(|id| id * apart);
            let table = ByCorrelation::build(&ids);
            assert_eq!(matches!(table, ByCorrelation::Near { .. }), apart == 1);
            let found = [0, 5, 6, 7, 9, 10].map(|id| table.get(id * apart));
            assert_eq!(found, [None, Some(0), None, Some(1), Some(3), None]);
        }
        assert_eq!(ByCorrelation::build(&[]).get(0), None);
    }
}
