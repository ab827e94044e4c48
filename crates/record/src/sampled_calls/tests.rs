use mindprof_model::{DeviceKind, StringTable, Thread};
use proptest::prelude::*;

use super::*;

/// Draws scopes and samples of one thread. A stack is written as its frames: `"main f@3"`, where 3 is
/// the line that the function is at.
struct Drawing {
    part: Part,
    thread: ThreadId,
    samples: Vec<KnownStack>,
}

impl Drawing {
    fn new() -> Self {
        let mut part = Part::new();
        let thread = part.add_thread(Thread {
            process: 1,
            native: 1,
            name: StringTable::EMPTY,
            device: DeviceKind::Cpu,
        });
        Self {
            part,
            thread,
            samples: Vec::new(),
        }
    }

    fn stack(&mut self, frames: &str) -> StackId {
        let mut stack = StackId::NONE;
        for frame in frames.split_whitespace() {
            let frame = self.part.strings.intern(&long(frame));
            stack = self.part.stacks.push(stack, frame);
        }
        stack
    }

    fn scope(&mut self, category: Category, frames: &str, (start, end): (u64, u64)) {
        let name = self.part.strings.intern("scope");
        let mut event = Event::new(
            category,
            name,
            self.thread,
            millis(start),
            millis(end - start),
        );
        event.stack = self.stack(frames);
        self.part.add_event(event);
    }

    fn op(&mut self, frames: &str, span: (u64, u64)) {
        self.scope(Category::Operator, frames, span);
    }

    fn sample(&mut self, time: u64, frames: &str) {
        let stack = self.stack(frames);
        self.samples.push(KnownStack {
            time: millis(time),
            stack,
        });
    }

    /// Returns the estimated calls: the name, the callers, start and end in milliseconds.
    fn calls(self, end: u64) -> Vec<(String, String, u64, u64)> {
        self.calls_at_most(MOST_CALLS, end)
    }

    fn calls_at_most(mut self, most: usize, end: u64) -> Vec<(String, String, u64, u64)> {
        let scopes = self.part.len();
        add_at_most(
            &mut self.part,
            vec![(self.thread, self.samples)],
            millis(end),
            most,
        );
        let text = |name: StringId| short(self.part.strings.text(name));
        let calls = self.part.events()[scopes..].iter();
        calls
            .map(|call| {
                let mut callers: Vec<String> =
                    self.part.stacks.frames(call.stack).map(text).collect();
                callers.reverse();
                let (start, end) = (call.start.0 / 1_000_000, call.end().0 / 1_000_000);
                (text(call.name), callers.join(" "), start, end)
            })
            .collect()
    }
}

/// Returns a frame as recordings have it.
fn long(frame: &str) -> String {
    match frame.split_once('@') {
        Some((function, line)) => format!("a.py({line}): {function}"),
        None => frame.into(),
    }
}

/// Returns a frame as drawings have it.
fn short(frame: &str) -> String {
    match Place::parse(frame) {
        Some(place) => format!("{}@{}", place.function, place.line),
        None => frame.into(),
    }
}

fn millis(time: u64) -> Nanos {
    Nanos(time * 1_000_000)
}

fn call(name: &str, callers: &str, start: u64, end: u64) -> (String, String, u64, u64) {
    (name.into(), callers.into(), start, end)
}

// operator              |------------|
// range                                  |--------|
// samples         5     15          30      45        each in a wait
#[test]
fn a_wait_is_a_call_unless_an_operator_waits() {
    let mut time = Drawing::new();
    time.op("main", (10, 20));
    time.scope(Category::Annotation, "main", (40, 50));
    for moment in [5, 15, 30, 45] {
        time.sample(moment, "main <waiting>");
    }
    let waits: Vec<_> = (time.calls(60).into_iter())
        .filter(|(name, ..)| name == "<waiting>")
        .map(|(_, callers, start, end)| (callers, start, end))
        .collect();
    let main = || "main".to_owned();
    assert_eq!(waits, [(main(), 0, 10), (main(), 20, 40), (main(), 40, 50)]);
}

// The picture at the top of the module.
#[test]
fn frames_in_common_stay_open_and_others_change_halfway() {
    let mut time = Drawing::new();
    time.sample(10, "main f@3");
    time.sample(20, "main f@3");
    time.sample(30, "main f@4 g@9");
    time.sample(40, "main f@4");
    let expected = [
        call("main", "", 5, 45),
        call("f@3", "main", 5, 25),
        call("f@4", "main", 25, 45),
        call("g@9", "main f@4", 25, 35),
    ];
    assert_eq!(time.calls(100), expected);
}

// main  |-----------------------------|
// f@3   |-----------------------------|
// g       |--||--||--||--| ...            too many, and shorter than their callers
#[test]
fn of_too_many_calls_the_shortest_are_left_out() {
    let mut time = Drawing::new();
    for line in 0..40 {
        time.op(&format!("main f@3 g@{line} h"), (10 + line, 11 + line));
    }
    time.sample(60, "main f@4");
    let expected = [
        call("main", "", 10, 65),
        call("f@3", "main", 10, 50),
        call("f@4", "main", 50, 65),
    ];
    assert_eq!(time.calls_at_most(8, 100), expected);
}

#[test]
fn operators_tell_their_stack_exactly() {
    let mut time = Drawing::new();
    time.op("main f@3", (10, 20));
    time.op("main f@4", (20, 30));
    time.op("main f@4", (34, 36));
    time.sample(35, "main f@4");
    let expected = [
        call("main", "", 10, 36),
        call("f@3", "main", 10, 20),
        call("f@4", "main", 20, 36),
    ];
    assert_eq!(time.calls(100), expected);
}

// main       |--------------------------|
// f@3        |------|
// range             |--------------|            opened in f@3, while f moves on to line 4
// f@4                   |----|       |--|
#[test]
fn calls_never_cross_the_edge_of_a_range() {
    let mut time = Drawing::new();
    time.sample(8, "main f@3");
    time.scope(Category::Annotation, "main f@3", (10, 40));
    time.op("main f@4", (20, 30));
    time.op("main f@4", (42, 46));
    let expected = [
        call("main", "", 3, 46),
        call("f@3", "main", 3, 10),
        call("f@3", "main", 10, 20),
        call("f@4", "main", 20, 30),
        call("f@4", "main", 42, 46),
    ];
    assert_eq!(time.calls(100), expected);
}

#[test]
fn nothing_is_claimed_of_a_long_time_without_samples() {
    let mut time = Drawing::new();
    time.sample(10, "main f@3");
    time.sample(1010, "main g@4");
    let expected = [
        call("main", "", 5, 1015),
        call("f@3", "main", 5, 60),
        call("g@4", "main", 960, 1015),
    ];
    assert_eq!(time.calls(2000), expected);
}

// A loop that works in line 2 and calls an operator in line 3: few of the gaps between the operators
// are sampled, and the operators are no evidence of what happens in the others.
#[test]
fn gaps_without_samples_are_like_sampled_ones() {
    let mut time = Drawing::new();
    for turn in 0..10 {
        time.op("main f@3", (10 * turn, 10 * turn + 1));
        if turn == 4 {
            time.sample(10 * turn, "main f@3");
            time.sample(10 * turn + 5, "main f@2 g@9");
        }
    }
    let calls = time.calls(200);
    let total = |name: &str| -> u64 {
        let own = calls.iter().filter(|call| call.0 == name);
        own.map(|call| call.3 - call.2).sum()
    };
    assert_eq!((total("f@3"), total("f@2"), total("g@9")), (10, 81, 81));
}

fn own_time(calls: &[(String, String, u64, u64)], function: &str) -> u64 {
    let is_of = |name: &str| name.split('@').next() == Some(function);
    let total = |is: &dyn Fn(&str, &str) -> bool| -> u64 {
        let calls = calls.iter().filter(|call| is(&call.0, &call.1));
        calls.map(|call| call.3 - call.2).sum()
    };
    let callees = |_: &str, callers: &str| callers.split(' ').next_back().is_some_and(is_of);
    total(&|name, _| is_of(name)) - total(&callees)
}

/// A loop that was written out: each gap lies between other lines, and few have a sample.
#[test]
fn gaps_between_other_lines_are_like_sampled_ones() {
    let mut time = Drawing::new();
    for line in 0..20 {
        time.op(&format!("main@1 f@{line}"), (10 * line, 10 * line + 1));
        if line % 5 == 2 {
            time.sample(10 * line + 5, &format!("main@1 f@{line} helper@90"));
        }
    }
    let calls = time.calls(300);
    // Nineteen gaps of 9 ms, and operators of 1 ms.
    assert_eq!(own_time(&calls, "helper"), 19 * 9);
    assert_eq!(own_time(&calls, "f"), 20);
    assert_eq!(own_time(&calls, "main"), 0);
}

/// Each level of a recursion is a stack of its own.
#[test]
fn gaps_at_other_depths_are_like_sampled_ones() {
    let mut time = Drawing::new();
    let mut callers = String::from("main@1");
    for depth in 0..20 {
        callers.push_str(" f@3");
        time.op(&callers, (10 * depth, 10 * depth + 1));
        if depth % 5 == 2 {
            time.sample(10 * depth + 5, &format!("{callers} helper@90"));
        }
    }
    let calls = time.calls(300);
    assert_eq!(own_time(&calls, "helper"), 19 * 9);
}

/// Without any sample, the function that moved on to its next line is what ran.
#[test]
fn a_function_that_moves_on_stays_open() {
    let mut time = Drawing::new();
    time.op("main@1 f@3", (0, 1));
    time.op("main@1 f@4", (10, 11));
    let calls = time.calls(50);
    assert_eq!(own_time(&calls, "f"), 11);
    assert_eq!(own_time(&calls, "main"), 0);
}

#[test]
fn operators_without_a_stack_are_not_cut() {
    let mut time = Drawing::new();
    time.sample(10, "main f@3");
    time.op("", (12, 40));
    time.sample(42, "main f@4");
    let expected = [
        call("main", "", 5, 47),
        call("f@3", "main", 5, 40),
        call("f@4", "main", 40, 47),
    ];
    assert_eq!(time.calls(100), expected);
}

proptest! {
    /// Calls nest with each other and with scopes, whatever is known.
    #[test]
    fn calls_nest(
        spans in proptest::collection::vec((0_u64..50, 1_u64..8, 0_usize..6, any::<bool>()), 0..12),
        moments in proptest::collection::vec((0_u64..120, 0_usize..6), 0..12),
    ) {
        const STACKS: [&str; 6] = ["a", "a b", "a b c", "a d", "e", "a b d"];
        let mut time = Drawing::new();
        // Scopes one after the other, each with one inside.
        let mut now = 0;
        for (gap, length, stack, is_range) in spans {
            now += gap % 5;
            let end = now + length;
            let kind = if is_range { Category::Annotation } else { Category::Operator };
            time.scope(kind, STACKS[stack], (now, end));
            if length > 2 {
                time.op(STACKS[gap as usize % 6], (now + 1, end - 1));
            }
            now = end;
        }
        let mut moments = moments;
        moments.sort_unstable();
        for (moment, stack) in moments {
            time.sample(moment, STACKS[stack]);
        }
        add_to(&mut time.part, vec![(time.thread, time.samples)], millis(200));
        let events = time.part.events();
        for (index, a) in events.iter().enumerate() {
            for b in &events[index + 1..] {
                let is_apart = a.end() <= b.start || b.end() <= a.start;
                let holds = |a: &Event, b: &Event| a.start <= b.start && b.end() <= a.end();
                prop_assert!(is_apart || holds(a, b) || holds(b, a), "{a:?} {b:?}");
            }
        }
    }
}
