//! Which paths a picture of a program shows: its own work, apart from imports and from the profiler.

use mindprof_analyze::{Analysis, Folded, PathPart, StackMetric};
use mindprof_model::{Category, EventId, Nanos, Place, StringId, WAITING_FRAME};
use rustc_hash::FxHashSet;

use crate::charges::is_workers_end;
use crate::work::Work;

/// The beginning of the frames in which Python imports a module.
const IMPORTING: &str = "<frozen importlib._bootstrap";

/// The beginning of the files of the profiler itself, and the name of its thread.
const PROFILER: &str = "mindprof/";
const PROFILER_THREAD: &str = "mindprof ";

/// The files in which `mindprof run` prepares a program, and the one in which it runs it.
const LAUNCHER: [&str; 3] = [
    "mindprof/__main__.py",
    "mindprof/_command.py",
    "mindprof/_run/command.py",
];
const PROGRAM: &str = "mindprof/_run/program.py";

/// Frames in which Python runs a program or a module.
const RUNNERS: [&str; 2] = ["<frozen runpy>", "<built-in function exec>"];

/// The name of the thread that a program starts with.
const MAIN: &str = "main thread";

/// Functions in which a thread waits, by file and name; an empty name stands for all.
const WAITS: [(&str, &str); 12] = [
    ("concurrent/futures/thread.py", "_worker"),
    ("multiprocessing/connection.py", ""),
    ("multiprocessing/popen_fork.py", ""),
    ("multiprocessing/queues.py", "get"),
    ("multiprocessing/synchronize.py", ""),
    ("queue.py", "get"),
    ("selectors.py", "select"),
    ("socket.py", "accept"),
    ("subprocess.py", "_try_wait"),
    ("threading.py", "_wait_for_tstate_lock"),
    ("threading.py", "join"),
    ("threading.py", "wait"),
];

/// The paths of a profile in two pictures.
#[derive(Debug)]
pub struct Pictures<'a> {
    /// The work of the program.
    pub work: Folded<'a>,
    /// Its imports.
    pub imports: Folded<'a>,
    /// The time that threads besides the program's main thread waited, which is in neither.
    pub waited: Nanos,
}

impl<'a> Pictures<'a> {
    /// Separates the imports of a program from its work, and takes out the profiler's own frames
    /// and threads, and the waits of other threads than the main one.
    pub fn new(folded: &Folded<'a>, work: &Work) -> Self {
        let side = work.side_ranges();
        let imports: FxHashSet<&str> = side
            .into_iter()
            .flat_map(|side| side.imports.iter().map(String::as_str))
            .collect();
        let steps: FxHashSet<&str> = side
            .into_iter()
            .flat_map(|side| side.steps.iter().map(String::as_str))
            .collect();
        let (work, imports) = folded.parted(|name| {
            let is_import = imports.contains(name) || side.is_some() && name.starts_with(IMPORTING);
            if is_import {
                PathPart::Separate
            } else if steps.contains(name) {
                PathPart::PassedOver
            } else if side.is_some() && is_workers_end(name) {
                PathPart::Dropped
            } else {
                part(name)
            }
        });
        let (work, waited) = without_waits(work);
        let (imports, _) = without_waits(imports);
        Self {
            work: without_lone_root(folded, work),
            imports: without_lone_root(folded, imports),
            waited,
        }
    }
}

/// Folds the Python callers of a program's events: those of its work, or those of its imports.
pub fn folded_callers<'a>(
    analysis: &'a Analysis,
    work: &Work,
    metric: StackMetric,
    wanted: CallersOf,
) -> Folded<'a> {
    let Some(side) = work.side_ranges() else {
        return Folded::of_callers(analysis, metric);
    };
    let imports: FxHashSet<&str> = side.imports.iter().map(String::as_str).collect();
    let profile = analysis.profile();
    let names = profile.strings().iter();
    let is_import: Vec<bool> = names.map(|name| imports.contains(name)).collect();
    let mut imported: Vec<bool> = Vec::with_capacity(profile.events().len());
    // Parents precede their children.
    for (index, event) in profile.events().iter().enumerate() {
        let parent = analysis.tree().parent(EventId::from_index(index));
        let is_range = event.category == Category::Annotation && is_import[event.name.index()];
        imported.push(is_range || parent.is_some_and(|parent| imported[parent.index()]));
    }
    Folded::of_callers_where(analysis, metric, |id| {
        imported[id.index()] == (wanted == CallersOf::Imports)
    })
}

/// The part of a run whose callers are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallersOf {
    /// Everything but imports.
    Work,
    /// The imports.
    Imports,
}

/// Takes out the waits of other threads than the program's main thread. A thread that serves a
/// queue waits nearly all the time, which hides the work beside it.
fn without_waits(folded: Folded<'_>) -> (Folded<'_>, Nanos) {
    let strings = folded.strings();
    let is_wait: Vec<bool> = strings.iter().map(is_wait).collect();
    let is_waiting: Vec<bool> = strings.iter().map(|name| name == WAITING_FRAME).collect();
    let is_built_in: Vec<bool> = strings.iter().map(|name| name.starts_with('<')).collect();
    let is_place: Vec<bool> = strings
        .iter()
        .map(|name| Place::parse(name).is_some())
        .collect();
    let is_main: Vec<bool> = strings.iter().map(|name| name == MAIN).collect();
    let roots = || {
        folded
            .iter()
            .filter_map(|(path, _)| folded.frames(path).first().copied())
    };
    // Of several processes, the program comes before those that it starts.
    let is_one_process = roots().any(|root| is_main[root.index()]);
    let program = roots().next().filter(|_| !is_one_process);
    folded.without(|path| {
        let is_of_main = match path {
            [root, ..] if is_place[root.index()] || is_main[root.index()] => true,
            [root, thread, ..] => {
                let is_named = is_place[thread.index()] || is_main[thread.index()];
                Some(*root) == program && is_named
            }
            [] | [_] => true,
        };
        let mut inner = path
            .iter()
            .rev()
            .skip_while(|name| is_built_in[name.index()]);
        let is_told = path.last().is_some_and(|name| is_waiting[name.index()]);
        !is_of_main && (is_told || inner.next().is_some_and(|name| is_wait[name.index()]))
    })
}

fn is_wait(name: &str) -> bool {
    WAITS.iter().any(|&wait| is_function(name, wait))
}

/// Returns whether a frame is of a function, which an end of its file and its name tell.
fn is_function(frame: &str, (file, function): (&str, &str)) -> bool {
    let Some(place) = Place::parse(frame) else {
        return false;
    };
    let folder = place.file.strip_suffix(file);
    folder.is_some_and(|folder| folder.is_empty() || folder.ends_with('/'))
        && (function.is_empty() || place.function == function)
}

fn part(name: &str) -> PathPart {
    if name.starts_with(PROFILER_THREAD) {
        return PathPart::Dropped;
    }
    if RUNNERS.iter().any(|runner| name.starts_with(runner)) {
        return PathPart::PassedOver;
    }
    match Place::parse(name).map(|place| place.file) {
        Some(PROGRAM) => PathPart::Resumed,
        Some(file) if LAUNCHER.contains(&file) => PathPart::Dropped,
        Some(file) if file.starts_with(PROFILER) => PathPart::PassedOver,
        Some(_) | None => PathPart::Kept,
    }
}

/// Takes out the name of a thread if all other threads of a profile were left out.
fn without_lone_root<'a>(before: &Folded<'a>, after: Folded<'a>) -> Folded<'a> {
    let roots = |folded: &Folded<'_>| -> FxHashSet<StringId> {
        let paths = folded.iter().map(|(path, _)| folded.frames(path));
        paths.filter_map(|frames| frames.first().copied()).collect()
    };
    let (before, left) = (roots(before), roots(&after));
    let Some(&root) = left
        .iter()
        .next()
        .filter(|_| left.len() == 1 && before.len() > 1)
    else {
        return after;
    };
    let name = after.strings().text(root).to_owned();
    if Place::parse(&name).is_some() || !before.contains(&root) {
        return after;
    }
    let is_root = |text: &str| {
        if text == name {
            PathPart::PassedOver
        } else {
            PathPart::Kept
        }
    };
    after.parted(is_root).0
}

#[cfg(test)]
mod tests {
    use mindprof_model::{DeviceKind, Event, Part, StackId, StringTable, Thread, Timeline};

    use super::*;
    use crate::side_ranges::SideRanges;

    #[test]
    fn imports_are_a_picture_of_their_own() {
        let profile = Timeline::draw(|time| {
            let call = Category::PythonFunction;
            time.event(call, "mindprof/_run/command.py(9): run", |time| {
                time.event(call, "<built-in function setattr>", |time| time.idle(50));
                let program = "mindprof/_run/program.py(5): run";
                time.event(call, program, drawn_program);
            });
        });
        let analysis = Analysis::build(profile);
        let work = Work::without(SideRanges::default());
        let folded = Folded::build(&analysis, StackMetric::SelfCpuTime);
        let pictures = Pictures::new(&folded, &work);
        let lines = |folded: &Folded<'_>| -> Vec<(String, u64)> {
            let text = |frame| folded.strings().text(frame).to_owned();
            let path = |path| {
                let frames = folded.frames(path).into_iter();
                frames.map(text).collect::<Vec<_>>()
            };
            let lines = folded.iter();
            lines
                .map(|(at, weight)| (path(at).join(";"), weight.0))
                .collect()
        };
        let expected = [
            ("train.py(1): <module>".to_owned(), 3),
            ("train.py(1): <module>;aten::mm".to_owned(), 3),
        ];
        assert_eq!(lines(&pictures.work), expected);
        let imports = lines(&pictures.imports);
        assert!(
            imports[0].0.ends_with("torch/__init__.py(1): <module>"),
            "{imports:?}"
        );
        assert_eq!((imports.len(), imports[0].1), (1, 7));
    }

    // import torch   |----------|          0..10, called at line 1
    // aten::mm                    |--|     20..23, called at line 5
    #[test]
    fn imports_are_no_callers_of_work() {
        let mut part = Part::from(Timeline::draw(|time| {
            time.annotation("import torch", |time| time.idle(10));
            time.idle(10);
            time.op("aten::mm", 3);
        }));
        let frames = ["train.py(1): <module>", "train.py(5): <module>"];
        let stacks = frames.map(|frame| {
            let frame = part.strings.intern(frame);
            part.stacks.push(StackId::NONE, frame)
        });
        let events: Vec<Event> = part.events().to_vec();
        let mut other = Part::new();
        std::mem::swap(&mut other.strings, &mut part.strings);
        std::mem::swap(&mut other.stacks, &mut part.stacks);
        other.add_thread(part.threads()[0]);
        for (mut event, stack) in events.into_iter().zip(stacks) {
            event.stack = stack;
            other.add_event(event);
        }
        let analysis = Analysis::build(other.into_profile().unwrap());
        let work = Work::without(SideRanges {
            imports: vec!["import torch".into()],
            ..SideRanges::default()
        });
        let metric = StackMetric::SelfCpuTime;
        let total = |wanted| folded_callers(&analysis, &work, metric, wanted).total();
        assert_eq!(total(CallersOf::Work), Nanos(3));
        assert_eq!(total(CallersOf::Imports), Nanos(10));
    }

    #[test]
    fn waits_of_other_threads_are_not_in_the_picture() {
        let mut part = Part::new();
        let name = part.strings.intern("QueueFeederThread");
        let thread = |native, name| Thread {
            process: 1,
            native,
            name,
            device: DeviceKind::Cpu,
        };
        let main = part.add_thread(thread(1, StringTable::EMPTY));
        let other = part.add_thread(thread(2, name));
        for (thread, name, start, duration) in [
            (main, "train.py(1): <module>", 0, 10),
            (main, "threading.py(327): wait", 10, 5),
            (other, "threading.py(327): wait", 0, 90),
            (other, "data.py(3): load", 90, 7),
            (other, "<waiting>", 97, 3),
        ] {
            let name = part.strings.intern(name);
            let call = Category::PythonFunction;
            let event = Event::new(call, name, thread, Nanos(start), Nanos(duration));
            part.add_event(event);
        }
        let analysis = Analysis::build(part.into_profile().unwrap());
        let folded = Folded::build(&analysis, StackMetric::SelfCpuTime);
        let pictures = Pictures::new(&folded, &Work::all());
        assert_eq!(pictures.waited, Nanos(93));
        assert_eq!(pictures.work.total(), Nanos(22));
    }

    fn drawn_program(time: &mut Timeline) {
        let call = Category::PythonFunction;
        time.event(call, "train.py(1): <module>", |time| {
            time.idle(1);
            let find = "<frozen importlib._bootstrap>(9): _find_and_load";
            time.event(call, find, |time| {
                time.event(call, "torch/__init__.py(1): <module>", |time| time.idle(7));
            });
            time.event(call, "mindprof/_run/optimizer_steps.py(5): step", |time| {
                time.idle(2);
                time.op("aten::mm", 3);
            });
        });
    }
}
