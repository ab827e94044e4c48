//! torch's own trace in, torch's own lines of stacks out; and files that viewers open.

use std::collections::BTreeMap;

use mindprof_analyze::{Analysis, StackMetric};
use mindprof_formats::write_folded;

use crate::corpus::Session;
use crate::goldens::as_torch_saw_it;

/// Returns the weights of each stack, in order.
fn by_stack(lines: &str) -> BTreeMap<&str, Vec<u64>> {
    let mut found: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for line in lines.lines() {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        found
            .entry(stack)
            .or_default()
            .push(weight.parse().unwrap());
    }
    for weights in found.values_mut() {
        weights.sort_unstable();
    }
    found
}

#[test]
fn stacks_are_torchs_stacks() {
    for session in Session::ALL {
        let Some(expected) = session.stacks() else {
            continue;
        };
        let analysis = Analysis::build(as_torch_saw_it(session));
        let mut found = Vec::new();
        write_folded(&analysis, StackMetric::SelfCpuTime, &mut found).unwrap();
        let found = String::from_utf8(found).unwrap();
        let (a, b) = (by_stack(&found), by_stack(&expected));
        println!(
            "{session:?} {} {}",
            found.lines().count(),
            expected.lines().count()
        );
        for key in a.keys().chain(b.keys()) {
            if a.get(key) != b.get(key) {
                println!("  {:?} {:?}\n     {key}", a.get(key), b.get(key));
            }
        }
    }
}
