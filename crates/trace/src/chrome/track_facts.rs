//! Names and sort positions of processes and threads: those that a writer derives by itself, and
//! those that are kept because a trace stated something else.

use mindprof_model::{DeviceKind, PassthroughKind, Profile, StringTable, Thread, ThreadId};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// The sort position of a device's process, below those of the CPU.
const DEVICE_SORT_INDEX: i64 = 5_000_000;

/// The facts about a thread and its process that a writer would not derive by itself.
///
/// The reader keeps them as JSON text in the part, and both writers apply them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TrackFacts {
    /// The text that the process has in place of a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pid: Option<String>,
    /// The text that the thread has in place of a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) process_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) process_labels: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) process_sort_index: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thread_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thread_sort_index: Option<i64>,
    /// The rank of the process, if the profile has several.
    #[serde(skip)]
    pub(crate) rank: Option<u32>,
}

impl TrackFacts {
    /// Drops the facts that a writer would derive by itself.
    pub(super) fn forget_found(&mut self, found: &Self) {
        let forget = |said: &mut Option<String>, found: &Option<String>| {
            if said == found {
                *said = None;
            }
        };
        forget(&mut self.process_name, &found.process_name);
        forget(&mut self.process_labels, &found.process_labels);
        forget(&mut self.thread_name, &found.thread_name);
        let forget = |said: &mut Option<i64>, found: &Option<i64>| {
            if said == found {
                *said = None;
            }
        };
        forget(&mut self.process_sort_index, &found.process_sort_index);
        forget(&mut self.thread_sort_index, &found.thread_sort_index);
    }

    /// Fills missing facts from `found`.
    pub(super) fn or(self, found: Self) -> Self {
        Self {
            pid: self.pid.or(found.pid),
            tid: self.tid.or(found.tid),
            process_name: self.process_name.or(found.process_name),
            process_labels: self.process_labels.or(found.process_labels),
            process_sort_index: self.process_sort_index.or(found.process_sort_index),
            thread_name: self.thread_name.or(found.thread_name),
            thread_sort_index: self.thread_sort_index.or(found.thread_sort_index),
            rank: self.rank.or(found.rank),
        }
    }

    /// Puts the rank in front of the names of the process.
    fn with_rank(mut self, rank: u32) -> Self {
        let named = |name: Option<String>| Some(format!("rank {rank}: {}", name?));
        self.process_name = named(self.process_name);
        self.process_labels = named(self.process_labels);
        self.rank = Some(rank);
        self
    }

    /// Parses facts kept as text. Invalid text yields no facts.
    pub(super) fn from_text(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    pub(super) fn to_text(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers are JSON")
    }
}

/// Returns the facts about each thread: those kept in the profile, else those derived.
pub(crate) fn facts_of(profile: &Profile) -> Vec<TrackFacts> {
    let (threads, passthrough) = (profile.threads(), profile.passthrough());
    let found = FoundFacts::new(profile.strings(), threads);
    let of_thread = |index| {
        let kept = passthrough.of(PassthroughKind::Track, index);
        let said = kept.map(|text| TrackFacts::from_text(&passthrough.texts.text(text)));
        let said = said.unwrap_or_default();
        let found = found.of(index, said.tid.as_deref());
        said.or(found)
    };
    let ranks: Vec<Option<u32>> = (0..threads.len())
        .map(|index| profile.rank(ThreadId::from_index(index)))
        .collect();
    let is_job = ranks.windows(2).any(|pair| pair[0] != pair[1]);
    let facts = (0..threads.len()).map(of_thread).zip(ranks);
    let facts = facts.map(|(facts, rank)| match rank.filter(|_| is_job) {
        Some(rank) => facts.with_rank(rank),
        None => facts,
    });
    facts.collect()
}

/// Derives the facts about tracks.
///
/// A device may have the number of a process, and a stream that of a thread; CPU threads take
/// precedence.
pub(super) struct FoundFacts<'a> {
    strings: &'a StringTable,
    threads: &'a [Thread],
    /// The thread that each process is named after: its main thread, or the one with the lowest
    /// number.
    main: FxHashMap<u64, usize>,
    /// The thread that lends its name to all threads with the same numbers.
    first: FxHashMap<(u64, u64), usize>,
}

impl<'a> FoundFacts<'a> {
    pub(super) fn new(strings: &'a StringTable, threads: &'a [Thread]) -> Self {
        let mut main: FxHashMap<_, usize> = FxHashMap::default();
        let mut first: FxHashMap<_, usize> = FxHashMap::default();
        let rank = |index: usize| {
            let thread = &threads[index];
            let is_main = thread.native == thread.process;
            (thread.device.number(), !is_main, thread.native)
        };
        for (index, thread) in threads.iter().enumerate() {
            for place in [
                main.entry(thread.process).or_insert(index),
                first
                    .entry((thread.process, thread.native))
                    .or_insert(index),
            ] {
                if rank(index) < rank(*place) {
                    *place = index;
                }
            }
        }
        Self {
            strings,
            threads,
            main,
            first,
        }
    }

    /// Returns the facts about the thread at `index`, which may have a text in place of its number.
    pub(super) fn of(&self, index: usize, tid: Option<&str>) -> TrackFacts {
        let thread = &self.threads[index];
        let thread = &self.threads[self.first[&(thread.process, thread.native)]];
        let main = &self.threads[self.main[&thread.process]];
        let process = thread.process as i64;
        let (labels, sort_index) = if main.device == DeviceKind::Cpu {
            ("CPU".into(), process)
        } else {
            let sort_index = process.saturating_add(DEVICE_SORT_INDEX);
            (format!("GPU {process}"), sort_index)
        };
        let name = self.strings.text(main.name);
        TrackFacts {
            process_name: Some(if name.is_empty() { "process" } else { name }.into()),
            process_labels: Some(labels),
            process_sort_index: Some(sort_index),
            thread_name: Some(self.thread_name(thread, tid)),
            thread_sort_index: Some(thread.native as i64),
            ..TrackFacts::default()
        }
    }

    fn thread_name(&self, thread: &Thread, tid: Option<&str>) -> String {
        let name = self.strings.text(thread.name);
        let native = thread.native as i64;
        if let Some(tid) = tid {
            return if name.is_empty() { tid } else { name }.into();
        }
        match (thread.device == DeviceKind::Cpu, name.is_empty()) {
            (true, true) => format!("thread {native}"),
            (true, false) => format!("thread {native} ({name})"),
            (false, true) => format!("stream {native} "),
            (false, false) => name.into(),
        }
    }
}
