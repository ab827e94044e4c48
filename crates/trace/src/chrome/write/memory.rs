//! Writes memory records as instant events.

use mindprof_model::{INSTANT_ACTIVITY, MEMORY_EVENT, MemoryRecord};

use super::Writer;

impl Writer<'_> {
    /// Writes the memory record at `index`.
    pub(super) fn push_memory(&mut self, index: usize, record: &MemoryRecord) {
        self.text.push(&self.memory_head);
        self.text.push(self.tracks.of_thread(record.thread));
        self.push_time(record.time);
        let text = &mut self.text;
        text.push(",\"args\":{\"Total Reserved\":");
        text.push_number(record.total_reserved);
        text.push(",\"Total Allocated\":");
        text.push_number(record.total_allocated);
        text.push(",\"Bytes\":");
        text.push_number(record.bytes);
        text.push(",\"Device Id\":");
        text.push_number(record.device_index);
        text.push(",\"Device Type\":");
        text.push_number(record.device.number());
        text.push(",\"Addr\":");
        text.push_number(record.address);
        text.push(",");
        text.push(self.json.stack(record.stack));
        let further = self.passthrough.of_memory(index);
        self.push_further_arguments(further);
        self.text.push("\"finished\":false,\"Ev Idx\":");
        self.text.push_number(self.profile.events().len() + index);
        self.text.push("}}");
    }
}

/// Returns the start that all memory records share.
pub(super) fn memory_head() -> String {
    format!(
        ",\n{{\"ph\":\"i\",\"cat\":\"{INSTANT_ACTIVITY}\",\"s\":\"t\",\"name\":\"{MEMORY_EVENT}\""
    )
}
