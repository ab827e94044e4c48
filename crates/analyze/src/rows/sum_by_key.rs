//! Sums of amounts that share a key, for rows that do not come from a profile.

use std::hash::Hash;

use rustc_hash::FxHashMap;

use crate::rows::metric::Amounts;

/// Entries that share a key, with their sum.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SummedGroup {
    /// The positions of the entries, in order.
    pub members: Vec<usize>,
    /// The sum over the entries.
    pub amounts: Amounts,
}

/// Sums entries that share a key. The groups are in the order in which their keys first appear.
pub fn sum_by_key<K: Eq + Hash>(parts: impl IntoIterator<Item = (K, Amounts)>) -> Vec<SummedGroup> {
    let mut rows: Vec<SummedGroup> = Vec::new();
    let mut by_key: FxHashMap<K, usize> = FxHashMap::default();
    for (position, (key, part)) in parts.into_iter().enumerate() {
        let row = *by_key.entry(key).or_insert(rows.len());
        if row == rows.len() {
            rows.push(SummedGroup::default());
        }
        rows[row].members.push(position);
        rows[row].amounts.add(&part);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::sums::Sums;

    #[test]
    fn equal_keys_are_summed_under_their_first() {
        let part = |count| {
            Amounts::from(Sums {
                count,
                ..Sums::default()
            })
        };
        let rows = sum_by_key([("a", part(1)), ("b", part(2)), ("a", part(4))]);
        let group = |members: &[usize], count| SummedGroup {
            members: members.to_vec(),
            amounts: part(count),
        };
        assert_eq!(rows, [group(&[0, 2], 5), group(&[1], 2)]);
    }
}
