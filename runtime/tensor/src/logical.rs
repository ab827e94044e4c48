//! The boolean element type.
//!
//! Boolean tensors can share memory with other libraries, such as numpy, that may store any byte
//! there. Elements are therefore kept as bytes and compared with zero when they are read; the
//! runtime itself writes only zero or one.

use std::cmp::Ordering;
use std::ops::{BitAnd, BitOr, BitXor, Not};

/// A boolean element: any byte other than zero is true.
///
/// It stands in for `bool`, for which most byte values would be undefined behavior.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct Logical(u8);

impl Logical {
    /// Creates a boolean from its byte.
    pub const fn from_byte(byte: u8) -> Self {
        Self(byte)
    }

    /// Returns whether the byte is not zero.
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
