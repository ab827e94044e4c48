//! Merging summaries is associative and commutative to the byte.

use mindprof_ranks::Ranks;
use proptest::prelude::*;

use crate::goldens::{golden, summarize};

/// Returns summaries of several ranks: copies of real ones that differ in their facts, and some that
/// do not differ at all.
fn parts(seeds: &[(u32, u8)]) -> Vec<Ranks> {
    let real = ["mlp-plain.trace.json.gz"].map(|name| summarize(&golden(name)));
    let parts = seeds.iter().map(|&(rank, change)| {
        let mut summary = real[0].clone();
        summary.identity.rank = (rank < 4).then_some(rank);
        summary.reference_unix_ns += u64::from(change % 3);
        summary.rows.truncate(usize::from(change % 4));
        summary.identity.host = (change % 2 == 0).then(|| format!("node{change}").into());
        Ranks::from(summary)
    });
    parts.collect()
}

/// Merges parts in a random tree: each choice merges two neighbours.
fn merge_in_tree(mut parts: Vec<Ranks>, choices: &[prop::sample::Index]) -> Ranks {
    for choice in choices {
        if parts.len() < 2 {
            break;
        }
        let place = choice.index(parts.len() - 1);
        let right = parts.remove(place + 1);
        let left = std::mem::take(&mut parts[place]);
        parts[place] = Ranks::merge([left, right]);
    }
    Ranks::merge(parts)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_order_and_any_tree_of_merges_gives_the_same_bytes(
        seeds in proptest::collection::vec((0..6_u32, any::<u8>()), 1..9),
        order in any::<u64>(),
        choices in proptest::collection::vec(any::<prop::sample::Index>(), 0..9),
    ) {
        let parts = parts(&seeds);
        let at_once = Ranks::merge(parts.clone()).to_bytes();
        let mut shuffled = parts;
        for place in 0..shuffled.len() {
            let other = (order >> (place % 16)) as usize % shuffled.len();
            shuffled.swap(place, other);
        }
        let merged = merge_in_tree(shuffled, &choices);
        prop_assert_eq!(&merged.to_bytes(), &at_once);
        // A part that went through a file merges alike.
        let read = Ranks::from_bytes(&at_once).unwrap();
        prop_assert_eq!(Ranks::merge([read, Ranks::default()]).to_bytes(), at_once);
    }
}
