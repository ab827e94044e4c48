//! The tracks of a trace: one per thread, and overflow tracks for events that cross others of their
//! thread.

use mindprof_analyze::Lanes;
use mindprof_model::{Category, Event, EventId, Nanos, Profile, Thread, ThreadId};
use rustc_hash::FxHashSet;

use super::Writer;
use crate::chrome::category::DEVICE_ANNOTATION_MARGIN;
use crate::chrome::text::json_string;
use crate::chrome::track_facts::{TrackFacts, facts_of};

/// The largest integer that every JSON parser reads exactly.
const LARGEST_EXACT: u64 = (1 << 53) - 1;

/// The assignment of events to tracks.
pub(super) struct Tracks {
    lanes: Lanes,
    /// The track fields of an event as JSON, by thread and by overflow track.
    of_threads: Vec<String>,
    of_overflow: Vec<String>,
    overflow_natives: Vec<u64>,
    /// The facts about each thread and its process.
    facts: Vec<TrackFacts>,
}

impl Tracks {
    pub(super) fn build(profile: &Profile) -> Self {
        let lanes = Lanes::build_with(profile, drawn);
        let threads = profile.threads();
        let overflow_natives = free_natives(threads, lanes.overflow().len());
        let of_overflow = lanes.overflow().iter().zip(&overflow_natives);
        let facts = facts_of(profile);
        let own = |thread: usize| thread_json(threads[thread].native, &facts[thread]);
        let process = |thread: usize| process_json(threads[thread].process, &facts[thread]);
        Self {
            of_threads: (0..threads.len())
                .map(|thread| place(&process(thread), &own(thread)))
                .collect(),
            of_overflow: of_overflow
                .map(|(lane, &native)| place(&process(lane.thread.index()), &native.to_string()))
                .collect(),
            lanes,
            overflow_natives,
            facts,
        }
    }

    /// Returns the track fields of an event.
    pub(super) fn of_event(&self, id: EventId, event: &Event) -> &str {
        match self.lanes.moved_to(id) {
            Some(lane) => &self.of_overflow[lane],
            None => &self.of_threads[event.thread.index()],
        }
    }

    /// Returns the track fields of a thread's own track.
    pub(super) fn of_thread(&self, thread: ThreadId) -> &str {
        &self.of_threads[thread.index()]
    }

    /// Returns the overflow tracks with their threads as JSON, for our own reader.
    pub(super) fn overflow_json(&self, profile: &Profile) -> String {
        let overflow = self.lanes.overflow().iter().zip(&self.overflow_natives);
        let items: Vec<String> = overflow
            .map(|(lane, &native)| {
                let thread = profile.threads()[lane.thread.index()];
                let facts = &self.facts[lane.thread.index()];
                let process = process_json(thread.process, facts);
                let of = thread_json(thread.native, facts);
                format!("{{\"pid\":{process},\"tid\":{native},\"of\":{of}}}")
            })
            .collect();
        format!("[{}]", items.join(","))
    }
}

/// Returns the interval that a trace shows for an event, on an axis that begins one margin before
/// time zero: device annotations are extended on both sides.
pub(super) fn drawn(event: &Event) -> (Nanos, Nanos) {
    let margin = match event.category {
        Category::DeviceAnnotation => DEVICE_ANNOTATION_MARGIN,
        Category::Operator
        | Category::Annotation
        | Category::PythonFunction
        | Category::Runtime
        | Category::Kernel
        | Category::Other => 0,
    };
    let start = event
        .start
        .0
        .saturating_add(DEVICE_ANNOTATION_MARGIN - margin);
    let length = event.duration.0.saturating_add(2 * margin);
    (Nanos(start), Nanos(start.saturating_add(length)))
}

/// Returns thread numbers that are not in use.
fn free_natives(threads: &[Thread], count: usize) -> Vec<u64> {
    let is_free = |native: &u64| threads.iter().all(|thread| thread.native != *native);
    let small = threads.iter().map(|thread| thread.native);
    let largest = small.filter(|&native| native < LARGEST_EXACT / 2).max();
    let from = largest.unwrap_or(0) + 1;
    (from..).filter(is_free).take(count).collect()
}

fn process_json(number: u64, facts: &TrackFacts) -> String {
    let label = facts.pid.as_deref().map(json_string);
    label.unwrap_or_else(|| (number as i64).to_string())
}

fn thread_json(number: u64, facts: &TrackFacts) -> String {
    let label = facts.tid.as_deref().map(json_string);
    label.unwrap_or_else(|| (number as i64).to_string())
}

fn place(process: &str, thread: &str) -> String {
    format!(",\"pid\":{process},\"tid\":{thread},\"ts\":")
}

impl Writer<'_> {
    /// Writes the names of processes, threads and overflow tracks.
    pub(super) fn push_tracks(&mut self) {
        let threads = self.profile.threads();
        let facts = self.tracks.facts.clone();
        let mut processes: FxHashSet<u64> = FxHashSet::default();
        let mut natives: FxHashSet<(u64, u64)> = FxHashSet::default();
        for (index, thread) in threads.iter().enumerate() {
            if processes.insert(thread.process) {
                let place = place(&process_json(thread.process, &facts[index]), "0");
                self.push_process(&place, &facts[index]);
            }
            if natives.insert((thread.process, thread.native)) {
                let place = self.tracks.of_threads[index].clone();
                self.push_track(&place, &facts[index]);
            }
        }
        for index in 0..self.tracks.overflow_natives.len() {
            let lane = self.tracks.lanes.overflow()[index];
            let mut facts = facts[lane.thread.index()].clone();
            let name = facts.thread_name.unwrap_or_default();
            facts.thread_name = Some(format!("{}, overlapping {}", name.trim_end(), lane.number));
            let place = self.tracks.of_overflow[index].clone();
            self.push_track(&place, &facts);
        }
    }

    fn push_track(&mut self, place: &str, facts: &TrackFacts) {
        if let Some(name) = &facts.thread_name {
            self.push_fact("thread_name", place, "name", &json_string(name));
        }
        if let Some(index) = facts.thread_sort_index {
            self.push_fact("thread_sort_index", place, "sort_index", &index.to_string());
        }
    }

    fn push_process(&mut self, place: &str, facts: &TrackFacts) {
        if let Some(name) = &facts.process_name {
            self.push_fact("process_name", place, "name", &json_string(name));
        }
        if let Some(labels) = &facts.process_labels {
            self.push_fact("process_labels", place, "labels", &json_string(labels));
        }
        if let Some(index) = facts.process_sort_index {
            self.push_fact(
                "process_sort_index",
                place,
                "sort_index",
                &index.to_string(),
            );
        }
    }

    /// Writes a metadata event about a process or a thread.
    fn push_fact(&mut self, fact: &str, place: &str, key: &str, value: &str) {
        self.text
            .push(&format!(",\n{{\"ph\":\"M\",\"name\":\"{fact}\"{place}"));
        self.push_time(Nanos::ZERO);
        self.text
            .push(&format!(",\"args\":{{\"{key}\":{value}}}}}"));
    }
}
