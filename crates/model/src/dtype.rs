//! Dtypes: the element types of tensors.

/// The element type of a tensor. It covers torch's `ScalarType`; the numbers of the variants are
/// part of the encoding of inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum DType {
    /// An unknown type.
    Unknown,
    /// 8-bit unsigned integer.
    U8,
    /// 8-bit signed integer.
    I8,
    /// 16-bit signed integer.
    I16,
    /// 32-bit signed integer.
    I32,
    /// 64-bit signed integer.
    I64,
    /// 16-bit IEEE float.
    F16,
    /// 16-bit brain float.
    BF16,
    /// 32-bit float.
    F32,
    /// 64-bit float.
    F64,
    /// Pair of 32-bit floats.
    C64,
    /// Pair of 64-bit floats.
    C128,
    /// Boolean.
    Bool,
    /// 16-bit unsigned integer.
    U16,
    /// 32-bit unsigned integer.
    U32,
    /// 64-bit unsigned integer.
    U64,
    /// Pair of 16-bit IEEE floats.
    C32,
    /// Pair of 16-bit brain floats.
    BC32,
    /// 8-bit float: 4 bits of exponent, 3 of mantissa, no infinities.
    F8E4M3FN,
    /// Like `F8E4M3FN`, without negative zero.
    F8E4M3FNUZ,
    /// 8-bit float: 5 bits of exponent, 2 of mantissa.
    F8E5M2,
    /// Like `F8E5M2`, without infinities and negative zero.
    F8E5M2FNUZ,
    /// 8-bit power of two.
    F8E8M0FNU,
    /// Pair of 4-bit floats.
    F4E2M1FNX2,
    /// Quantized 8-bit signed integer.
    QI8,
    /// Quantized 8-bit unsigned integer.
    QU8,
    /// Quantized 32-bit signed integer.
    QI32,
    /// Pair of quantized 4-bit unsigned integers.
    QU4X2,
    /// Four quantized 2-bit unsigned integers.
    QU2X4,
}

impl DType {
    const ALL: [Self; 29] = [
        Self::Unknown,
        Self::U8,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::F16,
        Self::BF16,
        Self::F32,
        Self::F64,
        Self::C64,
        Self::C128,
        Self::Bool,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::C32,
        Self::BC32,
        Self::F8E4M3FN,
        Self::F8E4M3FNUZ,
        Self::F8E5M2,
        Self::F8E5M2FNUZ,
        Self::F8E8M0FNU,
        Self::F4E2M1FNX2,
        Self::QI8,
        Self::QU8,
        Self::QI32,
        Self::QU4X2,
        Self::QU2X4,
    ];

    pub(crate) fn from_code(code: u8) -> Self {
        Self::ALL
            .get(usize::from(code))
            .copied()
            .unwrap_or(Self::Unknown)
    }

    /// Returns the size of one element in bytes, or zero for an unknown type.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Unknown => 0,
            Self::U8
            | Self::I8
            | Self::Bool
            | Self::F8E4M3FN
            | Self::F8E4M3FNUZ
            | Self::F8E5M2
            | Self::F8E5M2FNUZ
            | Self::F8E8M0FNU
            | Self::F4E2M1FNX2
            | Self::QI8
            | Self::QU8
            | Self::QU4X2
            | Self::QU2X4 => 1,
            Self::I16 | Self::F16 | Self::BF16 | Self::U16 => 2,
            Self::I32 | Self::F32 | Self::U32 | Self::C32 | Self::BC32 | Self::QI32 => 4,
            Self::I64 | Self::F64 | Self::C64 | Self::U64 => 8,
            Self::C128 => 16,
        }
    }
}
