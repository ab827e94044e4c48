//! The marks in a trace that stand for memory taken and given back.

use mindprof_model::MemoryRecord;

use super::Writer;
use crate::chrome::category::{INSTANT, MEMORY};

impl Writer<'_> {
    /// Writes a memory record.
    pub(super) fn push_memory(&mut self, record: &MemoryRecord) {
        self.begin_event();
        self.push(&format!(
            "{{\"ph\":\"i\",\"cat\":\"{INSTANT}\",\"s\":\"t\",\"name\":\"{MEMORY}\""
        ));
        self.push_thread(&self.profile.threads()[record.thread.index()]);
        self.push(",\"ts\":");
        self.push_time(record.time);
        self.push(",\"args\":{");
        self.push_argument("Total Reserved", record.total_reserved);
        self.push_argument("Total Allocated", record.total_allocated);
        self.push_argument("Bytes", record.bytes);
        self.push_argument("Device Id", record.device_index);
        self.push_argument("Device Type", record.device.number());
        self.push_argument("Addr", record.address);
        self.push_stack(record.stack);
        self.push("\"finished\":false}}");
    }
}
