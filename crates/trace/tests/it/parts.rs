//! Profiles made of parts: a recorded trace that is split and reassembled equals the original.

use mindprof_analyze::{Analysis, FlowKind, FlowSide, Flows, GroupBy, averages, merge};
use mindprof_model::{
    DeviceKind, Event, EventId, Kinship, MemoryRecord, Nanos, Part, Profile, ProfileBuilder,
    Selection, ThreadId, UnknownEvent,
};
use mindprof_trace::{read_trace_file, write_trace};
use rustc_hash::FxHashMap;

use crate::corpus::Session;

/// The CPU events or the device events.
struct Side<'a> {
    profile: &'a Profile,
    is_cpu: bool,
}

impl Side<'_> {
    fn has(&self, thread: ThreadId) -> bool {
        let device = self.profile.threads()[thread.index()].device;
        (device == DeviceKind::Cpu) == self.is_cpu
    }
}

impl Selection for Side<'_> {
    fn event(&mut self, _id: EventId, event: &Event) -> Option<Event> {
        self.has(event.thread).then_some(*event)
    }

    fn keeps_memory(&mut self, record: &MemoryRecord) -> bool {
        self.has(record.thread)
    }

    fn keeps_unknown(&mut self, record: &UnknownEvent) -> bool {
        self.has(record.thread)
    }
}

fn written(profile: &Profile) -> String {
    let mut bytes = Vec::new();
    write_trace(profile, "trace.json", &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Returns the rows of every grouping, formatted for debugging.
fn rows(profile: &Profile) -> String {
    let analysis = Analysis::build(profile.clone());
    let groupings = [
        GroupBy::default(),
        GroupBy {
            input_shapes: true,
            ..GroupBy::default()
        },
        GroupBy {
            stack_frames: 5,
            ..GroupBy::default()
        },
    ];
    let rows = groupings.map(|group_by| {
        let averages = averages(&analysis, group_by);
        let rows = averages
            .rows
            .iter()
            .map(|row| format!("{} {:?} {:?}\n", row.key, row.sums, row.device));
        rows.collect::<String>()
    });
    rows.concat()
}

#[test]
fn a_cpu_and_its_device_put_together_are_the_whole() {
    for session in Session::ALL {
        let profile = read_trace_file(&session.trace_path()).unwrap();
        let side = |is_cpu| {
            let profile = &profile;
            Part::selected(profile, Nanos::ZERO, &mut Side { profile, is_cpu })
        };
        let mut cpu = side(true);
        let mut device = side(false);
        // Only one of the parts states them.
        device.metadata = mindprof_model::Metadata::default();
        device.span = Nanos::ZERO;
        cpu.span = profile.span();
        let mut builder = ProfileBuilder::from(cpu);
        builder.append(without_roles_and_loss(device), Kinship::Window);
        let whole = builder.build().unwrap();
        assert_eq!(rows(&whole), rows(&profile), "{session:?}");
        assert_eq!(written(&whole), written(&profile), "{session:?}");
    }
}

/// A selection keeps all roles and counts of loss, so only one of two parts may keep them.
fn without_roles_and_loss(part: Part) -> Part {
    assert_eq!(part.clone().into_profile().unwrap().loss().total(), 0);
    assert!(part.clone().into_profile().unwrap().roles().is_empty());
    part
}

#[test]
fn a_trace_merged_with_itself_counts_everything_twice() {
    for session in Session::ALL {
        let profile = read_trace_file(&session.trace_path()).unwrap();
        let merged = merge([profile.clone().into(), profile.clone().into()]).unwrap();
        let once = Analysis::build(profile);
        let twice = Analysis::build(merged);
        let count = |analysis: &Analysis| {
            let found = averages(analysis, GroupBy::default());
            let mut rows: Vec<_> = (found.rows.iter())
                .map(|row| {
                    let sums = &row.sums;
                    let times = (sums.cpu_total.0, sums.self_cpu_total.0);
                    let device = (sums.device_total.0, sums.self_device_total.0);
                    (row.key.clone(), sums.count, times, device)
                })
                .collect();
            rows.sort();
            rows
        };
        let doubled: Vec<_> = count(&once)
            .into_iter()
            .map(|(key, count, (cpu, own), (device, own_device))| {
                (
                    key,
                    2 * count,
                    (2 * cpu, 2 * own),
                    (2 * device, 2 * own_device),
                )
            })
            .collect();
        assert_eq!(count(&twice), doubled, "{session:?}");
        assert_eq!(
            arrows(once.profile()).len() * 2,
            arrows(twice.profile()).len()
        );
        for (tail, head) in arrows(twice.profile()) {
            assert_eq!(tail, head, "an arrow leaves its rank");
        }
    }
}

/// Returns the ranks of both ends of each flow.
fn arrows(profile: &Profile) -> Vec<(Option<u32>, Option<u32>)> {
    let flows = Flows::build(profile);
    let mut tails = FxHashMap::default();
    let mut found = Vec::new();
    for (index, event) in profile.events().iter().enumerate() {
        let Some(end) = flows.end_at(EventId::from_index(index), event) else {
            continue;
        };
        let rank = profile.rank(event.thread);
        let key = (end.kind == FlowKind::Launch, end.number);
        match end.side {
            FlowSide::Tail => drop(tails.insert(key, rank)),
            FlowSide::Head => found.push((key, rank)),
        }
    }
    let found = found.into_iter();
    found
        .map(|(key, rank)| (tails.get(&key).copied().unwrap(), rank))
        .collect()
}
