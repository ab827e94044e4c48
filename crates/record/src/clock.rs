//! The clock: reads cheap ticks while recording, which are converted to nanoseconds once, when a
//! profile is assembled.
//!
//! On x86-64 a tick is one of the time stamp counter, provided that the kernel itself keeps time by
//! it (the counter is then invariant and equal on every core); elsewhere it comes from the
//! monotonic clock. Two anchors, one taken as early as possible and one at the end of the window,
//! give the rate, so nothing waits for a calibration: the error of an anchor (some tens of
//! nanoseconds) bounds the error of every time in between.

#![cfg_attr(
    target_arch = "x86_64",
    expect(
        unsafe_code,
        reason = "the time stamp counter is read through an intrinsic"
    )
)]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use mindprof_model::Nanos;

const UNDECIDED: u8 = 0;
const COUNTER: u8 = 1;
const MONOTONIC: u8 = 2;

// Relaxed: every thread decides the same value, and it publishes no other memory.
static SOURCE: AtomicU8 = AtomicU8::new(UNDECIDED);
static FIRST: OnceLock<Anchor> = OnceLock::new();
static ORIGIN: OnceLock<Instant> = OnceLock::new();

/// Reads the clock in ticks. [`TimeAxis::at_ticks`] converts them to profile time.
#[inline]
pub fn ticks() -> u64 {
    counter().unwrap_or_else(monotonic_ticks)
}

/// Reads the time stamp counter, or returns `None` if the clock needs a call.
#[inline]
pub(crate) fn counter() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    if SOURCE.load(Ordering::Relaxed) == COUNTER {
        // SAFETY: every x86-64 processor has the instruction. User space may execute it, since
        // `choose_source` has checked that the kernel keeps its own clock by it, for user space
        // too.
        return Some(unsafe { std::arch::x86_64::_rdtsc() });
    }
    None
}

#[cold]
fn monotonic_ticks() -> u64 {
    if SOURCE.load(Ordering::Relaxed) == UNDECIDED {
        SOURCE.store(choose_source(), Ordering::Relaxed);
        return ticks();
    }
    ORIGIN.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

fn choose_source() -> u8 {
    // Miri does not support the counter.
    let by_counter = cfg!(all(target_arch = "x86_64", not(miri)))
        && std::fs::read_to_string(
            "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        )
        .is_ok_and(|source| source.trim() == "tsc");
    if by_counter { COUNTER } else { MONOTONIC }
}

/// One moment on three clocks: the recorder's, the monotonic clock and the wall clock. Two anchors
/// give the rate of the recorder's clock, and one places it on the wall clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Anchor {
    ticks: u64,
    monotonic: Instant,
    unix_ns: u64,
}

impl Anchor {
    /// Reads the three clocks together. It keeps the tightest of a few attempts, since one that was
    /// preempted would be inaccurate.
    pub(crate) fn take() -> Self {
        let attempt = || {
            let before = ticks();
            let monotonic = Instant::now();
            let wall = SystemTime::now();
            let after = ticks();
            let unix_ns = wall
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| since.as_nanos() as u64);
            let width = after.saturating_sub(before);
            (
                width,
                Self {
                    ticks: before + width / 2,
                    monotonic,
                    unix_ns,
                },
            )
        };
        // The first read chooses the clock and faults its pages in.
        ticks();
        let mut best = attempt();
        for _ in 0..3 {
            let next = attempt();
            if next.0 < best.0 {
                best = next;
            }
        }
        best.1
    }

    /// Returns the first anchor of the process, taking it if there is none. The earlier it is
    /// taken, the more accurate the rate becomes.
    pub(crate) fn first() -> Self {
        *FIRST.get_or_init(Self::take)
    }

    /// Returns the anchor's moment in ticks.
    pub(crate) const fn ticks(&self) -> u64 {
        self.ticks
    }

    /// Returns the anchor's moment in nanoseconds since the Unix epoch.
    pub(crate) const fn unix_ns(&self) -> u64 {
        self.unix_ns
    }
}

/// Converts ticks to nanoseconds since a reference.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    reference: u64,
    /// In fixed point with [`FRACTION_BITS`] binary places, so that a conversion is one
    /// multiplication.
    nanoseconds_per_tick: u64,
}

/// Leaves room for ticks of up to 255 ns, and is finer than the rate itself is known.
const FRACTION_BITS: u32 = 56;

impl Scale {
    /// Returns the scale with its zero at `reference` ticks and the rate between the two anchors.
    pub(crate) fn new(reference: u64, first: &Anchor, last: &Anchor) -> Self {
        let ticks = last.ticks.saturating_sub(first.ticks);
        let nanoseconds = last
            .monotonic
            .saturating_duration_since(first.monotonic)
            .as_nanos();
        // Rounded up, so that an exact result is not cut to the nanosecond before.
        let nanoseconds_per_tick = match (nanoseconds << FRACTION_BITS).checked_div(ticks.into()) {
            Some(rate) => u64::try_from(rate + 1).unwrap_or(u64::MAX),
            None => 1 << FRACTION_BITS,
        };
        Self {
            reference,
            nanoseconds_per_tick,
        }
    }

    /// Converts a duration.
    #[inline]
    pub(crate) fn duration(&self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.nanoseconds_per_tick)) >> FRACTION_BITS) as u64
    }

    /// Converts a moment. It is monotonic, so rounding never breaks nesting.
    pub(crate) fn nanoseconds(&self, ticks: u64) -> u64 {
        self.duration(ticks.saturating_sub(self.reference))
    }
}

/// The time axis of a profile, from [`Capture::axis`](crate::Capture::axis). It converts moments of
/// the recorder's clock and of the wall clock to the profile's time, for sources that use other
/// clocks.
#[derive(Clone, Copy, Debug)]
pub struct TimeAxis {
    pub(crate) scale: Scale,
    reference_unix_ns: u64,
}

impl TimeAxis {
    /// Returns the axis of a window that opened at `start` ticks.
    pub(crate) fn new(start: u64, opened: &Anchor, closed: &Anchor) -> Self {
        let scale = Scale::new(start, &Anchor::first(), closed);
        let opening = start.saturating_sub(opened.ticks());
        Self {
            reference_unix_ns: opened.unix_ns() + scale.duration(opening),
            scale,
        }
    }

    /// Returns time zero in nanoseconds since the Unix epoch. Use it as the reference of a
    /// [`mindprof_model::Part`] whose times are already profile times.
    pub const fn reference_unix_ns(&self) -> u64 {
        self.reference_unix_ns
    }

    /// Converts a moment of [`ticks`] to profile time. Moments before time zero become zero.
    pub fn at_ticks(&self, ticks: u64) -> Nanos {
        Nanos(self.scale.nanoseconds(ticks))
    }

    /// Converts a moment of the wall clock to profile time. Moments before time zero become zero.
    pub const fn at_unix_ns(&self, unix_ns: u64) -> Nanos {
        Nanos(unix_ns.saturating_sub(self.reference_unix_ns))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn anchor(ticks: u64, monotonic: Instant) -> Anchor {
        Anchor {
            ticks,
            monotonic,
            unix_ns: 0,
        }
    }

    #[test]
    fn the_rate_is_that_between_the_anchors() {
        let zero = Instant::now();
        let last = anchor(3_000, zero + Duration::from_micros(1));
        let scale = Scale::new(1_500, &anchor(0, zero), &last);
        assert_eq!(scale.nanoseconds(1_500), 0);
        assert_eq!(scale.nanoseconds(3_000), 500);
        assert_eq!(
            scale.nanoseconds(0),
            0,
            "a moment before the reference is the reference"
        );
    }

    #[test]
    fn equal_anchors_do_not_divide_by_zero() {
        let zero = anchor(7, Instant::now());
        assert_eq!(Scale::new(7, &zero, &zero).nanoseconds(10), 3);
    }

    #[test]
    fn conversion_never_reverses_two_moments() {
        let zero = Instant::now();
        let last = anchor(2_099_999_983, zero + Duration::from_secs(1));
        let scale = Scale::new(0, &anchor(0, zero), &last);
        let times: Vec<u64> = (0..10_000).map(|tick| scale.nanoseconds(tick)).collect();
        assert!(times.is_sorted());
    }

    #[test]
    fn ticks_do_not_run_backwards() {
        let readings: Vec<u64> = (0..1_000).map(|_| ticks()).collect();
        assert!(readings.is_sorted());
    }
}
