//! Sums over events: the numbers of a row.

use mindprof_model::Nanos;

use crate::memory::memory_use::Bytes;
use crate::rows::micros::microseconds;

/// The count, times, memory and floating-point operations of one event or of many.
///
/// Times are exact nanoseconds. Two totals are kept a second time as floating-point microseconds,
/// because torch sums floats, and a table that matches torch's to the last digit needs its rounding
/// errors.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// The number of events.
    pub count: u64,
    /// The CPU time, including that of the children.
    pub cpu_total: Nanos,
    /// The self CPU time.
    pub self_cpu_total: Nanos,
    /// The device time, including that of the children.
    pub device_total: Nanos,
    /// The self device time.
    pub self_device_total: Nanos,
    /// The memory allocated minus the memory freed, including that of the children.
    pub memory: Bytes,
    /// The same memory without that of the children.
    pub self_memory: Bytes,
    /// The floating-point operations of operators that have a formula.
    pub flops: u64,
    /// [`Self::cpu_total`] as a sum of floating-point microseconds. Its rounding error decides how
    /// torch prints a mean that lies halfway between two digits.
    pub cpu_micros: f64,
    /// [`Self::device_total`] as a sum of floating-point microseconds.
    pub device_micros: f64,
}

impl Sums {
    /// Adds other sums to these.
    pub fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.cpu_total = self.cpu_total + other.cpu_total;
        self.self_cpu_total = self.self_cpu_total + other.self_cpu_total;
        self.device_total = self.device_total + other.device_total;
        self.self_device_total = self.self_device_total + other.self_device_total;
        self.memory.add(other.memory);
        self.self_memory.add(other.self_memory);
        self.flops += other.flops;
        self.cpu_micros += other.cpu_micros;
        self.device_micros += other.device_micros;
    }

    /// Multiplies the sums of operators by a weight. Memory is left as it is, because a recording of
    /// a share of the operators has none.
    pub(super) fn scale(&mut self, weight: f64) {
        let scaled = |number: u64| (number as f64 * weight).round() as u64;
        self.count = scaled(self.count);
        self.flops = scaled(self.flops);
        for time in [
            &mut self.cpu_total,
            &mut self.self_cpu_total,
            &mut self.device_total,
            &mut self.self_device_total,
        ] {
            *time = Nanos(scaled(time.0));
        }
        self.cpu_micros *= weight;
        self.device_micros *= weight;
    }

    /// Takes time off the total CPU time, which stays at zero or above.
    pub fn take_cpu_time(&mut self, time: Nanos) {
        if time > Nanos::ZERO {
            self.cpu_total = self.cpu_total.saturating_sub(time);
            self.cpu_micros = (self.cpu_micros - microseconds(time)).max(0.0);
        }
    }
}
