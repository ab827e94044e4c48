use mindprof_model::{Category, Links, Part, Profile, StringTable, Thread, Timeline};
use proptest::prelude::*;

use super::*;

fn tree_of(profile: &Profile) -> Tree {
    let keys = Keys::build(profile.strings());
    Tree::build(profile, &keys, &Correlation::build(profile))
}

/// One line per event: its name, its parent's position, its self time.
fn describe(profile: &Profile) -> Vec<String> {
    let tree = tree_of(profile);
    (0..profile.events().len())
        .map(EventId::from_index)
        .map(|id| {
            let name = profile.name(profile.event(id));
            if tree.is_merged(id) {
                return format!("{name} merged");
            }
            let parent = match tree.parent(id) {
                Some(parent) => profile.name(profile.event(parent)),
                None => "-",
            };
            format!("{name} in {parent} self {}", tree.self_time(id).0)
        })
        .collect()
}

/// Events `(name, start, end)` on one thread, for overlaps that nested closures cannot draw.
fn overlapping(events: &[(&str, u64, u64)]) -> Profile {
    let mut builder = Part::new();
    let thread = builder.add_thread(Thread {
        process: 1,
        native: 1,
        name: StringTable::EMPTY,
        device: DeviceKind::Cpu,
    });
    for &(name, start, end) in events {
        let name = builder.strings.intern(name);
        builder.add_event(Event::new(
            Category::Operator,
            name,
            thread,
            Nanos(start),
            Nanos(end - start),
        ));
    }
    builder.into_profile().unwrap()
}

// parent  |--------------------|   0..100
// child     |---|                 10..40
// child2        |--------|        40..90
// leaf            |--|            50..60
#[test]
fn self_time_excludes_children() {
    let profile = Timeline::draw(|time| {
        time.scope("parent", |time| {
            time.idle(10);
            time.op("child", 30);
            time.scope("child2", |time| {
                time.idle(10);
                time.op("leaf", 10);
                time.idle(30);
            });
            time.idle(10);
        });
    });
    assert_eq!(
        describe(&profile),
        [
            "parent in - self 20",
            "child in parent self 30",
            "child2 in parent self 40",
            "leaf in child2 self 10",
        ]
    );
}

// a   |-------------------------|    0..100
// b        |--------|               20..60
// c             |--------|          40..80
// d                |--|             50..60   c hides b
#[test]
fn children_that_overlap_count_once() {
    let profile = overlapping(&[("a", 0, 100), ("b", 20, 60), ("c", 40, 80), ("d", 50, 60)]);
    assert_eq!(
        describe(&profile),
        [
            "a in - self 40",
            "b in a self 40",
            "c in a self 30",
            "d in c self 10",
        ]
    );
}

// outer   |-----|        0..10
// inner   |-----|        0..10   the first one added stays outside
// inside     |           5..5
// after         |       10..10   no longer inside
#[test]
fn equal_intervals_nest_and_an_empty_one_at_the_end_is_outside() {
    let profile = overlapping(&[
        ("outer", 0, 10),
        ("inner", 0, 10),
        ("inside", 5, 5),
        ("after", 10, 10),
    ]);
    assert_eq!(
        describe(&profile),
        [
            "outer in - self 0",
            "inner in outer self 10",
            "inside in inner self 0",
            "after in - self 0",
        ]
    );
}

// thread 1   a |-----|     0..10
// thread 2   b   |-|       2..5
#[test]
fn threads_do_not_see_each_other() {
    let profile = Timeline::draw(|time| {
        time.op("a", 10);
        time.thread(2);
        time.idle(2);
        time.op("b", 3);
    });
    assert_eq!(describe(&profile), ["a in - self 10", "b in - self 3"]);
}

// aa  |-------------|    0..30
// aa    |---------|      5..25
// aa      |-----|       10..20
// b         |-|         12..15
#[test]
fn an_only_child_of_the_same_key_is_merged_into_its_parent() {
    let profile = Timeline::draw(|time| {
        time.annotation("aa", |time| {
            time.idle(5);
            time.annotation("aa", |time| {
                time.idle(5);
                time.annotation("aa", |time| {
                    time.idle(2);
                    time.op("b", 3);
                    time.idle(5);
                });
                time.idle(5);
            });
            time.idle(5);
        });
    });
    assert_eq!(
        describe(&profile),
        [
            "aa in - self 27",
            "aa merged",
            "aa merged",
            "b in aa self 3"
        ]
    );
}

// aa  |-------------|    0..25
// aa    |---|            5..10
// b           |---|     15..20
#[test]
fn a_child_of_the_same_key_with_a_sibling_stays() {
    let profile = Timeline::draw(|time| {
        time.scope("aa", |time| {
            time.idle(5);
            time.op("aa", 5);
            time.idle(5);
            time.op("b", 5);
            time.idle(5);
        });
    });
    assert_eq!(
        describe(&profile),
        ["aa in - self 15", "aa in aa self 5", "b in aa self 5"]
    );
}

// ProfilerStep#1  |-----|    0..12
// ProfilerStep#2    |-|      4..8
#[test]
fn merging_compares_keys_and_not_names() {
    let profile = Timeline::draw(|time| {
        time.annotation("ProfilerStep#1", |time| {
            time.idle(4);
            time.annotation("ProfilerStep#2", |time| time.idle(4));
            time.idle(4);
        });
    });
    assert_eq!(
        describe(&profile),
        ["ProfilerStep#1 in - self 12", "ProfilerStep#2 merged"]
    );
}

// async   |---------|     0..100
// b          |-|         20..30
// hidden       |         22..24
#[test]
fn asynchronous_and_hidden_events_are_outside_the_tree() {
    let mut builder = Part::new();
    let thread = builder.add_thread(Thread {
        process: 1,
        native: 1,
        name: StringTable::EMPTY,
        device: DeviceKind::Cpu,
    });
    for (name, start, duration, flags) in [
        ("async", 0, 100, Flags::ASYNC),
        ("b", 20, 10, Flags::NONE),
        ("hidden", 22, 2, Flags::HIDDEN),
    ] {
        let name = builder.strings.intern(name);
        let mut event = Event::new(
            Category::Operator,
            name,
            thread,
            Nanos(start),
            Nanos(duration),
        );
        event.flags = flags;
        builder.add_event(event);
    }
    assert_eq!(
        describe(&builder.into_profile().unwrap()),
        ["async in - self 0", "b in - self 10", "hidden in - self 0"]
    );
}

// aten::mm           |------------|    0..50   on thread 1, external id 7
// cudaLaunchKernel      |---|         10..20   on a thread that only the runtime knows, external id
// 7 cudaLaunchKernel                |-| 30..40   there too, without an external id
#[test]
fn runtime_calls_are_children_of_the_operator_that_made_them() {
    let mut builder = Part::new();
    let [host, other] = [1, 2].map(|native| {
        builder.add_thread(Thread {
            process: 1,
            native,
            name: StringTable::EMPTY,
            device: DeviceKind::Cpu,
        })
    });
    for (name, category, thread, start, end, external) in [
        ("aten::mm", Category::Operator, host, 0, 50, 7),
        ("launch", Category::Runtime, other, 10, 20, 7),
        ("alone", Category::Runtime, other, 30, 40, 0),
    ] {
        let name = builder.strings.intern(name);
        let event = Event::new(category, name, thread, Nanos(start), Nanos(end - start));
        builder.add_linked_event(event, Links::new(external, 0));
    }
    assert_eq!(
        describe(&builder.into_profile().unwrap()),
        [
            "aten::mm in - self 40",
            "launch in aten::mm self 10",
            "alone in - self 10"
        ]
    );
}

/// The rules taken literally, in quadratic time. `Tree::build` must agree with them.
fn parents_by_the_book(profile: &Profile) -> Vec<Option<usize>> {
    let events = profile.events();
    let mut parents = vec![None; events.len()];
    let mut stacks: Vec<Vec<usize>> = vec![Vec::new(); profile.threads().len()];
    for (index, event) in events.iter().enumerate() {
        let stack = &mut stacks[event.thread.index()];
        stack.truncate(
            stack
                .iter()
                .rposition(|&open| {
                    event.start < events[open].end() && event.end() <= events[open].end()
                })
                .map_or(0, |top| top + 1),
        );
        parents[index] = stack.last().copied();
        stack.push(index);
    }
    let key = |index: usize| events[index].name;
    let mut alive: Vec<usize> = (0..events.len()).collect();
    loop {
        let duplicate = alive.iter().copied().find(|&child| {
            parents[child].is_some_and(|parent: usize| {
                key(parent) == key(child)
                    && alive
                        .iter()
                        .filter(|&&other| parents[other] == Some(parent))
                        .count()
                        == 1
            })
        });
        let Some(duplicate) = duplicate else { break };
        alive.retain(|&index| index != duplicate);
        for index in 0..parents.len() {
            if parents[index] == Some(duplicate) {
                parents[index] = parents[duplicate];
            }
        }
    }
    parents
}

fn any_profile() -> impl Strategy<Value = Profile> {
    let event = (0..3_usize, 0..3_u8, 0..40_u64, 0..20_u64);
    prop::collection::vec(event, 0..40).prop_map(|events| {
        let mut builder = Part::new();
        let threads: Vec<_> = (0..3)
            .map(|native| {
                builder.add_thread(Thread {
                    process: 1,
                    native,
                    name: StringTable::EMPTY,
                    device: DeviceKind::Cpu,
                })
            })
            .collect();
        for (thread, name, start, duration) in events {
            let name = builder.strings.intern(&format!("op{name}"));
            builder.add_event(Event::new(
                Category::Operator,
                name,
                threads[thread],
                Nanos(start),
                Nanos(duration),
            ));
        }
        builder.into_profile().unwrap()
    })
}

/// Operators that nest properly: each step is a name, an idle time and the number of steps inside.
fn nested_profile() -> impl Strategy<Value = Profile> {
    prop::collection::vec((0..4_u8, 0..9_u64, 0..3_usize), 0..30)
        .prop_map(|steps| Timeline::draw(|time| nest(time, &steps)))
}

fn nest(time: &mut Timeline, steps: &[(u8, u64, usize)]) {
    let Some((&(name, idle, inside), rest)) = steps.split_first() else {
        return;
    };
    let (inner, after) = rest.split_at(inside.min(rest.len()));
    time.scope(&format!("op{name}"), |time| {
        time.idle(idle);
        nest(time, inner);
        time.idle(idle);
    });
    nest(time, after);
}

proptest! {
    #[test]
    fn children_lie_inside_parents(profile in any_profile()) {
        let tree = tree_of(&profile);
        for (index, event) in profile.events().iter().enumerate() {
            let id = EventId::from_index(index);
            prop_assert!(tree.self_time(id) <= event.duration);
            if let Some(parent) = tree.parent(id) {
                let parent = profile.event(parent);
                prop_assert!(parent.start <= event.start && event.end() <= parent.end());
                prop_assert_eq!(parent.thread, event.thread);
            }
        }
    }

    #[test]
    fn the_single_pass_agrees_with_the_rules(profile in any_profile()) {
        let tree = tree_of(&profile);
        let expected = parents_by_the_book(&profile);
        for (index, parent) in expected.into_iter().enumerate() {
            let found = tree.parent(EventId::from_index(index)).map(EventId::index);
            prop_assert_eq!(found, parent);
        }
    }

    #[test]
    fn self_times_of_nested_events_sum_to_the_roots(profile in nested_profile()) {
        let tree = tree_of(&profile);
        let ids = || (0..profile.events().len()).map(EventId::from_index);
        let own: u64 = ids().map(|id| tree.self_time(id).0).sum();
        let roots: u64 = ids()
            .filter(|&id| tree.parent(id).is_none())
            .map(|id| profile.event(id).duration.0)
            .sum();
        prop_assert_eq!(own, roots);
    }
}
