//! The outermost names of paths: the process and the thread, if there are several.

use std::borrow::Cow;

use mindprof_model::{DeviceKind, Profile, StackId, StackTable, StringTable, Thread};
use rustc_hash::FxHashMap;

/// The name of the thread whose id is that of its process.
const MAIN: &str = "main thread";

/// Adds the roots of all CPU threads to `paths` and their names to `strings`, and returns the root
/// of each thread. The root is empty if there is only one thread, and for streams of devices, whose
/// work counts where it was launched.
///
/// ```text
/// python ─────────────┬─ main thread ── train.py(7): main ── aten::linear
///                     └─ QueueFeederThread ── ...
/// DataLoader worker 0 ── data.py(3): __getitem__ ── aten::randn
/// ```
pub(super) fn roots(
    profile: &Profile,
    strings: &mut Cow<'_, StringTable>,
    paths: &mut StackTable,
) -> Vec<StackId> {
    let is_cpu = |thread: &&Thread| thread.device == DeviceKind::Cpu;
    let mut threads_of: FxHashMap<u64, Vec<&Thread>> = FxHashMap::default();
    for thread in profile.threads().iter().filter(is_cpu) {
        threads_of.entry(thread.process).or_default().push(thread);
    }
    let process_names: FxHashMap<u64, &str> = threads_of
        .iter()
        .map(|(&process, threads)| (process, process_name(profile, process, threads)))
        .collect();
    let mut push = |caller: StackId, text: String| {
        let frame = strings.to_mut().intern(&text);
        paths.push(caller, frame)
    };
    let root = |thread: &Thread| {
        let mut root = StackId::NONE;
        if thread.device != DeviceKind::Cpu {
            return root;
        }
        if process_names.len() > 1 {
            let name = process_names[&thread.process];
            let same = process_names.values().filter(|other| **other == name);
            root = push(root, told_apart(name, thread.process, same.count()));
        }
        let siblings = &threads_of[&thread.process];
        if siblings.len() > 1 {
            let name = thread_name(profile, thread);
            let same = siblings.iter().map(|other| thread_name(profile, other));
            let same = same.filter(|other| *other == name).count();
            root = push(root, told_apart(name, thread.native, same));
        }
        root
    };
    profile.threads().iter().map(root).collect()
}

/// Returns the name of a process, which is that of its main thread.
fn process_name<'a>(profile: &'a Profile, process: u64, threads: &[&Thread]) -> &'a str {
    let mut main = threads.iter().filter(|thread| thread.native == process);
    let name = main
        .next()
        .map(|thread| profile.strings().text(thread.name));
    name.filter(|name| !name.is_empty()).unwrap_or("process")
}

fn thread_name<'a>(profile: &'a Profile, thread: &Thread) -> &'a str {
    if thread.native == thread.process {
        return MAIN;
    }
    let name = profile.strings().text(thread.name);
    if name.is_empty() { "thread" } else { name }
}

/// Returns a name, followed by the number if others have the same name. Numbers differ between runs,
/// so names without them keep the paths of two runs comparable.
fn told_apart(name: &str, number: u64, same: usize) -> String {
    if same > 1 {
        format!("{name} {number}")
    } else {
        name.to_owned()
    }
}
