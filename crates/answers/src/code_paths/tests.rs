use mindprof_model::{Category, DeviceKind, Event, Part, StackId, StringTable, Thread, ThreadId};

use super::*;
use crate::charges::AllCharges;
use crate::source_files::{SourceFile, SourceFunction};
use crate::work::Work;

fn part() -> (Part, ThreadId) {
    let mut part = Part::new();
    let thread = part.add_thread(Thread {
        process: 1,
        native: 1,
        name: StringTable::EMPTY,
        device: DeviceKind::Cpu,
    });
    (part, thread)
}

fn operator(part: &mut Part, thread: ThreadId, name: &str, start: u64, frames: &[&str]) {
    let mut stack = StackId::NONE;
    for frame in frames {
        let frame = part.strings.intern(frame);
        stack = part.stacks.push(stack, frame);
    }
    let name = part.strings.intern(name);
    let mut event = Event::new(Category::Operator, name, thread, Nanos(start), Nanos(10));
    event.stack = stack;
    part.add_event(event);
}

fn paths(part: Part, sources: &SourceFiles) -> CodePaths {
    let analysis = Analysis::build(part.into_profile().unwrap());
    let charges = AllCharges::build(&analysis, &Work::all());
    CodePaths::build(&analysis, &charges.main, &OwnCode::default(), sources)
}

fn shown(paths: &CodePaths) -> Vec<(usize, &str, u32, u64, u64)> {
    let paths = paths.paths.iter();
    paths
        .map(|path| {
            (
                path.depth,
                path.function.as_str(),
                path.line,
                path.own.0,
                path.total.0,
            )
        })
        .collect()
}

#[test]
fn a_function_is_a_path_for_each_caller() {
    let (mut part, thread) = part();
    let forward = "train.py(5): forward";
    let linear = "torch/nn/modules/linear.py(20): forward";
    for start in [0, 10, 20] {
        let frames = [
            "train.py(30): main",
            "train.py(12): evaluate",
            forward,
            linear,
        ];
        operator(&mut part, thread, "aten::addmm", start, &frames);
    }
    operator(
        &mut part,
        thread,
        "aten::addmm",
        30,
        &["train.py(31): main", forward, linear],
    );
    let paths = paths(part, &SourceFiles::default());
    let expected = [
        (0, "main", 30, 0, 40),
        (1, "evaluate", 12, 0, 30),
        (2, "forward", 5, 30, 30),
        (1, "forward", 5, 10, 10),
    ];
    assert_eq!(shown(&paths), expected);
    assert_eq!(paths.caller(2), Some(1));
    assert_eq!(
        (paths.paths[2].own_line, paths.paths[2].called_at),
        (5, Some(12))
    );
    assert_eq!(
        paths.paths[2].mostly.as_ref().unwrap().name,
        "nn.modules.linear.forward"
    );
}

#[test]
fn sources_tell_methods_of_one_name_apart() {
    let (mut part, thread) = part();
    let frames = ["train.py(25): forward", "train.py(8): forward"];
    operator(&mut part, thread, "aten::mm", 0, &frames);
    let function = |first, last, name: &str| SourceFunction {
        first,
        last,
        name: name.into(),
    };
    let sources = SourceFiles::new(vec![SourceFile {
        file: "train.py".into(),
        functions: vec![
            function(7, 10, "Block.forward"),
            function(20, 30, "Net.forward"),
        ],
        lines: Vec::new(),
    }]);
    let paths = paths(part, &sources);
    let expected = [
        (0, "Net.forward", 25, 0, 10),
        (1, "Block.forward", 8, 10, 10),
    ];
    assert_eq!(shown(&paths), expected);
}

// Recorded calls have the lines of definitions, so that they need no sources.
#[test]
fn recorded_calls_tell_methods_of_one_name_apart() {
    let (mut part, thread) = part();
    for (start, forward) in [(0, "train.py(7): forward"), (30, "train.py(20): forward")] {
        let name = part.strings.intern(forward);
        let call = Event::new(
            Category::PythonFunction,
            name,
            thread,
            Nanos(start),
            Nanos(20),
        );
        part.add_event(call);
        operator(&mut part, thread, "aten::mm", start + 5, &[forward]);
    }
    let paths = paths(part, &SourceFiles::default());
    let expected = [(0, "forward", 7, 20, 20), (0, "forward", 20, 20, 20)];
    let mut shown = shown(&paths);
    shown.sort_unstable();
    assert_eq!(shown, expected);
}

// A sample that lost its outer frames begins with `train`.
#[test]
fn samples_without_outer_frames_join_the_function_with_its_callers() {
    let recorded = |is_sampled, lost: &[&str]| {
        let (mut part, thread) = part();
        if is_sampled {
            let sampling = mindprof_model::Sampling {
                interval_us: 10_000,
                samples: 3,
                main_samples: 3,
                dropped: 0,
            };
            sampling.write(&mut part.metadata);
        }
        let main = "train.py(30): <module>";
        let train = "train.py(9): train";
        operator(&mut part, thread, "aten::mm", 0, lost);
        operator(&mut part, thread, "aten::mm", 10, &[main, train]);
        operator(
            &mut part,
            thread,
            "aten::mm",
            20,
            &[main, train, "train.py(2): loss"],
        );
        let paths = paths(part, &SourceFiles::default());
        let shown = shown(&paths).into_iter();
        let shown: Vec<_> = shown.map(|row| (row.0, row.1.to_string(), row.3)).collect();
        (shown, paths.culprit().unwrap().time.0)
    };
    let row = |depth, name: &str, own| (depth, name.to_string(), own);
    let joined = [
        row(0, "<module>", 0),
        row(1, "train", 20),
        row(2, "loss", 10),
    ];
    let lost = ["train.py(9): train"];
    assert_eq!(recorded(true, &lost), (joined.to_vec(), 20));
    // Inner functions come along.
    let joined = [
        row(0, "<module>", 0),
        row(1, "train", 10),
        row(2, "loss", 20),
    ];
    let lost = ["train.py(9): train", "train.py(2): loss"];
    assert_eq!(recorded(true, &lost), (joined.to_vec(), 20));
    // A recorded call without a caller has none.
    let (shown, _) = recorded(false, &lost);
    assert_eq!(shown.len(), 5);
}
