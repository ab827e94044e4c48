//! Element types of tensors, and the type promotion rules of operators.
//!
//! Storage is allocated by dtype, and operators choose a common dtype before they choose a kernel.

use crate::Scalar;

/// The type of a tensor's elements.
///
/// The variants are declared in promotion order, so that the common dtype of two operands is the
/// greater one. [`Element`](crate::Element) maps each variant to a Rust type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DType {
    /// Boolean, one byte.
    Bool,
    /// 32-bit signed integer.
    I32,
    /// 64-bit signed integer.
    I64,
    /// Brain float: the upper half of a 32-bit float.
    BF16,
    /// 32-bit float.
    F32,
    /// 64-bit float.
    F64,
}

impl DType {
    /// The dtype of floating-point results whose operands are not floating-point.
    pub const DEFAULT: Self = Self::F32;

    /// Returns the size of one element in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Bool => 1,
            Self::BF16 => 2,
            Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 => 8,
        }
    }

    /// Returns whether the elements are floating-point numbers.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::BF16 | Self::F32 | Self::F64)
    }

    /// Returns the name used in messages, such as `Long` in `Got: Long`.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Bool => "Bool",
            Self::I32 => "Int",
            Self::I64 => "Long",
            Self::BF16 => "BFloat16",
            Self::F32 => "Float",
            Self::F64 => "Double",
        }
    }

    /// Returns the C++ type name, which traces and some messages use.
    pub const fn native_name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I32 => "int",
            Self::I64 => "long int",
            Self::BF16 => "c10::BFloat16",
            Self::F32 => "float",
            Self::F64 => "double",
        }
    }

    /// Returns torch's number for this dtype, which traces record for dtype arguments.
    pub(crate) const fn code(self) -> i64 {
        match self {
            Self::I32 => 3,
            Self::I64 => 4,
            Self::F32 => 6,
            Self::F64 => 7,
            Self::Bool => 11,
            Self::BF16 => 15,
        }
    }

    /// Returns the smallest dtype that can represent the values of both.
    #[must_use]
    pub fn common(self, other: Self) -> Self {
        // The declaration order is the promotion lattice.
        self.max(other)
    }

    /// Returns the dtype that kernels compute in, which may be wider than the stored one.
    #[must_use]
    pub(crate) fn computed(self) -> Self {
        if self == Self::BF16 { Self::F32 } else { self }
    }

    /// Returns the floating-point dtype that a true division computes in.
    pub(crate) fn or_float(self) -> Self {
        if self.is_float() { self } else { Self::DEFAULT }
    }
}

impl From<DType> for mindprof_model::DType {
    fn from(dtype: DType) -> Self {
        match dtype {
            DType::Bool => Self::Bool,
            DType::I32 => Self::I32,
            DType::I64 => Self::I64,
            DType::BF16 => Self::BF16,
            DType::F32 => Self::F32,
            DType::F64 => Self::F64,
        }
    }
}

/// The priority of an operand in type promotion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Weight {
    /// A Python number.
    Number,
    /// A zero-dimensional tensor.
    ZeroDim,
    /// A tensor with dimensions.
    Dimensioned,
}

/// Returns the dtype that an operator over these operands computes in.
///
/// A lower-priority operand affects the result only by its category (bool, integer, float), never
/// by its width: a 32-bit integer tensor plus an integer stays 32-bit, and plus a fraction becomes
/// the default float.
pub(crate) fn promote(operands: [(DType, Weight); 2]) -> DType {
    let [(left, left_weight), (right, right_weight)] = operands;
    if left_weight == right_weight {
        return left.common(right);
    }
    let (heavy, light, weight) = if left_weight > right_weight {
        (left, right, right_weight)
    } else {
        (right, left, left_weight)
    };
    if category(light) <= category(heavy) {
        heavy
    } else if weight == Weight::Number && light.is_float() {
        DType::DEFAULT
    } else {
        light
    }
}

fn category(dtype: DType) -> u8 {
    match dtype {
        DType::Bool => 0,
        DType::I32 | DType::I64 => 1,
        DType::BF16 | DType::F32 | DType::F64 => 2,
    }
}

impl Scalar {
    /// Returns the dtype of the zero-dimensional tensor that represents this number.
    pub fn dtype(self) -> DType {
        match self {
            Self::Bool(_) => DType::Bool,
            Self::Int(_) => DType::I64,
            Self::Float(_) => DType::F64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DType::{Bool, F32, F64, I32, I64};
    use Weight::{Dimensioned, Number, ZeroDim};

    #[test]
    fn a_lighter_operand_changes_the_category_but_not_the_width() {
        let cases = [
            ((I64, Dimensioned), (F64, Number), F32),
            ((I32, Dimensioned), (I64, Number), I32),
            ((I32, Dimensioned), (I64, ZeroDim), I32),
            ((I32, Dimensioned), (F64, ZeroDim), F64),
            ((F32, Dimensioned), (F64, ZeroDim), F32),
            ((I64, ZeroDim), (F32, ZeroDim), F32),
            ((I64, ZeroDim), (F64, Number), F32),
            ((I32, ZeroDim), (I64, Number), I32),
            ((F64, Dimensioned), (I64, Number), F64),
            ((Bool, Dimensioned), (I64, Number), I64),
            ((Bool, Dimensioned), (F64, Number), F32),
            ((F32, Dimensioned), (F64, Dimensioned), F64),
        ];
        for (left, right, expected) in cases {
            assert_eq!(promote([left, right]), expected, "{left:?} {right:?}");
            assert_eq!(promote([right, left]), expected, "{right:?} {left:?}");
        }
    }
}
