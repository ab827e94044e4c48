//! What events come to together.

use mindprof_model::Nanos;

use crate::memory::memory_use::Bytes;
use crate::rows::micros::microseconds;

/// Counts, times and memory of one event or of many.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// How many events there are.
    pub count: u64,
    /// The time they took on the host, children included.
    pub cpu_total: Nanos,
    /// The time they took on the host themselves.
    pub self_cpu_total: Nanos,
    /// The time that devices worked for them, children included.
    pub device_total: Nanos,
    /// The time that devices worked for them themselves.
    pub self_device_total: Nanos,
    /// The memory they took, children included.
    pub memory: Bytes,
    /// The memory they took themselves.
    pub self_memory: Bytes,
    /// The floating-point operations that are known of.
    pub flops: u64,
    /// [`Self::cpu_total`] as a sum of floating-point microseconds. Its noise decides how torch
    /// rounds a mean that lies halfway between two digits, so whoever shows what torch shows
    /// needs it.
    pub cpu_micros: f64,
    /// [`Self::device_total`] likewise.
    pub device_micros: f64,
}

impl Sums {
    /// Adds others to these.
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

    /// Takes time off the total CPU time, which stays at zero or above.
    pub fn take_cpu_time(&mut self, time: Nanos) {
        if time > Nanos::ZERO {
            self.cpu_total = self.cpu_total.saturating_sub(time);
            self.cpu_micros = (self.cpu_micros - microseconds(time)).max(0.0);
        }
    }
}
