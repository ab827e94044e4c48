//! Floating-point microseconds, the unit in which torch computes and reports times.

use mindprof_model::{Event, Nanos};

/// Returns a time in microseconds.
#[inline]
pub fn microseconds(time: Nanos) -> f64 {
    time.0 as f64 / 1e3
}

/// Converts microseconds to whole nanoseconds. Negative times become zero.
pub fn nanoseconds(microseconds: f64) -> Nanos {
    Nanos((microseconds * 1e3).round() as u64)
}

/// Returns the duration of an event as torch computes it: the difference of two floating-point
/// numbers, including its rounding error.
pub fn elapsed_micros(event: &Event) -> f64 {
    float(event.end().0) / 1e3 - float(event.start.0) / 1e3
}

/// Casts to a float. x86-64 converts signed integers in one instruction and unsigned ones in eight.
#[inline]
fn float(number: u64) -> f64 {
    match i64::try_from(number) {
        Ok(signed) => signed as f64,
        Err(_) => number as f64,
    }
}
