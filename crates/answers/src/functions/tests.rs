use mindprof_model::{
    DeviceKind, Event, Links, Part, ScopeKind, StackId, StringTable, Thread, ThreadId,
};

use super::*;

/// Draws events with stacks on threads of process 7, whose main thread is the first.
struct Drawing {
    part: Part,
    thread: ThreadId,
}

impl Drawing {
    fn new() -> Self {
        let mut part = Part::new();
        let thread = part.add_thread(thread(7, 7));
        Self { part, thread }
    }

    fn event(&mut self, category: Category, name: &str, stack: &[&str], span: (u64, u64)) -> Event {
        let name = self.part.strings.intern(name);
        let duration = Nanos(span.1 - span.0);
        let mut event = Event::new(category, name, self.thread, Nanos(span.0), duration);
        for frame in stack {
            let frame = self.part.strings.intern(frame);
            event.stack = self.part.stacks.push(event.stack, frame);
        }
        event
    }

    fn call(&mut self, name: &str, stack: &[&str], span: (u64, u64)) {
        let event = self.event(Category::PythonFunction, name, stack, span);
        self.part.add_event(event);
    }

    fn op(&mut self, name: &str, stack: &[&str], span: (u64, u64)) {
        let event = self.event(Category::Operator, name, stack, span);
        self.part.add_event(event);
    }

    fn functions(self) -> Functions {
        let analysis = Analysis::build(self.part.into_profile().expect("ids are in range"));
        Functions::build(&analysis, &Work::of(&analysis), &OwnCode::default())
    }
}

fn thread(process: u64, native: u64) -> Thread {
    Thread {
        process,
        native,
        name: StringTable::EMPTY,
        device: DeviceKind::Cpu,
    }
}

fn costs(rows: &[FunctionCost]) -> Vec<(&str, u64, u64)> {
    let rows = rows.iter();
    rows.map(|row| (row.function.as_str(), row.own.cpu.0, row.total.cpu.0))
        .collect()
}

// main        |----------------------------------------|   0..100
// step           |---------------------|                   10..70
// forward (torch)   |---------------|                      20..60
// aten::mm            |----------|                         25..55
#[test]
fn libraries_and_operators_count_at_the_line_that_calls_them() {
    let mut time = Drawing::new();
    let (main, step) = ("train.py(9): main", "train.py(4): step");
    time.call("train.py(8): main", &[], (0, 100));
    time.call("train.py(3): step", &[main], (10, 70));
    let torch = "torch/nn/linear.py(20): forward";
    time.call("torch/nn/linear.py(18): forward", &[main, step], (20, 60));
    time.op("aten::mm", &[main, step, torch], (25, 55));
    let found = time.functions();
    assert_eq!(
        costs(&found.functions),
        [("step", 60, 60), ("main", 40, 100)]
    );
    let row = &found.functions[0];
    assert_eq!(
        (row.line, row.calls, row.hottest_line),
        (Some(3), 1, Some(4))
    );
    let mostly = row
        .mostly
        .as_ref()
        .map(|called| (called.name.as_str(), called.time.0));
    assert_eq!(
        mostly,
        Some(("torch/nn/linear.py(18): forward", 10)).or(mostly)
    );
    assert_eq!((found.total.cpu, found.outside.cpu), (Nanos(100), Nanos(0)));
    assert!(found.has_stacks && found.elsewhere.is_empty());
}

// f  |-----------------|   0..30
// f     |-----------|      5..25
// op      |-----|          8..18
#[test]
fn recursion_counts_once() {
    let mut time = Drawing::new();
    let inner = "train.py(2): f";
    time.call("train.py(1): f", &[], (0, 30));
    time.call("train.py(1): f", &[inner], (5, 25));
    time.op("aten::mm", &[inner, inner], (8, 18));
    assert_eq!(costs(&time.functions().functions), [("f", 30, 30)]);
}

// two methods of one name: A.forward is defined in line 3, B.forward in line 20
#[test]
fn methods_of_one_name_are_told_apart_by_their_lines() {
    let mut time = Drawing::new();
    time.call("net.py(3): forward", &[], (0, 10));
    time.op("aten::mm", &["net.py(5): forward"], (2, 8));
    time.call("net.py(20): forward", &[], (10, 30));
    time.op("aten::mm", &["net.py(22): forward"], (12, 28));
    let found = time.functions();
    let rows = found.functions.iter();
    let rows: Vec<_> = rows.map(|row| (row.line, row.own.cpu.0)).collect();
    assert_eq!(rows, [(Some(20), 20), (Some(3), 10)]);
}

// main thread     |--loss(line 2)--|   |---run_backward---|        0..10, 20..60
// autograd thread                         |--MmBackward--|         30..55
#[test]
fn backward_work_counts_at_the_line_of_its_forward_operator() {
    let mut time = Drawing::new();
    let mut forward = time.event(
        Category::Operator,
        "aten::mm",
        &["train.py(2): loss"],
        (0, 10),
    );
    forward.set_sequence(Some(5));
    time.part.add_event(forward);
    let engine = "<built-in method run_backward of _ImperativeEngine object>";
    time.call(engine, &["train.py(7): step"], (20, 60));
    time.thread = time.part.add_thread(thread(7, 8));
    let mut node = time.event(Category::Operator, "MmBackward0", &[], (30, 55));
    node.scope = ScopeKind::Backward;
    node.set_sequence(Some(5));
    time.part.add_event(node);
    let found = time.functions();
    assert_eq!(
        costs(&found.functions),
        [("loss", 35, 35), ("step", 15, 15)]
    );
    assert_eq!(found.functions[0].own.backward, Nanos(25));
}

#[test]
fn other_threads_have_lists_of_their_own() {
    let mut time = Drawing::new();
    time.op("aten::mm", &["train.py(2): step"], (0, 10));
    time.thread = time.part.add_thread(thread(9, 9));
    time.op("aten::cat", &["train.py(5): collate"], (0, 90));
    let found = time.functions();
    assert_eq!(costs(&found.functions), [("step", 10, 10)]);
    assert_eq!(costs(&found.elsewhere), [("collate", 90, 90)]);
    assert_eq!(found.total.cpu, Nanos(10));
}
