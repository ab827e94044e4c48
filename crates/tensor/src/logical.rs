//! Truth values as tensors hold them.
//!
//! They lie in memory that others write to as well, numpy above all, and may be any byte there. So
//! they are kept as bytes and compared with zero when they are read; what the runtime writes is
//! zero or one.

use std::cmp::Ordering;
use std::ops::{BitAnd, BitOr, BitXor, Not};

/// A truth value: any byte but zero is true.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct Logical(u8);

impl Logical {
    /// Returns the value of a byte.
    pub const fn from_byte(byte: u8) -> Self {
        Self(byte)
    }

    /// Returns whether it is true.
    #[inline]
    pub const fn is_true(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Logical {
    #[inline]
    fn from(value: bool) -> Self {
        Self(u8::from(value))
    }
}

impl PartialEq for Logical {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.is_true() == other.is_true()
    }
}

impl PartialOrd for Logical {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.is_true().partial_cmp(&other.is_true())
    }
}

impl BitAnd for Logical {
    type Output = Self;

    #[inline]
    fn bitand(self, other: Self) -> Self {
        Self::from(self.is_true() & other.is_true())
    }
}

impl BitOr for Logical {
    type Output = Self;

    #[inline]
    fn bitor(self, other: Self) -> Self {
        Self::from(self.0 | other.0 != 0)
    }
}

impl BitXor for Logical {
    type Output = Self;

    #[inline]
    fn bitxor(self, other: Self) -> Self {
        Self::from(self.is_true() ^ other.is_true())
    }
}

impl Not for Logical {
    type Output = Self;

    #[inline]
    fn not(self) -> Self {
        Self::from(!self.is_true())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_but_zero_is_the_same_truth() {
        let (no, yes, odd) = (
            Logical::from(false),
            Logical::from(true),
            Logical::from_byte(255),
        );
        assert!(odd.is_true() && odd == yes && odd != no && no < odd);
        let written = [odd & yes, odd | no, odd ^ no, !no, odd ^ yes, !odd];
        assert_eq!(written.map(|value| value.0), [1, 1, 1, 1, 0, 0]);
    }
}
