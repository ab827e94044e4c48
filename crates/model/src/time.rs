//! Time inside a profile: whole nanoseconds since the profile's reference time.

use std::fmt;
use std::ops::{Add, Sub};

/// A moment (since the profile's reference time) or a duration, in nanoseconds. It is a type of its
/// own so that nanoseconds are never confused with ticks or microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The reference time itself, or an empty duration.
    pub const ZERO: Self = Self(0);

    /// Returns `self + other`, or the largest time if that overflows.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Returns `self - other`, or zero if that is negative.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Nanos {
    type Output = Self;

    /// Saturates: a file may claim durations whose sum exceeds 584 years.
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Nanos {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ns", self.0)
    }
}
