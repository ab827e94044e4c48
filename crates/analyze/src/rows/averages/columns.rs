//! What one event adds to a row. Most profiles have times alone, and then nothing else is looked
//! at.

use mindprof_model::{Category, DeviceKind, EventId, Nanos};

use crate::analysis::Analysis;
use crate::memory::memory_use::Bytes;
use crate::rows::flops::Flops;
use crate::rows::micros::elapsed_micros;
use crate::rows::sums::Sums;

/// What a profile has beside times on the host. It holds nothing by thread, so that it can be asked
/// for with each event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns {
    device_times: bool,
    memory: bool,
    flops: bool,
}

impl Columns {
    pub(super) fn of(analysis: &Analysis) -> Self {
        Self {
            device_times: !analysis.device_times().is_empty(),
            memory: !analysis.profile().memory().is_empty(),
            flops: analysis.counts_flops(),
        }
    }
}

impl Sums {
    /// Adds one event.
    #[inline]
    pub(super) fn add_event(
        &mut self,
        analysis: &Analysis,
        columns: Columns,
        id: EventId,
        flops: &mut Flops,
    ) {
        let event = analysis.profile().event(id);
        self.count += 1;
        if analysis.device(id) == DeviceKind::Cpu {
            self.cpu_total = self.cpu_total + event.duration;
            self.cpu_micros += elapsed_micros(event);
            self.self_cpu_total = self.self_cpu_total + analysis.tree().self_time(id);
            if columns.device_times {
                let times = analysis.device_times();
                self.device_total = self.device_total + times.total(id);
                self.self_device_total = self.self_device_total + times.own(id);
                self.device_micros += times.total_micros(id);
            }
            if columns.memory {
                self.memory.add(analysis.memory().total(id));
                self.self_memory.add(analysis.memory().own(id));
            }
        } else if event.category != Category::Other {
            // What is no work of the device, as a wait for it, takes none of its time.
            self.device_total = self.device_total + event.duration;
            self.self_device_total = self.self_device_total + event.duration;
            self.device_micros += elapsed_micros(event);
        }
        if columns.flops {
            self.flops += flops.count(analysis.profile(), id);
        }
    }

    /// Adds a call inside another of the same row: what it and its children took is part of the
    /// outer one's total.
    pub(super) fn add_inner_call(
        &mut self,
        analysis: &Analysis,
        columns: Columns,
        id: EventId,
        flops: &mut Flops,
    ) {
        let mut call = Self::default();
        call.add_event(analysis, columns, id, flops);
        self.add(&Self {
            cpu_total: Nanos::ZERO,
            cpu_micros: 0.0,
            device_total: Nanos::ZERO,
            device_micros: 0.0,
            memory: Bytes::default(),
            ..call
        });
    }
}
