//! The tracks of a trace: one for each thread, and spare ones for events that cross others of their
//! thread.

use mindprof_analyze::Lanes;
use mindprof_model::{Category, DeviceKind, Event, EventId, Nanos, Profile, Thread, ThreadId};

use super::Writer;
use crate::chrome::category::DEVICE_ANNOTATION_MARGIN;
use crate::chrome::text::json_string;

/// Where a device's processes are put below those of the host.
const DEVICE_SORT_INDEX: i64 = 5_000_000;

/// The largest number that every reader of JSON takes exactly.
const LARGEST_EXACT: u64 = (1 << 53) - 1;

/// Where each event is drawn.
pub(super) struct Tracks {
    lanes: Lanes,
    /// What an event says of its track, by thread, and by spare lane.
    of_threads: Vec<String>,
    of_spare: Vec<String>,
    spare_natives: Vec<u64>,
}

impl Tracks {
    pub(super) fn build(profile: &Profile) -> Self {
        let lanes = Lanes::build_with(profile, drawn);
        let threads = profile.threads();
        let spare_natives = free_natives(threads, lanes.spare().len());
        let of_spare = lanes.spare().iter().zip(&spare_natives);
        Self {
            of_threads: threads
                .iter()
                .map(|thread| place(thread.process, thread.native))
                .collect(),
            of_spare: of_spare
                .map(|(lane, &native)| place(threads[lane.thread.index()].process, native))
                .collect(),
            lanes,
            spare_natives,
        }
    }

    /// Returns what an event says of its track.
    pub(super) fn of_event(&self, id: EventId, event: &Event) -> &str {
        match self.lanes.moved_to(id) {
            Some(lane) => &self.of_spare[lane],
            None => &self.of_threads[event.thread.index()],
        }
    }

    /// Returns what is said of a thread's own track.
    pub(super) fn of_thread(&self, thread: ThreadId) -> &str {
        &self.of_threads[thread.index()]
    }

    /// Returns the spare tracks as JSON, for who reads them back: each with the thread that it
    /// belongs to.
    pub(super) fn spare_json(&self, profile: &Profile) -> String {
        let spare = self.lanes.spare().iter().zip(&self.spare_natives);
        let items: Vec<String> = spare
            .map(|(lane, &native)| {
                let thread = profile.threads()[lane.thread.index()];
                let (process, of) = (thread.process as i64, thread.native as i64);
                format!("{{\"pid\":{process},\"tid\":{native},\"of\":{of}}}")
            })
            .collect();
        format!("[{}]", items.join(","))
    }
}

/// Returns the interval that a trace shows for an event, on an axis that begins one margin before
/// time zero: a range of a device is drawn wider than it was on both sides.
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

/// Returns numbers that no thread has.
fn free_natives(threads: &[Thread], count: usize) -> Vec<u64> {
    let is_free = |native: &u64| threads.iter().all(|thread| thread.native != *native);
    let small = threads.iter().map(|thread| thread.native);
    let largest = small.filter(|&native| native < LARGEST_EXACT / 2).max();
    let from = largest.unwrap_or(0) + 1;
    (from..).filter(is_free).take(count).collect()
}

fn place(process: u64, native: u64) -> String {
    let (process, native) = (process as i64, native as i64);
    format!(",\"pid\":{process},\"tid\":{native},\"ts\":")
}

impl Writer<'_> {
    /// Names each process when it is first met, each thread, and the spare tracks.
    pub(super) fn push_tracks(&mut self) {
        let profile = self.profile;
        let mut processes: Vec<(u64, DeviceKind)> = Vec::new();
        for thread in profile.threads() {
            if !processes.contains(&(thread.process, thread.device)) {
                processes.push((thread.process, thread.device));
                self.push_process(thread);
            }
            self.push_track(thread, &shown_name(profile, thread), thread.native);
        }
        for index in 0..self.tracks.spare_natives.len() {
            let lane = self.tracks.lanes.spare()[index];
            let thread = profile.threads()[lane.thread.index()];
            let name = shown_name(profile, &thread);
            let name = format!("{}, overlapping {}", name.trim_end(), lane.number);
            let native = self.tracks.spare_natives[index];
            self.push_track(&Thread { native, ..thread }, &name, thread.native);
        }
    }

    fn push_track(&mut self, thread: &Thread, name: &str, sort_index: u64) {
        let name = format!("\"name\":{}", json_string(name));
        self.push_fact("thread_name", thread, &name);
        let sort_index = format!("\"sort_index\":{}", sort_index as i64);
        self.push_fact("thread_sort_index", thread, &sort_index);
    }

    /// Names a process after the first of its threads.
    fn push_process(&mut self, thread: &Thread) {
        let process = thread.process as i64;
        let (label, sort_index) = if thread.device == DeviceKind::Cpu {
            ("CPU".into(), process)
        } else {
            let sort_index = process.saturating_add(DEVICE_SORT_INDEX);
            (format!("GPU {process}"), sort_index)
        };
        let name = self.profile.strings().text(thread.name);
        let name = json_string(if name.is_empty() { "process" } else { name });
        let main = Thread {
            native: 0,
            ..*thread
        };
        self.push_fact("process_name", &main, &format!("\"name\":{name}"));
        self.push_fact("process_labels", &main, &format!("\"labels\":\"{label}\""));
        let sort_index = format!("\"sort_index\":{sort_index}");
        self.push_fact("process_sort_index", &main, &sort_index);
    }

    /// Writes a fact about a process or thread.
    fn push_fact(&mut self, fact: &str, thread: &Thread, argument: &str) {
        let place = place(thread.process, thread.native);
        self.text
            .push(&format!(",\n{{\"ph\":\"M\",\"name\":\"{fact}\"{place}"));
        self.push_time(Nanos::ZERO);
        self.text.push(&format!(",\"args\":{{{argument}}}}}"));
    }
}

fn shown_name(profile: &Profile, thread: &Thread) -> String {
    let name = profile.strings().text(thread.name);
    let native = thread.native as i64;
    match (thread.device == DeviceKind::Cpu, name.is_empty()) {
        (true, true) => format!("thread {native}"),
        (true, false) => format!("thread {native} ({name})"),
        (false, true) => format!("stream {native} "),
        (false, false) => name.into(),
    }
}
