//! The events of a trace that name its processes and threads.

use mindprof_model::{DeviceKind, Nanos, Thread};

use super::Writer;
use crate::chrome::text::json_string;

/// Where a device's processes are put below those of the host.
const DEVICE_SORT_INDEX: i64 = 5_000_000;

impl Writer<'_> {
    /// Names each process when it is first met, and each thread.
    pub(super) fn push_threads(&mut self) {
        let mut processes: Vec<(u64, DeviceKind)> = Vec::new();
        for thread in self.profile.threads() {
            if !processes.contains(&(thread.process, thread.device)) {
                processes.push((thread.process, thread.device));
                self.push_process(thread);
            }
            let name = json_string(&self.shown_thread_name(thread));
            self.push_fact("thread_name", thread, &format!("\"name\":{name}"));
            let sort_index = format!("\"sort_index\":{}", thread.native as i64);
            self.push_fact("thread_sort_index", thread, &sort_index);
        }
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

    fn shown_thread_name(&self, thread: &Thread) -> String {
        let name = self.profile.strings().text(thread.name);
        let native = thread.native as i64;
        match (thread.device == DeviceKind::Cpu, name.is_empty()) {
            (true, true) => format!("thread {native}"),
            (true, false) => format!("thread {native} ({name})"),
            (false, true) => format!("stream {native} "),
            (false, false) => name.into(),
        }
    }

    /// Writes a fact about a process or thread.
    fn push_fact(&mut self, fact: &str, thread: &Thread, argument: &str) {
        self.begin_event();
        self.push(&format!("{{\"ph\":\"M\",\"name\":\"{fact}\",\"ts\":"));
        self.push_time(Nanos::ZERO);
        self.push_thread(thread);
        self.push(&format!(",\"args\":{{{argument}}}}}"));
    }
}
