use mindprof_model::{DeviceKind, Event, Part, ScopeKind, StringTable, Thread, ThreadId};

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
        let mut drawing = Self { part, thread };
        // What comes first was running when the recording began.
        let mut first = drawing.event(Category::Operator, "start", &[], (0, 0));
        first.start = Nanos::ZERO;
        drawing.part.add_event(first);
        drawing
    }

    fn event(&mut self, category: Category, name: &str, stack: &[&str], span: (u64, u64)) -> Event {
        let name = self.part.strings.intern(name);
        let (start, duration) = (Nanos(span.0 + 1), Nanos(span.1 - span.0));
        let mut event = Event::new(category, name, self.thread, start, duration);
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
        let own = OwnCode::of(&self.part.metadata, &[]);
        self.functions_of(&own)
    }

    fn functions_of(self, own: &OwnCode) -> Functions {
        let analysis = Analysis::build(self.part.into_profile().expect("ids are in range"));
        Functions::build(&analysis, &Work::of(&analysis), own)
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
        (Some(3), Some(1), Some(4))
    );
    // The operator in line 20 of the library and the code of the function there are one thing.
    assert_eq!(mostly(row), Some(("nn.linear.forward", 40)));
    assert_eq!(mostly(&found.functions[1]), None);
    assert_eq!((found.total.cpu, found.outside.cpu), (Nanos(100), Nanos(0)));
    assert!(found.has_stacks && found.elsewhere.is_empty());
}

fn mostly(row: &FunctionCost) -> Option<(&str, u64)> {
    let mostly = row.mostly.as_ref();
    mostly.map(|called| (called.name.as_str(), called.time.0))
}

fn lines(rows: &[LineCost]) -> Vec<(u32, bool, u64)> {
    let rows = rows.iter();
    rows.map(|row| (row.line, row.is_definition, row.own.cpu.0))
        .collect()
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

// Operators that make no backward node carry the number of the next one.
//
// __getitem__    |select|                                  0..5, sequence 5
// loss                     |conv|                          10..20, sequence 5
// step                                |ConvBackward|       30..60, sequence 5
#[test]
fn backward_work_is_not_blamed_on_earlier_operators_of_its_number() {
    let mut time = Drawing::new();
    let (data, loss) = ("data.py(30): __getitem__", "train.py(2): loss");
    for (name, stack, span) in [
        ("aten::select", data, (0, 5)),
        ("aten::conv2d", loss, (10, 20)),
        ("ConvolutionBackward0", "train.py(7): step", (30, 60)),
    ] {
        let mut event = time.event(Category::Operator, name, &[stack], span);
        event.set_sequence(Some(5));
        if name.ends_with("Backward0") {
            event.scope = ScopeKind::Backward;
        }
        time.part.add_event(event);
    }
    let found = time.functions();
    assert_eq!(
        costs(&found.functions),
        [("loss", 40, 40), ("__getitem__", 5, 5)]
    );
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

// A trace of torch's names functions by their definitions in stacks too, so that no line is known.
#[test]
fn the_line_of_a_definition_is_not_taken_for_the_hottest_one() {
    let mut time = Drawing::new();
    time.call("train.py(3): step", &[], (0, 10));
    time.op("aten::mm", &["train.py(3): step"], (2, 8));
    let found = time.functions();
    assert_eq!(
        (found.functions[0].line, found.functions[0].hottest_line),
        (Some(3), None)
    );
    assert_eq!(lines(&found.lines), [(3, true, 10)]);
}

// metrics      |-----------|   0..20, calls itself nothing
//   <listcomp>   |------|      5..15
//     aten::item   |--|        8..11
#[test]
fn comprehensions_belong_to_the_function_around_them() {
    let mut time = Drawing::new();
    let (inner, outer) = ("train.py(5): <listcomp>", "train.py(5): metrics");
    time.call("train.py(4): metrics", &[], (0, 20));
    time.call(inner, &[outer], (5, 15));
    time.op("aten::item", &[outer, inner], (8, 11));
    let found = time.functions();
    assert_eq!(costs(&found.functions), [("metrics", 20, 20)]);
    assert_eq!(found.functions[0].calls, Some(1));
    // Line 5 has the comprehension, line 4 the rest.
    assert_eq!(lines(&found.lines), [(4, true, 10), (5, false, 10)]);
}

// wrapper (torch)   |-------------|   0..50
//   Adam.step         |---------|     5..45
#[test]
fn functions_that_pass_calls_on_are_not_what_is_called() {
    let mut time = Drawing::new();
    let line = "train.py(9): main";
    let (wrapper, adam) = (
        "torch/optim/optimizer.py(5): wrapper",
        "torch/optim/adam.py(7): step",
    );
    time.call(wrapper, &[line], (0, 50));
    time.call(adam, &[line, wrapper], (5, 45));
    time.op("aten::mul", &[line, wrapper, adam], (10, 30));
    let found = time.functions();
    assert_eq!(mostly(&found.functions[0]), Some(("optim.adam.step", 40)));
}

// A sampled recording: slices of Python code, named with the line that ran.
//
// main, line 9    |---------------------------------|   0..100
//   f, line 14      |-------|                           10..40
//   f, line 15              |---------------|           40..90
//     f, line 14                |------|                50..70, called by itself
//       aten::mm                  |--|                  55..65
fn sampled() -> Drawing {
    let mut time = Drawing::new();
    let sampling = mindprof_model::Sampling {
        interval_us: 0,
        samples: 64,
        main_samples: 16,
        dropped: 0,
    };
    sampling.write(&mut time.part.metadata);
    let (main, first, second) = ("train.py(9): main", "train.py(14): f", "train.py(15): f");
    time.call(main, &[], (0, 100));
    time.call(first, &[main], (10, 40));
    time.call(second, &[main], (40, 90));
    time.call(first, &[main, second], (50, 70));
    time.op("aten::mm", &[main, second, first], (55, 65));
    time
}

#[test]
fn sampled_slices_count_at_their_own_lines() {
    let found = sampled().functions();
    // Of 80, the inner call of `f` is 20, which count once.
    assert_eq!(costs(&found.functions), [("f", 80, 80), ("main", 20, 100)]);
    let row = &found.functions[0];
    assert_eq!(
        (row.line, row.calls, row.hottest_line),
        (None, None, Some(14))
    );
    assert_eq!(
        lines(&found.lines),
        [(14, false, 50), (15, false, 30), (9, false, 20)]
    );
    let totals: Vec<u64> = found.lines.iter().map(|row| row.total.cpu.0).collect();
    assert_eq!(totals, [50, 50, 100]);
    assert!(found.has_stacks && found.sampling.is_some());
}

#[test]
fn only_sampled_time_has_an_error() {
    let found = sampled().functions();
    let error = |share: f64| (share * (1.0 - share) / 16.0).sqrt();
    let rows = found.functions.iter();
    let errors: Vec<f64> = rows.filter_map(|row| row.share_error).collect();
    // 70 of the 80 of `f` are Python code; the operator is measured.
    for (found, share) in errors.iter().zip([0.7, 0.2]) {
        assert!((found - error(share)).abs() < 1e-12);
    }
    // Of the lines, line 14 has the largest error: 40 of its 50 are Python code.
    let largest = found.share_error().unwrap();
    assert!((largest - 2.0 * error(0.4)).abs() < 1e-12);
}

#[test]
fn the_first_process_is_the_program_and_its_first_thread_need_not_be_the_main_one() {
    let mut time = Drawing::new();
    time.part = Part::new();
    time.thread = time.part.add_thread(thread(7, 8));
    time.op("aten::mm", &["train.py(2): background"], (0, 10));
    time.thread = time.part.add_thread(thread(9, 9));
    time.op("aten::mm", &["train.py(3): worker"], (0, 10));
    time.thread = time.part.add_thread(thread(7, 7));
    time.op("aten::mm", &["train.py(4): step"], (50, 60));
    let found = time.functions();
    assert_eq!(costs(&found.functions), [("step", 10, 10)]);
    assert_eq!(costs(&found.elsewhere).len(), 2);
}

// main, at line 38    |----------|   0..100, began earlier
//   step                |----|       10..50
#[test]
fn a_call_that_ran_before_the_recording_tells_no_definition() {
    let mut time = Drawing::new();
    time.part = Part::new();
    time.thread = time.part.add_thread(thread(7, 7));
    time.call("train.py(38): main", &[], (0, 100));
    time.op("aten::mm", &["train.py(40): main"], (5, 10));
    time.call("train.py(3): step", &["train.py(40): main"], (10, 50));
    let found = time.functions();
    let rows: Vec<_> = found
        .functions
        .iter()
        .map(|row| (row.line, row.hottest_line))
        .collect();
    assert_eq!(rows, [(None, Some(38)), (Some(3), None)]);
}

#[test]
fn switching_a_profiler_is_no_cost_of_the_program() {
    let mut time = Drawing::new();
    let line = "train.py(9): main";
    time.call("train.py(2): main", &[], (0, 100));
    time.call("torch/profiler/profiler.py(5): step", &[line], (10, 70));
    time.call(
        "train.py(5): save",
        &[line, "torch/profiler/profiler.py(7): step"],
        (20, 30),
    );
    let found = time.functions();
    assert_eq!(costs(&found.functions), [("main", 40, 40)]);
    assert_eq!(found.total.cpu, Nanos(40));
}

#[test]
fn the_end_of_workers_is_no_cost_of_a_program_that_is_run() {
    let drawn = || {
        let mut time = Drawing::new();
        let end = "torch/utils/data/dataloader.py(1656): _shutdown_workers";
        time.call("train.py(2): main", &[], (0, 100));
        time.call(end, &["train.py(9): main"], (10, 70));
        time.part.into_profile().expect("ids are in range")
    };
    let costs = |work: &Work| {
        let analysis = Analysis::build(drawn());
        let found = Functions::build(&analysis, work, &OwnCode::default());
        (found.total.cpu, found.functions[0].own.cpu)
    };
    assert_eq!(costs(&Work::all()), (Nanos(100), Nanos(100)));
    let run = Work::without(crate::side_ranges::SideRanges::default());
    assert_eq!(costs(&run), (Nanos(40), Nanos(40)));
}

#[test]
fn known_functions_tell_methods_of_one_name_apart() {
    let drawn = || {
        let mut time = Drawing::new();
        let net = "train.py(9): forward";
        time.op("aten::mm", &[net, "train.py(4): forward"], (0, 60));
        time.op("aten::add", &[net], (60, 70));
        time.op("aten::mul", &[net, "train.py(9): <listcomp>"], (70, 80));
        time
    };
    let listed = r#"{"train.py":[[2,5,"Block.forward"],[8,20,"Net.forward"]]}"#;
    let expected = [("Block.forward", 60, 60), ("Net.forward", 20, 80)];
    let mut read = drawn();
    read.part
        .metadata
        .set(crate::source_files::FUNCTIONS_KEY, listed);
    // A recording that has just ended does not list them yet.
    let known = SourceFiles::read(&read.part.metadata);
    let recorded = drawn().functions_of(&OwnCode::default().with_functions(known));
    assert_eq!(costs(&recorded.functions), expected);
    assert_eq!(costs(&read.functions().functions), expected);
}

#[test]
fn a_file_is_found_by_its_path_or_the_end_of_it() {
    let files = ["util.py", "a/util.py", "b/util.py", "c/train.py"];
    for (wanted, found) in [
        ("a/util.py", &["a/util.py"][..]),
        ("util.py", &["util.py"]),
        ("/home/me/b/util.py", &["b/util.py"]),
        ("train.py", &["c/train.py"]),
        ("rain.py", &[]),
        ("/home/me/util.py", &["util.py"]),
    ] {
        assert_eq!(matching(&files, wanted), found, "{wanted}");
    }
    assert_eq!(matching(&files[1..], "util.py"), ["a/util.py", "b/util.py"]);
}
