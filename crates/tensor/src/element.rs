//! The Rust types behind each `DType`: how they are stored, converted and computed with.
//!
//! Kernels are generic over [`Element`] or [`Number`]; `by_dtype!` picks the instance. Another type
//! is one line in [`Buffer`], one in each macro below and one `impl`.

use half::bf16;

use crate::elements::Elements;
use crate::{DType, Logical, Scalar};

/// The elements of one storage.
#[derive(Debug)]
pub enum Buffer {
    /// Truth values.
    Bool(Elements<Logical>),
    /// 32-bit integers.
    I32(Elements<i32>),
    /// 64-bit integers.
    I64(Elements<i64>),
    /// 32-bit floats cut to their upper half.
    BF16(Elements<bf16>),
    /// 32-bit floats.
    F32(Elements<f32>),
    /// 64-bit floats.
    F64(Elements<f64>),
}

/// A type that a tensor may hold. It cannot be implemented outside of this crate.
pub trait Element:
    sealed::Sealed + Copy + Default + PartialOrd + PartialEq + Send + Sync + 'static
{
    /// The tag of this type.
    const DTYPE: DType;

    /// Wraps elements, so that a storage can own them.
    #[doc(hidden)]
    fn into_buffer(elements: Elements<Self>) -> Buffer;

    /// Returns the elements of a buffer of this type.
    #[doc(hidden)]
    fn slice(buffer: &Buffer) -> Option<&[Self]>;

    /// Returns the elements of a buffer of this type for writing.
    #[doc(hidden)]
    fn slice_mut(buffer: &mut Buffer) -> Option<&mut [Self]>;

    /// Converts a number as C does.
    fn from_scalar(value: Scalar) -> Self;

    /// Converts to a number.
    fn to_scalar(self) -> Scalar;

    /// Adds another element; integers wrap, truth values are combined by `or`.
    #[must_use]
    fn plus(self, other: Self) -> Self;
}

/// An element with arithmetic. Integers wrap; truth values add by `or` and multiplies by `and`.
pub(crate) trait Number: Element {
    /// What a sum of elements is collected in: wide enough not to lose what the elements carry.
    type Total: Copy + Default + Send + Sync;

    const ZERO: Self;
    const ONE: Self;

    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn over(self, other: Self) -> Self;
    fn negated(self) -> Self;
    fn at_least(self, lowest: Self) -> Self;
    fn to_total(self) -> Self::Total;
    fn add_totals(left: Self::Total, right: Self::Total) -> Self::Total;
    fn from_total(total: Self::Total) -> Self;
}

/// A floating-point element.
pub(crate) trait Real: Number + num_traits::Float + std::iter::Sum {
    /// Converts a number of the caller.
    fn of(value: f64) -> Self;

    /// Converts to the widest type, for sums.
    fn wide(self) -> f64;
}

impl Real for f32 {
    fn of(value: f64) -> Self {
        value as Self
    }
    fn wide(self) -> f64 {
        f64::from(self)
    }
}

impl Real for f64 {
    fn of(value: f64) -> Self {
        value
    }
    fn wide(self) -> f64 {
        self
    }
}

/// Converts an element as C does; a float that an integer cannot hold becomes the integer's lowest
/// value.
pub(crate) fn cast<T: Element, U: Element>(value: T) -> U {
    U::from_scalar(value.to_scalar())
}

/// Runs the body with `$T` standing for the Rust type of a [`DType`].
macro_rules! by_dtype {
    ($dtype:expr, $T:ident => $body:expr) => {{
        use $crate::element::by_dtype;
        by_dtype!(@arms $dtype, $T => $body;
            Bool $crate::Logical, I32 i32, I64 i64, BF16 half::bf16, F32 f32, F64 f64)
    }};
    (@arms $dtype:expr, $T:ident => $body:expr; $($variant:ident $type:ty),+) => {
        match $dtype {
            $($crate::DType::$variant => {
                type $T = $type;
                $body
            })+
        }
    };
}
pub(crate) use by_dtype;

/// Runs the body with `$T` standing for the Rust type that elements of a [`DType`] are computed in.
///
/// It is the type that they are stored in but for `bfloat16`, which kernels widen as they read and
/// round as they write.
macro_rules! by_number {
    ($dtype:expr, $T:ident => $body:expr) => {{
        use $crate::element::by_dtype;
        by_dtype!(@arms $dtype, $T => $body;
            Bool $crate::Logical, I32 i32, I64 i64, BF16 f32, F32 f32, F64 f64)
    }};
}
pub(crate) use by_number;

/// Runs the body with `$T` standing for the Rust type that a floating-point [`DType`] is computed
/// in; others are an error of the kernel that is named.
macro_rules! by_float {
    ($dtype:expr, $kernel:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::DType::BF16 | $crate::DType::F32 => {
                type $T = f32;
                $body
            }
            $crate::DType::F64 => {
                type $T = f64;
                $body
            }
            dtype @ ($crate::DType::Bool | $crate::DType::I32 | $crate::DType::I64) => {
                Err($crate::Error::NotImplemented {
                    kernel: $kernel,
                    dtype,
                })
            }
        }
    };
}
pub(crate) use by_float;

mod sealed {
    pub trait Sealed {}
}

macro_rules! element {
    ($type:ty, $variant:ident, $from:expr, $to:expr, $plus:expr) => {
        impl sealed::Sealed for $type {}

        impl Element for $type {
            const DTYPE: DType = DType::$variant;

            fn into_buffer(elements: Elements<Self>) -> Buffer {
                Buffer::$variant(elements)
            }

            fn slice(buffer: &Buffer) -> Option<&[Self]> {
                if let Buffer::$variant(elements) = buffer {
                    Some(elements)
                } else {
                    None
                }
            }

            fn slice_mut(buffer: &mut Buffer) -> Option<&mut [Self]> {
                if let Buffer::$variant(elements) = buffer {
                    Some(elements)
                } else {
                    None
                }
            }

            #[inline]
            fn from_scalar(value: Scalar) -> Self {
                $from(value)
            }

            #[inline]
            fn to_scalar(self) -> Scalar {
                $to(self)
            }

            #[inline]
            fn plus(self, other: Self) -> Self {
                $plus(self, other)
            }
        }
    };
}

macro_rules! integer {
    ($type:ty, $variant:ident, $limit:expr) => {
        element!(
            $type,
            $variant,
            |value| match value {
                Scalar::Bool(value) => <$type>::from(value),
                Scalar::Int(value) => value as $type,
                Scalar::Float(value) =>
                    if -value <= $limit && value < $limit {
                        value as $type
                    } else {
                        <$type>::MIN
                    },
            },
            |value: $type| Scalar::Int(i64::from(value)),
            <$type>::wrapping_add
        );

        impl Number for $type {
            type Total = i64;

            const ZERO: Self = 0;
            const ONE: Self = 1;

            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            fn over(self, other: Self) -> Self {
                // Only true division reaches a kernel, and it is never computed in integers.
                self.checked_div(other).unwrap_or(Self::MIN)
            }
            fn negated(self) -> Self {
                self.wrapping_neg()
            }
            fn at_least(self, lowest: Self) -> Self {
                self.max(lowest)
            }
            fn to_total(self) -> i64 {
                i64::from(self)
            }
            fn add_totals(left: i64, right: i64) -> i64 {
                left.wrapping_add(right)
            }
            fn from_total(total: i64) -> Self {
                total as Self
            }
        }
    };
}

macro_rules! float {
    ($type:ty, $variant:ident) => {
        element!(
            $type,
            $variant,
            |value| match value {
                Scalar::Bool(value) => <$type>::from(u8::from(value)),
                Scalar::Int(value) => value as $type,
                Scalar::Float(value) => value as $type,
            },
            |value: $type| Scalar::Float(f64::from(value)),
            |x: $type, y: $type| x + y
        );

        impl Number for $type {
            type Total = f64;

            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;

            fn minus(self, other: Self) -> Self {
                self - other
            }
            fn times(self, other: Self) -> Self {
                self * other
            }
            fn over(self, other: Self) -> Self {
                self / other
            }
            fn negated(self) -> Self {
                -self
            }
            fn at_least(self, lowest: Self) -> Self {
                // Not `max`: what is not a number stays.
                if self < lowest { lowest } else { self }
            }
            fn to_total(self) -> f64 {
                f64::from(self)
            }
            fn add_totals(left: f64, right: f64) -> f64 {
                left + right
            }
            fn from_total(total: f64) -> Self {
                total as Self
            }
        }
    };
}

element!(
    Logical,
    Bool,
    |value| Logical::from(match value {
        Scalar::Bool(value) => value,
        Scalar::Int(value) => value != 0,
        Scalar::Float(value) => value != 0.0,
    }),
    |value: Logical| Scalar::Bool(value.is_true()),
    |x: Logical, y: Logical| x | y
);

impl Number for Logical {
    type Total = i64;

    const ZERO: Self = Self::from_byte(0);
    const ONE: Self = Self::from_byte(1);

    fn minus(self, other: Self) -> Self {
        self ^ other
    }
    fn times(self, other: Self) -> Self {
        self & other
    }
    fn over(self, other: Self) -> Self {
        self & other
    }
    fn negated(self) -> Self {
        !self
    }
    fn at_least(self, lowest: Self) -> Self {
        self | lowest
    }
    fn to_total(self) -> i64 {
        i64::from(self.is_true())
    }
    fn add_totals(left: i64, right: i64) -> i64 {
        left.wrapping_add(right)
    }
    fn from_total(total: i64) -> Self {
        Self::from(total != 0)
    }
}

element!(
    bf16,
    BF16,
    // By way of 32 bits, as torch converts: a 64-bit float is rounded twice there too.
    |value: Scalar| bf16::from_f32(f32::from_scalar(value)),
    |value: bf16| Scalar::Float(value.to_f64()),
    |x: bf16, y: bf16| x + y
);

integer!(i32, I32, 2_147_483_648.0);
integer!(i64, I64, 9_223_372_036_854_775_808.0);
float!(f32, F32);
float!(f64, F64);
