//! The times of events: parsed, repaired if that makes sense, and counted as faults otherwise.

use mindprof_model::Nanos;

use super::Collector;
use crate::chrome::event::RawEvent;
use crate::chrome::time::Stated;
use crate::repairs::Repair;

/// Half the range, so that the difference of two times cannot overflow.
const TIME_LIMIT: i64 = i64::MAX / 2;

impl Collector {
    /// Returns the start and duration, if both are valid and the end is in range.
    pub(super) fn interval(&mut self, event: &RawEvent<'_>) -> Option<(i64, Nanos)> {
        let start = self.time(event.start)?;
        let duration = match event.duration.unwrap_or(Stated::Nothing) {
            Stated::Nothing => {
                self.repairs.add(Repair::NoDuration, 1);
                0
            }
            Stated::NotANumber => {
                self.repairs.add(Repair::NotANumber, 1);
                0
            }
            Stated::NanosInText(duration) => {
                self.repairs.add(Repair::StringTimestamp, 1);
                duration
            }
            Stated::Nanos(duration) => duration,
        };
        if duration < 0 {
            self.repairs.add(Repair::NegativeDuration, 1);
        }
        if duration > TIME_LIMIT {
            self.add_damage(Repair::NoTime);
            return None;
        }
        self.has_nanoseconds = self.has_nanoseconds || duration % 1000 != 0;
        Some((start, Nanos(duration.max(0) as u64)))
    }

    /// Returns a time since the base. An event without one is counted as lost.
    pub(super) fn time(&mut self, stated: Option<Stated>) -> Option<i64> {
        let time = match stated.unwrap_or(Stated::Nothing) {
            Stated::Nanos(time) => Some(time),
            Stated::NanosInText(time) => {
                self.repairs.add(Repair::StringTimestamp, 1);
                Some(time)
            }
            Stated::NotANumber => {
                self.repairs.add(Repair::NotANumber, 1);
                None
            }
            Stated::Nothing => None,
        };
        let time = time.filter(|time| time.abs() <= TIME_LIMIT);
        match time {
            Some(time) => self.has_nanoseconds = self.has_nanoseconds || time % 1000 != 0,
            None => self.add_damage(Repair::NoTime),
        }
        time
    }
}
