//! The outermost names of paths: which process and which thread, where there are several.

use std::borrow::Cow;

use mindprof_model::{DeviceKind, Profile, StackId, StackTable, StringTable, Thread};
use rustc_hash::FxHashMap;

/// What a thread is called that has the number of its process.
const MAIN: &str = "main thread";

/// Puts the roots of all host threads into `paths`, and their names into `strings`. Returns the
/// root of each thread: none where it is the only one, and none of what devices did, which counts
/// where the host asked for it.
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
    let host = |thread: &&Thread| thread.device == DeviceKind::Cpu;
    let mut threads_of: FxHashMap<u64, Vec<&Thread>> = FxHashMap::default();
    for thread in profile.threads().iter().filter(host) {
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

/// Returns the name of a process: that of its main thread.
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

/// Returns a name, with the number if others have the name too: without one, what two runs spent
/// can be compared.
fn told_apart(name: &str, number: u64, same: usize) -> String {
    if same > 1 {
        format!("{name} {number}")
    } else {
        name.to_owned()
    }
}
