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

    /// Returns the type with a C++ name, by which Kineto and trace files identify element types.
    /// Returns [`DType::Unknown`] for any other name.
    pub fn from_cpp_name(name: &str) -> Self {
        let known = Self::ALL.into_iter().skip(1);
        let mut named = known.filter(|dtype| dtype.cpp_name() == name);
        named.next().unwrap_or(Self::Unknown)
    }

    /// Returns the name of the type in Python, such as `float32`. An unknown type has an empty name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "",
            Self::U8 => "uint8",
            Self::I8 => "int8",
            Self::I16 => "int16",
            Self::I32 => "int32",
            Self::I64 => "int64",
            Self::F16 => "float16",
            Self::BF16 => "bfloat16",
            Self::F32 => "float32",
            Self::F64 => "float64",
            Self::C64 => "complex64",
            Self::C128 => "complex128",
            Self::Bool => "bool",
            Self::U16 => "uint16",
            Self::U32 => "uint32",
            Self::U64 => "uint64",
            Self::C32 => "complex32",
            Self::BC32 => "bcomplex32",
            Self::F8E4M3FN => "float8_e4m3fn",
            Self::F8E4M3FNUZ => "float8_e4m3fnuz",
            Self::F8E5M2 => "float8_e5m2",
            Self::F8E5M2FNUZ => "float8_e5m2fnuz",
            Self::F8E8M0FNU => "float8_e8m0fnu",
            Self::F4E2M1FNX2 => "float4_e2m1fn_x2",
            Self::QI8 => "qint8",
            Self::QU8 => "quint8",
            Self::QI32 => "qint32",
            Self::QU4X2 => "quint4x2",
            Self::QU2X4 => "quint2x4",
        }
    }

    /// Returns the C++ name of the type, such as `long int` or `c10::Half`. An unknown type has an
    /// empty name.
    pub const fn cpp_name(self) -> &'static str {
        match self {
            Self::Unknown => "",
            Self::U8 => "unsigned char",
            Self::I8 => "signed char",
            Self::I16 => "short int",
            Self::I32 => "int",
            Self::I64 => "long int",
            Self::F16 => "c10::Half",
            Self::BF16 => "c10::BFloat16",
            Self::F32 => "float",
            Self::F64 => "double",
            Self::C64 => "c10::complex<float>",
            Self::C128 => "c10::complex<double>",
            Self::Bool => "bool",
            Self::U16 => "short unsigned int",
            Self::U32 => "unsigned int",
            Self::U64 => "long unsigned int",
            Self::C32 => "c10::complex<c10::Half>",
            Self::BC32 => "c10::complex<c10::BFloat16>",
            Self::F8E4M3FN => "c10::Float8_e4m3fn",
            Self::F8E4M3FNUZ => "c10::Float8_e4m3fnuz",
            Self::F8E5M2 => "c10::Float8_e5m2",
            Self::F8E5M2FNUZ => "c10::Float8_e5m2fnuz",
            Self::F8E8M0FNU => "c10::Float8_e8m0fnu",
            Self::F4E2M1FNX2 => "c10::Float4_e2m1fn_x2",
            Self::QI8 => "c10::qint8",
            Self::QU8 => "c10::quint8",
            Self::QI32 => "c10::qint32",
            Self::QU4X2 => "c10::quint4x2",
            Self::QU2X4 => "c10::quint2x4",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpp_names_lead_back_to_their_types() {
        for dtype in DType::ALL {
            assert_eq!(DType::from_cpp_name(dtype.cpp_name()), dtype);
        }
        assert_eq!(DType::from_cpp_name("Scalar"), DType::Unknown);
    }
}
