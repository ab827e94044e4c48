//! The Rust types behind each `DType`: how elements are stored, converted and computed with.
//!
//! Kernels are generic over [`Element`] or [`Number`], and `by_dtype!` picks the instance. A new
//! dtype needs one line in [`Buffer`], one in each macro below and one `impl`.

use half::bf16;

use crate::elements::Elements;
use crate::{DType, Logical, Scalar};

/// The elements of a storage, tagged with their type.
#[derive(Debug)]
pub enum Buffer {
    /// Booleans.
    Bool(Elements<Logical>),
    /// 32-bit integers.
    I32(Elements<i32>),
    /// 64-bit integers.
    I64(Elements<i64>),
    /// Brain floats.
    BF16(Elements<bf16>),
    /// 32-bit floats.
    F32(Elements<f32>),
    /// 64-bit floats.
    F64(Elements<f64>),
}

/// A Rust type that a tensor can hold.
///
/// The trait is sealed: it exists to make kernels generic over dtypes and cannot be implemented
/// outside of this crate.
pub trait Element:
    sealed::Sealed + Copy + Default + PartialOrd + PartialEq + Send + Sync + 'static
{
    /// The dtype of this type.
    const DTYPE: DType;

    /// Wraps elements into a buffer that a storage can own.
    #[doc(hidden)]
    fn into_buffer(elements: Elements<Self>) -> Buffer;

    /// Returns the elements of a buffer, or `None` if they have another type.
    #[doc(hidden)]
    fn slice(buffer: &Buffer) -> Option<&[Self]>;

    /// Returns the elements of a buffer for writing, or `None` if they have another type.
    #[doc(hidden)]
    fn slice_mut(buffer: &mut Buffer) -> Option<&mut [Self]>;

    /// Converts a number with the rules of a C cast.
    fn from_scalar(value: Scalar) -> Self;

    /// Converts to a number.
    fn to_scalar(self) -> Scalar;

    /// Adds another element. Integers wrap, and booleans are combined by `or`.
    #[must_use]
    fn plus(self, other: Self) -> Self;
}

/// An element with arithmetic. Integers wrap; booleans add by `or` and multiply by `and`.
pub(crate) trait Number: Element {
    /// The accumulator of sums, wide enough to keep the precision of the elements.
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
    /// Converts a number given by the caller.
    fn of(value: f64) -> Self;

    /// Converts to the widest float, for sums.
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

/// Converts an element with the rules of a C cast.
///
/// A float that the target integer cannot hold becomes the integer's lowest value.
pub(crate) fn cast<T: Element, U: Element>(value: T) -> U {
    U::from_scalar(value.to_scalar())
}

/// Runs the body with `$T` bound to the Rust type of a [`DType`].
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

/// Runs the body with `$T` bound to the Rust type in which a [`DType`] is computed.
///
/// This is the stored type, except for `bfloat16`, which kernels widen on reading and round on
/// writing.
macro_rules! by_number {
    ($dtype:expr, $T:ident => $body:expr) => {{
        use $crate::element::by_dtype;
        by_dtype!(@arms $dtype, $T => $body;
            Bool $crate::Logical, I32 i32, I64 i64, BF16 f32, F32 f32, F64 f64)
    }};
}
pub(crate) use by_number;

/// Runs the body with `$T` bound to the Rust type in which a floating-point [`DType`] is computed;
/// for any other dtype, returns an error that names the kernel.
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
                // Only true division reaches a kernel, and it is never computed on integers.
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
                // Not `max`, which would replace NaN.
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
    // Goes through 32 bits as in torch, so that a 64-bit float is rounded twice.
    |value: Scalar| bf16::from_f32(f32::from_scalar(value)),
    |value: bf16| Scalar::Float(value.to_f64()),
    |x: bf16, y: bf16| x + y
);

integer!(i32, I32, 2_147_483_648.0);
integer!(i64, I64, 9_223_372_036_854_775_808.0);
float!(f32, F32);
float!(f64, F64);
