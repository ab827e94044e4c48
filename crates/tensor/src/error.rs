//! What can go wrong in the runtime, in the words that users of torch know and search for.
//!
//! Operators return these; the Python binding raises [`Error::exception`] with the error's text.

use thiserror::Error as ThisError;

use crate::DType;

/// The result of an operator.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The Python exception that an error becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exception {
    /// `RuntimeError`.
    Runtime,
    /// `IndexError`.
    Index,
    /// `ValueError`.
    Value,
    /// `NotImplementedError`, which is a `RuntimeError` too.
    NotImplemented,
}

/// A call that the runtime cannot carry out.
///
/// The texts are torch's, capitals included, because programs match on them.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// Two shapes do not broadcast.
    #[error(
        "The size of tensor a ({left}) must match the size of tensor b ({right}) at non-singleton dimension {dimension}"
    )]
    Broadcast {
        /// The size in the first operand.
        left: usize,
        /// The size in the second operand.
        right: usize,
        /// The dimension of the result where they meet.
        dimension: usize,
    },
    /// A shape is expanded to one that it does not fit.
    #[error(
        "The expanded size of the tensor ({wanted}) must match the existing size ({existing}) at non-singleton \
         dimension {dimension}.  Target sizes: {target:?}.  Tensor sizes: {sizes:?}"
    )]
    Expand {
        /// The size asked for.
        wanted: i64,
        /// The size that is there.
        existing: usize,
        /// The dimension of the result.
        dimension: usize,
        /// All sizes asked for.
        target: Vec<i64>,
        /// All sizes that are there.
        sizes: Vec<usize>,
    },
    /// A shape is expanded to fewer dimensions than it has.
    #[error(
        "expand(torch.{}Tensor{{{sizes:?}}}, size={target:?}): the number of sizes provided ({}) must be greater or \
         equal to the number of dimensions in the tensor ({})",
        .dtype.title(), .target.len(), .sizes.len()
    )]
    ExpandTooFew {
        /// The type of the tensor.
        dtype: DType,
        /// The sizes asked for.
        target: Vec<i64>,
        /// The sizes that are there.
        sizes: Vec<usize>,
    },
    /// A new leading dimension is asked to keep a size that it does not have.
    #[error(
        "The expanded size of the tensor ({wanted}) isn't allowed in a leading, non-existing dimension {dimension}"
    )]
    ExpandLeading {
        /// The size asked for.
        wanted: i64,
        /// The dimension of the result.
        dimension: usize,
    },
    /// The result of an operator does not fit the tensor that it is to be written into.
    #[error("output with shape {shape:?} doesn't match the broadcast shape {broadcast:?}")]
    OutputShape {
        /// The sizes of the tensor.
        shape: Vec<usize>,
        /// The sizes of the result.
        broadcast: Vec<usize>,
    },
    /// A tensor that has several elements in one place is written to.
    #[error(
        "unsupported operation: more than one element of the written-to tensor refers to a single memory location. \
         Please clone() the tensor before performing the operation."
    )]
    OverlappingWrite,
    /// A dimension does not exist.
    #[error(
        "Dimension out of range (expected to be in range of [{lowest}, {highest}], but got {dimension})"
    )]
    DimensionOutOfRange {
        /// The lowest that does.
        lowest: i64,
        /// The highest that does.
        highest: i64,
        /// The one asked for.
        dimension: i64,
    },
    /// A dimension is named twice.
    #[error("dim {dimension} appears multiple times in the list of dims")]
    RepeatedDimension {
        /// The dimension.
        dimension: usize,
    },
    /// `t` was called on a tensor with more than two dimensions.
    #[error("t() expects a tensor with <= 2 dimensions, but self is {rank}D")]
    NotAMatrix {
        /// How many it has.
        rank: usize,
    },
    /// A shape does not hold as many elements as the tensor.
    #[error("shape '{shape:?}' is invalid for input of size {count}")]
    InvalidShape {
        /// The shape asked for.
        shape: Vec<i64>,
        /// How many elements there are.
        count: usize,
    },
    /// A shape has a size below minus one.
    #[error("invalid shape dimension {size} at index {dimension} of shape {shape:?}")]
    InvalidShapeDimension {
        /// The size.
        size: i64,
        /// Where it stands.
        dimension: usize,
        /// The shape asked for.
        shape: Vec<i64>,
    },
    /// More than one size of a shape is left open.
    #[error("only one dimension can be inferred")]
    TwoInferred,
    /// The open size of a shape without elements could be anything.
    #[error(
        "cannot reshape tensor of 0 elements into shape {shape:?} because the unspecified dimension size -1 can be \
         any value and is ambiguous"
    )]
    AmbiguousShape {
        /// The shape asked for.
        shape: Vec<i64>,
    },
    /// A shape cannot be had without copying.
    #[error(
        "view size is not compatible with input tensor's size and stride (at least one dimension spans across two \
         contiguous subspaces). Use .reshape(...) instead."
    )]
    ViewNeedsCopy,
    /// A new tensor has a negative size.
    #[error("Trying to create tensor with negative dimension {size}: {sizes:?}")]
    NegativeDimension {
        /// The size.
        size: i64,
        /// All sizes.
        sizes: Vec<i64>,
    },
    /// `zeros` was given a negative size.
    #[error("zeros: Dimension size must be non-negative.")]
    NegativeZeros,
    /// The bytes of a tensor cannot be counted.
    #[error("Storage size calculation overflowed with sizes={sizes:?}")]
    StorageOverflow {
        /// The sizes asked for.
        sizes: Vec<i64>,
    },
    /// The strides of a tensor cannot be counted.
    #[error("Stride calculation overflowed")]
    StrideOverflow,
    /// The elements of a tensor cannot be counted.
    #[error("numel: integer multiplication overflow")]
    CountOverflow,
    /// The system gave no memory.
    #[error(
        "DefaultCPUAllocator: can't allocate memory: you tried to allocate {bytes} bytes. Error code 12 (Cannot \
         allocate memory)"
    )]
    OutOfMemory {
        /// How much was asked for.
        bytes: usize,
    },
    /// The number of values and the shape differ.
    #[error("expected {expected} values for sizes {sizes:?}, found {found}")]
    WrongCount {
        /// How many the sizes call for.
        expected: usize,
        /// How many came.
        found: usize,
        /// The sizes.
        sizes: Vec<i64>,
    },
    /// A view reaches beyond its storage.
    #[error(
        "setStorage: sizes {sizes:?}, strides {strides:?}, storage offset {offset}, and itemsize {item_bytes} \
         requiring a storage size of {needed} are out of bounds for storage of size {available}"
    )]
    OutOfBounds {
        /// The sizes asked for.
        sizes: Vec<usize>,
        /// The strides asked for.
        strides: Vec<isize>,
        /// The offset asked for, in elements.
        offset: usize,
        /// The bytes of an element.
        item_bytes: usize,
        /// The bytes that it would take.
        needed: usize,
        /// The bytes that there are.
        available: usize,
    },
    /// A number does not fit into the type.
    #[error("value cannot be converted to type {name} without overflow")]
    ScalarOverflow {
        /// The name of the type.
        name: &'static str,
    },
    /// `item` was called on a tensor that does not hold one element.
    #[error("a Tensor with {count} elements cannot be converted to Scalar")]
    NotOneElement {
        /// How many it holds.
        count: usize,
    },
    /// Integers are scaled by a fraction.
    #[error("For integral input tensors, argument alpha must not be a floating point number.")]
    FractionalAlpha,
    /// Numbers are scaled by a truth value.
    #[error("Boolean alpha only supported for Boolean results.")]
    BooleanAlpha,
    /// Two truth values are subtracted.
    #[error(
        "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` \
         operator instead."
    )]
    BooleanSubtraction,
    /// A truth value is subtracted from a number, or the other way round.
    #[error(
        "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use \
         the `~` or `logical_not()` operator instead."
    )]
    MixedBooleanSubtraction,
    /// A truth value is negated.
    #[error(
        "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the \
         `~` or `logical_not()` operator instead."
    )]
    BooleanNegation,
    /// `relu` was called on truth values.
    #[error("Boolean inputs not supported for relu")]
    BooleanRelu,
    /// A mean is taken of, or in, something that is not floating-point.
    #[error(
        "mean(): could not infer output dtype. {subject} dtype must be either a floating point or complex dtype. Got: \
         {}", .dtype.title()
    )]
    MeanOfIntegers {
        /// `Input` or `Optional`.
        subject: &'static str,
        /// The type.
        dtype: DType,
    },
    /// A kernel does not know the type.
    #[error("\"{kernel}\" not implemented for '{}'", .dtype.title())]
    NotImplemented {
        /// The kernel.
        kernel: &'static str,
        /// The type.
        dtype: DType,
    },
    /// A product has an operand without dimensions.
    #[error("both arguments to matmul need to be at least 1D, but they are {left}D and {right}D")]
    MatmulRank {
        /// The dimensions of the first.
        left: usize,
        /// The dimensions of the second.
        right: usize,
    },
    /// An operand of `mm` is no matrix.
    #[error("mm: {operand} must be a matrix, got {rank}-D tensor")]
    MmRank {
        /// Which operand.
        operand: &'static str,
        /// Its dimensions.
        rank: usize,
    },
    /// The inner sizes of two matrices differ.
    #[error(
        "mm: mat1 and mat2 shapes cannot be multiplied ({}x{} and {}x{})",
        .left[0], .left[1], .right[0], .right[1]
    )]
    MmShapes {
        /// The sizes of the first.
        left: [usize; 2],
        /// The sizes of the second.
        right: [usize; 2],
    },
    /// The types of two matrices differ.
    #[error(
        "expected m1 and m2 to have the same dtype, but got: {} != {}",
        .left.native_name(), .right.native_name()
    )]
    MmTypes {
        /// The type of the first.
        left: DType,
        /// The type of the second.
        right: DType,
    },
    /// The operands of `mv` are not a matrix and a vector.
    #[error("vector + matrix @ vector expected, got 1, {matrix}, {vector}")]
    MvRank {
        /// The dimensions of the first.
        matrix: usize,
        /// The dimensions of the second.
        vector: usize,
    },
    /// A matrix and a vector do not fit.
    #[error(
        "size mismatch, got input ({}), mat ({}x{}), vec ({vector})",
        .matrix[0], .matrix[0], .matrix[1]
    )]
    MvShapes {
        /// The sizes of the matrix.
        matrix: [usize; 2],
        /// The size of the vector.
        vector: usize,
    },
    /// The types of a matrix and a vector differ.
    #[error(
        "addmv input tensors must have the same dtype, but got {}, {}, and {}",
        .vector.title(), .matrix.title(), .vector.title()
    )]
    MvTypes {
        /// The type of the matrix.
        matrix: DType,
        /// The type of the vector.
        vector: DType,
    },
    /// An operand of `dot` is no vector.
    #[error("1D tensors expected, but got {left}D and {right}D tensors")]
    DotRank {
        /// The dimensions of the first.
        left: usize,
        /// The dimensions of the second.
        right: usize,
    },
    /// The sizes of two vectors differ.
    #[error(
        "inconsistent tensor size, expected tensor [{left}] and src [{right}] to have the same number of elements, \
         but got {left} and {right} elements respectively"
    )]
    DotShapes {
        /// The size of the first.
        left: usize,
        /// The size of the second.
        right: usize,
    },
    /// The types of two vectors differ.
    #[error(
        "dot : expected both vectors to have same dtype, but found {} and {}",
        .left.title(), .right.title()
    )]
    DotTypes {
        /// The type of the first.
        left: DType,
        /// The type of the second.
        right: DType,
    },
    /// An operand of `bmm` is no batch of matrices.
    #[error("batch{operand} must be a 3D tensor")]
    BmmRank {
        /// Which operand, from one.
        operand: u8,
    },
    /// Two batches do not fit.
    #[error(
        "Expected size for first two dimensions of batch2 tensor to be: {expected:?} but got: {found:?}."
    )]
    BmmShapes {
        /// The sizes that the first calls for.
        expected: [usize; 2],
        /// The sizes of the second.
        found: [usize; 2],
    },
    /// The types of two batches differ.
    #[error("expected scalar type {} but found {}", .left.title(), .right.title())]
    BmmTypes {
        /// The type of the first.
        left: DType,
        /// The type of the second.
        right: DType,
    },
}

impl Error {
    /// Returns the Python exception that torch raises for this.
    pub fn exception(&self) -> Exception {
        match self {
            Self::DimensionOutOfRange { .. } => Exception::Index,
            Self::WrongCount { .. } => Exception::Value,
            Self::BooleanSubtraction
            | Self::MixedBooleanSubtraction
            | Self::BooleanNegation
            | Self::BooleanRelu
            | Self::MeanOfIntegers { .. }
            | Self::NotImplemented { .. } => Exception::NotImplemented,
            Self::Broadcast { .. }
            | Self::Expand { .. }
            | Self::ExpandTooFew { .. }
            | Self::ExpandLeading { .. }
            | Self::OutputShape { .. }
            | Self::OverlappingWrite
            | Self::RepeatedDimension { .. }
            | Self::NotAMatrix { .. }
            | Self::InvalidShape { .. }
            | Self::InvalidShapeDimension { .. }
            | Self::TwoInferred
            | Self::AmbiguousShape { .. }
            | Self::ViewNeedsCopy
            | Self::NegativeDimension { .. }
            | Self::NegativeZeros
            | Self::StorageOverflow { .. }
            | Self::StrideOverflow
            | Self::CountOverflow
            | Self::OutOfMemory { .. }
            | Self::OutOfBounds { .. }
            | Self::ScalarOverflow { .. }
            | Self::NotOneElement { .. }
            | Self::FractionalAlpha
            | Self::BooleanAlpha
            | Self::MatmulRank { .. }
            | Self::MmRank { .. }
            | Self::MmShapes { .. }
            | Self::MmTypes { .. }
            | Self::MvRank { .. }
            | Self::MvShapes { .. }
            | Self::MvTypes { .. }
            | Self::DotRank { .. }
            | Self::DotShapes { .. }
            | Self::DotTypes { .. }
            | Self::BmmRank { .. }
            | Self::BmmShapes { .. }
            | Self::BmmTypes { .. } => Exception::Runtime,
        }
    }
}
