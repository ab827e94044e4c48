//! Ranks without devices whose steps are marks, as `mindprof run` records them.

use mindprof_analyze::Analysis;
use mindprof_model::{Category, DeviceKind, Event, Nanos, Part, StepMark, StringTable, Thread};
use mindprof_ranks::{RankSummary, Source};

use crate::job::answer;

const RANKS: u64 = 4;
const STEPS: u64 = 12;
const SLOW: u64 = 2;
const MILLI: u64 = 1_000_000;
const BEGIN_UNIX_NS: u64 = 1_700_000_000_000_000_000;

/// Returns the summary of a rank that prepares for a minute before its first step ends.
///
/// ```text
/// marks         1      2      3
/// steps  ---0---|--1---|--2---|       step 0 begins with the recording, and has the imports
/// ```
fn summary(rank: u64) -> RankSummary {
    let mut part = Part::new();
    let thread = part.add_thread(Thread {
        process: 100,
        native: 100,
        name: StringTable::EMPTY,
        device: DeviceKind::Cpu,
    });
    let mut add = |category, name: &str, begin: u64, end: u64| {
        let name = part.strings.intern(name);
        let event = Event::new(category, name, thread, Nanos(begin), Nanos(end - begin));
        part.add_event(event);
    };
    let mut marks = Vec::new();
    let mut now = 0;
    for number in 0..STEPS {
        let begin = now + if number == 0 { 60_000 * MILLI } else { 0 };
        let work = if rank == SLOW { 15 } else { 10 };
        let end = begin + 16 * MILLI;
        add(Category::Operator, "aten::mm", begin, begin + work * MILLI);
        add(
            Category::Annotation,
            "gloo:all_reduce",
            begin + work * MILLI,
            end,
        );
        marks.push(StepMark {
            number: number + 1,
            unix_ns: BEGIN_UNIX_NS + end,
        });
        now = end;
    }
    part.reference_unix_ns = BEGIN_UNIX_NS;
    StepMark::write(&marks, &mut part.metadata);
    let info = format!(
        "{{\"backend\":\"gloo\",\"rank\":{rank},\"world_size\":{RANKS},\
         \"pg_config\":[{{\"pg_name\":\"0\",\"pg_size\":{RANKS},\"ranks\":[]}}]}}"
    );
    part.metadata.set("distributedInfo", info);
    let profile = part.into_profile().expect("the part is sound");
    let source = Source {
        file: &format!("rank{rank}.json"),
        repairs: Vec::new(),
    };
    RankSummary::build(&Analysis::build(profile), &source)
}

#[test]
fn the_preparation_of_a_program_is_no_step() {
    let told = answer((0..RANKS).map(summary).collect());
    let steps: Vec<u64> = told.steps.each.iter().map(|step| step.number).collect();
    assert_eq!(steps, (1..STEPS).collect::<Vec<u64>>());
    assert!(told.slow_steps.is_empty(), "{:?}", told.slow_steps);
    let slow = told.findings.found.first().expect("a rank is slow");
    assert_eq!(
        (slow.rule, slow.ranks[0].rank),
        ("slow-rank", Some(SLOW as u32))
    );
    assert!((slow.share - 5.0 / 16.0).abs() < 0.01, "{}", slow.share);
}
