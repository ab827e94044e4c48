//! The start of a trace: its top-level keys, and the recorded window.

use mindprof_model::{DeviceKind, LossCause, Metadata, Nanos, WINDOW_ACTIVITY};

use super::Writer;
use crate::chrome::category::loss_key;
use crate::chrome::text::{json_string, json_value};

/// Keys that the writer sets itself. User metadata under these names gets the prefix `user_`.
const RESERVED: [&str; 6] = [
    "schemaVersion",
    "displayTimeUnit",
    "baseTimeNanoseconds",
    "traceEvents",
    "traceName",
    "mindprof",
];

/// The time by which the window's end mark follows the end of its span.
const WINDOW_END_MARGIN_NS: u64 = 1000;

/// The sort position of the window's span, below all processes.
const SPANS_SORT_INDEX: u64 = 536_870_912;

impl Writer<'_> {
    /// Writes everything up to the list of events.
    pub(super) fn push_opening(&mut self, facts: &Metadata) {
        self.text.push("{\n\"schemaVersion\":1,\n");
        if facts.get("deviceProperties").is_none() {
            self.text.push("\"deviceProperties\":[],\n");
        }
        for (key, value) in facts.iter() {
            let prefix = if RESERVED.contains(&key) { "user_" } else { "" };
            let key = json_string(&format!("{prefix}{key}"));
            self.text.push(&format!("{key}:{},\n", json_value(value)));
        }
        let loss = self.profile.loss();
        let counts = LossCause::ALL
            .map(|cause| format!("\"{}\":{}", loss_key(cause), loss.count(cause)))
            .join(",");
        let version = env!("CARGO_PKG_VERSION");
        let overflow = self.tracks.overflow_json(self.profile);
        // The categories of device work are CUDA's for all kinds of devices.
        let mut devices = self.profile.threads().iter().map(|thread| thread.device);
        let device = match devices.find(|&device| device != DeviceKind::Cpu) {
            None | Some(DeviceKind::Cuda) => String::new(),
            Some(device) => format!(",\"device_type\":{}", device.number()),
        };
        self.text.push(&format!(
            "\"mindprof\":{{\"version\":\"{version}\",\"lost\":{{{counts}}},\"spare_tracks\":{overflow}{device}}},\n\
             \"displayTimeUnit\":\"ms\",\n\"baseTimeNanoseconds\":{},\n\"traceEvents\":[",
            self.base_ns
        ));
    }

    /// Writes the span of the window and the marks at its ends. They come first, so that every
    /// other event is preceded by a comma.
    pub(super) fn push_window(&mut self) {
        let span = self.profile.span();
        self.text.push(&format!(
            "\n{{\"ph\":\"X\",\"cat\":\"{WINDOW_ACTIVITY}\",\"name\":\"PyTorch Profiler (0)\",\
             \"pid\":\"Spans\",\"tid\":\"PyTorch Profiler\",\"ts\":"
        ));
        self.push_time(Nanos::ZERO);
        self.text.push(",\"dur\":");
        self.text.push_microseconds(span.0);
        self.text.push(",\"args\":{\"Op count\":0}}");
        self.text
            .push(",\n{\"ph\":\"M\",\"name\":\"process_sort_index\",\"ts\":");
        self.push_time(Nanos::ZERO);
        self.text.push(&format!(
            ",\"pid\":\"Spans\",\"tid\":0,\"args\":{{\"sort_index\":{SPANS_SORT_INDEX}}}}}"
        ));
        self.push_mark(
            "Iteration Start: PyTorch Profiler",
            "\"pid\":\"Traces\",\"tid\":\"Trace PyTorch Profiler\"",
            Nanos::ZERO,
        );
        // Later than the span, as in torch: readers add times as floats, which puts the end of an
        // event at the very end slightly after the span.
        let end = Nanos(span.0 + WINDOW_END_MARGIN_NS);
        self.push_mark("Record Window End", "\"pid\":\"\",\"tid\":\"\"", end);
    }

    fn push_mark(&mut self, name: &str, place: &str, time: Nanos) {
        self.text.push(&format!(
            ",\n{{\"ph\":\"i\",\"s\":\"g\",\"name\":\"{name}\",{place},\"ts\":"
        ));
        self.push_time(time);
        self.text.push("}");
    }
}
