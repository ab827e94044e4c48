//! Compares the folded stacks of torch's own traces with those that torch exported, and checks the
//! speedscope files of real traces.

use std::collections::BTreeMap;

use mindprof_analyze::{Analysis, Item, StackMetric};
use mindprof_formats::{write_folded, write_speedscope};
use mindprof_model::EventId;
use serde_json::Value;

use crate::corpus::Session;
use crate::torchs_view::{as_torch_saw_it, torchs_self_time};

fn written(analysis: &Analysis) -> String {
    let mut out = Vec::new();
    write_folded(analysis, StackMetric::SelfCpuTime, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Returns the weights of each stack, the smallest first.
fn by_stack(lines: &str) -> BTreeMap<String, Vec<i64>> {
    let mut found: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for line in lines.lines() {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        let weights = found.entry(stack.into()).or_default();
        weights.push(weight.parse().unwrap());
    }
    sorted(found)
}

fn sorted(mut stacks: BTreeMap<String, Vec<i64>>) -> BTreeMap<String, Vec<i64>> {
    stacks.retain(|_, weights| !weights.is_empty());
    for weights in stacks.values_mut() {
        weights.sort_unstable();
    }
    stacks
}

/// Returns the weights of each stack with other self times of the events.
fn weighed(analysis: &Analysis, self_time: impl Fn(EventId) -> i64) -> BTreeMap<String, Vec<i64>> {
    let mut found: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for row in mindprof_formats::event_rows(analysis)
        .iter()
        .zip(analysis.items())
    {
        let (row, Item::Event(id)) = row else {
            continue;
        };
        let frames = row
            .stack
            .iter()
            .rev()
            .map(|frame| frame.replace([' ', ';'], "_"));
        let stack = frames.collect::<Vec<_>>().join(";");
        let micros = self_time(id) / 1000;
        if !stack.is_empty() && micros > 0 {
            found.entry(stack).or_default().push(micros);
        }
    }
    sorted(found)
}

/// torch's self times differ if children overlap. With its self times in place of ours, every line
/// is torch's.
#[test]
fn stacks_are_torchs_stacks() {
    let mut sessions = 0;
    for session in Session::ALL {
        let Some(expected) = session.stacks() else {
            continue;
        };
        let analysis = Analysis::build(as_torch_saw_it(session));
        let ours = |id| analysis.tree().self_time(id).0 as i64;
        assert_eq!(
            by_stack(&written(&analysis)),
            weighed(&analysis, ours),
            "{session:?}"
        );
        let found = weighed(&analysis, |id| torchs_self_time(&analysis, id));
        let expected = by_stack(&expected);
        let stacks =
            |weights: &BTreeMap<String, Vec<i64>>| weights.keys().cloned().collect::<Vec<_>>();
        assert_eq!(stacks(&found), stacks(&expected), "{session:?}");
        for (stack, found) in &found {
            let expected = &expected[stack];
            let close = found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 1);
            assert!(
                close && found.len() == expected.len(),
                "{session:?} {stack}\n{found:?}\n{expected:?}"
            );
        }
        sessions += 1;
    }
    assert_eq!(sessions, 4);
}

/// speedscope opens a file only if time never goes backwards in a profile and the event that opened
/// last closes first.
#[test]
fn every_session_opens_in_speedscope() {
    for session in Session::ALL {
        let analysis = Analysis::build(as_torch_saw_it(session));
        let mut out = Vec::new();
        write_speedscope(&analysis, session.name, &mut out).unwrap();
        let file: Value = serde_json::from_slice(&out).unwrap();
        let frames = file["shared"]["frames"].as_array().unwrap();
        let mut opened = 0;
        for profile in file["profiles"].as_array().unwrap() {
            let mut open = Vec::new();
            let mut now = profile["startValue"].as_u64().unwrap();
            for moment in profile["events"].as_array().unwrap() {
                let frame = moment["frame"].as_u64().unwrap();
                assert!((frame as usize) < frames.len() && moment["at"].as_u64().unwrap() >= now);
                now = moment["at"].as_u64().unwrap();
                match moment["type"].as_str().unwrap() {
                    "O" => open.push(frame),
                    kind => assert_eq!((kind, open.pop()), ("C", Some(frame))),
                }
                opened += usize::from(moment["type"] == "O");
            }
            assert!(open.is_empty() && now <= profile["endValue"].as_u64().unwrap());
        }
        assert_eq!(opened, analysis.profile().events().len(), "{session:?}");
    }
}
