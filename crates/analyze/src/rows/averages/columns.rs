//! The contribution of one event to a row. Most profiles have only CPU times, and then no other
//! table is read.

use mindprof_model::{Category, DeviceKind, EventId, Nanos};

use crate::analysis::Analysis;
use crate::memory::memory_use::Bytes;
use crate::rows::flops::Flops;
use crate::rows::micros::elapsed_micros;
use crate::rows::sums::Sums;

/// The kinds of numbers that a profile has besides CPU times.
///
/// Three flags that are cheap to compute, so that the row of a single event can afford them too.
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
            // Entries of a device that are not its work, such as waits for it, take no device time.
            self.device_total = self.device_total + event.duration;
            self.self_device_total = self.self_device_total + event.duration;
            self.device_micros += elapsed_micros(event);
        }
        if columns.flops {
            self.flops += flops.count(analysis.profile(), id);
        }
    }

    /// Adds a call that runs inside another call of the same row. Its totals are already part of
    /// the outer call's, so only its count, self times, self memory and operations are added.
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
