//! The errors of the runtime, with torch's messages, which users know and search for.
//!
//! Operators return these errors. The Python binding raises [`Error::exception`] with the error's
//! text.

use thiserror::Error as ThisError;

use crate::{DType, Exception};

/// The result type of operators.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A call that the runtime cannot carry out.
///
/// The messages are torch's, including their capitalization, because programs match on them.
/// Conditions that only one operator checks use [`Error::Rejected`] with a formatted message.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// Two shapes do not broadcast.
    #[error(
        "The size of tensor a ({left}) must match the size of tensor b ({right}) at non-singleton dimension {dimension}"
    )]
    Broadcast {
        /// The size of the first operand.
        left: usize,
        /// The size of the second operand.
        right: usize,
        /// The dimension of the result at which the sizes differ.
        dimension: usize,
    },
    /// A shape is expanded to an incompatible one.
    #[error(
        "The expanded size of the tensor ({wanted}) must match the existing size ({existing}) at non-singleton \
         dimension {dimension}.  Target sizes: {target:?}.  Tensor sizes: {sizes:?}"
    )]
    Expand {
        /// The requested size.
        wanted: i64,
        /// The existing size.
        existing: usize,
        /// The dimension of the result.
        dimension: usize,
        /// All requested sizes.
        target: Vec<i64>,
        /// All existing sizes.
        sizes: Vec<usize>,
    },
    /// A shape is expanded to fewer dimensions than it has.
    #[error(
        "expand(torch.{}Tensor{{{sizes:?}}}, size={target:?}): the number of sizes provided ({}) must be greater or \
         equal to the number of dimensions in the tensor ({})",
        .dtype.title(), .target.len(), .sizes.len()
    )]
    ExpandTooFew {
        /// The dtype of the tensor.
        dtype: DType,
        /// The requested sizes.
        target: Vec<i64>,
        /// The existing sizes.
        sizes: Vec<usize>,
    },
    /// A new leading dimension has size -1, but there is no existing size to keep.
    #[error(
        "The expanded size of the tensor ({wanted}) isn't allowed in a leading, non-existing dimension {dimension}"
    )]
    ExpandLeading {
        /// The requested size.
        wanted: i64,
        /// The dimension of the result.
        dimension: usize,
    },
    /// The result of an operator does not match the shape of its output tensor.
    #[error("output with shape {shape:?} doesn't match the broadcast shape {broadcast:?}")]
    OutputShape {
        /// The sizes of the output tensor.
        shape: Vec<usize>,
        /// The sizes of the result.
        broadcast: Vec<usize>,
    },
    /// The output tensor has several elements at the same position.
    #[error(
        "unsupported operation: more than one element of the written-to tensor refers to a single memory location. \
         Please clone() the tensor before performing the operation."
    )]
    OverlappingWrite,
    /// An input overlaps with the output.
    #[error(
        "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory \
         location. Please clone() the tensor before performing the operation."
    )]
    OverlappingRead,
    /// A dimension does not exist.
    #[error(
        "Dimension out of range (expected to be in range of [{lowest}, {highest}], but got {dimension})"
    )]
    DimensionOutOfRange {
        /// The lowest valid dimension.
        lowest: i64,
        /// The highest valid dimension.
        highest: i64,
        /// The requested dimension.
        dimension: i64,
    },
    /// A dimension is repeated.
    #[error("dim {dimension} appears multiple times in the list of dims")]
    RepeatedDimension {
        /// The dimension.
        dimension: usize,
    },
    /// `t` was called on a tensor with more than two dimensions.
    #[error("t() expects a tensor with <= 2 dimensions, but self is {rank}D")]
    NotAMatrix {
        /// The number of dimensions.
        rank: usize,
    },
    /// A shape does not match the number of elements.
    #[error("shape '{shape:?}' is invalid for input of size {count}")]
    InvalidShape {
        /// The requested shape.
        shape: Vec<i64>,
        /// The number of elements.
        count: usize,
    },
    /// A shape has a size below -1.
    #[error("invalid shape dimension {size} at index {dimension} of shape {shape:?}")]
    InvalidShapeDimension {
        /// The size.
        size: i64,
        /// The position of the size in the shape.
        dimension: usize,
        /// The requested shape.
        shape: Vec<i64>,
    },
    /// More than one size of a shape is -1.
    #[error("only one dimension can be inferred")]
    TwoInferred,
    /// The inferred size of an empty tensor is ambiguous.
    #[error(
        "cannot reshape tensor of 0 elements into shape {shape:?} because the unspecified dimension size -1 can be \
         any value and is ambiguous"
    )]
    AmbiguousShape {
        /// The requested shape.
        shape: Vec<i64>,
    },
    /// A shape cannot be expressed without a copy.
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
    /// The size of a tensor in bytes overflows.
    #[error("Storage size calculation overflowed with sizes={sizes:?}")]
    StorageOverflow {
        /// The requested sizes.
        sizes: Vec<i64>,
    },
    /// The strides of a tensor overflow.
    #[error("Stride calculation overflowed")]
    StrideOverflow,
    /// The number of elements overflows.
    #[error("numel: integer multiplication overflow")]
    CountOverflow,
    /// Memory allocation fails.
    #[error(
        "DefaultCPUAllocator: can't allocate memory: you tried to allocate {bytes} bytes. Error code 12 (Cannot \
         allocate memory)"
    )]
    OutOfMemory {
        /// The requested number of bytes.
        bytes: usize,
    },
    /// The number of values does not match the shape.
    #[error("expected {expected} values for sizes {sizes:?}, found {found}")]
    WrongCount {
        /// The number of elements that the sizes require.
        expected: usize,
        /// The number of values given.
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
        /// The requested sizes.
        sizes: Vec<usize>,
        /// The requested strides.
        strides: Vec<isize>,
        /// The requested offset, in elements.
        offset: usize,
        /// The size of an element in bytes.
        item_bytes: usize,
        /// The number of bytes required.
        needed: usize,
        /// The number of bytes available.
        available: usize,
    },
    /// A number does not fit into the dtype.
    #[error("value cannot be converted to type {name} without overflow")]
    ScalarOverflow {
        /// The C++ name of the dtype.
        name: &'static str,
    },
    /// `item` was called on a tensor that does not have exactly one element.
    #[error("a Tensor with {count} elements cannot be converted to Scalar")]
    NotOneElement {
        /// The number of elements.
        count: usize,
    },
    /// Integers are scaled by a fraction.
    #[error("For integral input tensors, argument alpha must not be a floating point number.")]
    FractionalAlpha,
    /// Numbers are scaled by a boolean.
    #[error("Boolean alpha only supported for Boolean results.")]
    BooleanAlpha,
    /// A boolean tensor is subtracted from another.
    #[error(
        "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` \
         operator instead."
    )]
    BooleanSubtraction,
    /// A boolean is subtracted from a number, or the other way round.
    #[error(
        "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use \
         the `~` or `logical_not()` operator instead."
    )]
    MixedBooleanSubtraction,
    /// A boolean tensor is negated.
    #[error(
        "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the \
         `~` or `logical_not()` operator instead."
    )]
    BooleanNegation,
    /// `relu` was called on booleans.
    #[error("Boolean inputs not supported for relu")]
    BooleanRelu,
    /// A mean has a dtype that is not floating-point.
    #[error(
        "mean(): could not infer output dtype. {subject} dtype must be either a floating point or complex dtype. Got: \
         {}", .dtype.title()
    )]
    MeanOfIntegers {
        /// `Input` or `Optional`.
        subject: &'static str,
        /// The dtype.
        dtype: DType,
    },
    /// A kernel does not support the dtype.
    #[error("\"{kernel}\" not implemented for '{}'", .dtype.title())]
    NotImplemented {
        /// The name of the kernel.
        kernel: &'static str,
        /// The dtype.
        dtype: DType,
    },
    /// An operand of a matrix product is zero-dimensional.
    #[error("both arguments to matmul need to be at least 1D, but they are {left}D and {right}D")]
    MatmulRank {
        /// The rank of the first operand.
        left: usize,
        /// The rank of the second operand.
        right: usize,
    },
    /// An operand of `mm` is not a matrix.
    #[error("mm: {operand} must be a matrix, got {rank}-D tensor")]
    MmRank {
        /// The name of the operand.
        operand: &'static str,
        /// The rank of the operand.
        rank: usize,
    },
    /// The inner sizes of two matrices differ.
    #[error(
        "mm: mat1 and mat2 shapes cannot be multiplied ({}x{} and {}x{})",
        .left[0], .left[1], .right[0], .right[1]
    )]
    MmShapes {
        /// The sizes of the first matrix.
        left: [usize; 2],
        /// The sizes of the second matrix.
        right: [usize; 2],
    },
    /// The dtypes of two matrices differ.
    #[error(
        "expected m1 and m2 to have the same dtype, but got: {} != {}",
        .left.native_name(), .right.native_name()
    )]
    MmTypes {
        /// The dtype of the first matrix.
        left: DType,
        /// The dtype of the second matrix.
        right: DType,
    },
    /// The operands of `mv` are not a matrix and a vector.
    #[error("vector + matrix @ vector expected, got 1, {matrix}, {vector}")]
    MvRank {
        /// The rank of the first operand.
        matrix: usize,
        /// The rank of the second operand.
        vector: usize,
    },
    /// The sizes of a matrix and a vector do not match.
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
    /// The dtypes of a matrix and a vector differ.
    #[error(
        "addmv input tensors must have the same dtype, but got {}, {}, and {}",
        .vector.title(), .matrix.title(), .vector.title()
    )]
    MvTypes {
        /// The dtype of the matrix.
        matrix: DType,
        /// The dtype of the vector.
        vector: DType,
    },
    /// An operand of `dot` is not a vector.
    #[error("1D tensors expected, but got {left}D and {right}D tensors")]
    DotRank {
        /// The rank of the first operand.
        left: usize,
        /// The rank of the second operand.
        right: usize,
    },
    /// The sizes of two vectors differ.
    #[error(
        "inconsistent tensor size, expected tensor [{left}] and src [{right}] to have the same number of elements, \
         but got {left} and {right} elements respectively"
    )]
    DotShapes {
        /// The size of the first vector.
        left: usize,
        /// The size of the second vector.
        right: usize,
    },
    /// The dtypes of two vectors differ.
    #[error(
        "dot : expected both vectors to have same dtype, but found {} and {}",
        .left.title(), .right.title()
    )]
    DotTypes {
        /// The dtype of the first vector.
        left: DType,
        /// The dtype of the second vector.
        right: DType,
    },
    /// An operand of `bmm` is not a batch of matrices.
    #[error("batch{operand} must be a 3D tensor")]
    BmmRank {
        /// The number of the operand, starting at one.
        operand: u8,
    },
    /// The sizes of two batches do not match.
    #[error(
        "Expected size for first two dimensions of batch2 tensor to be: {expected:?} but got: {found:?}."
    )]
    BmmShapes {
        /// The sizes that the first batch requires.
        expected: [usize; 2],
        /// The sizes of the second batch.
        found: [usize; 2],
    },
    /// The dtypes of two batches differ.
    #[error("expected scalar type {} but found {}", .left.title(), .right.title())]
    BmmTypes {
        /// The dtype of the first batch.
        left: DType,
        /// The dtype of the second batch.
        right: DType,
    },
    /// A saved tensor was modified before its autograd node ran.
    #[error(
        "one of the variables needed for gradient computation has been modified by an inplace operation: \
         [torch.{}Tensor {dims:?}]{origin} is at version {version}; expected version {expected} instead. Hint: enable \
         anomaly detection to find the operation that failed to compute its gradient, with \
         torch.autograd.set_detect_anomaly(True).", .dtype.title()
    )]
    SavedModified {
        /// The dtype of the tensor.
        dtype: DType,
        /// The sizes of the tensor.
        dims: Vec<usize>,
        /// A clause that names the operator which produced the tensor.
        origin: String,
        /// The current version.
        version: u32,
        /// The version when the tensor was saved.
        expected: u32,
    },
    /// A graph is walked again after its saved tensors were freed.
    #[error(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already \
         been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). \
         Specify retain_graph=True if you need to backward through the graph a second time or if you need to access \
         saved tensors after calling backward."
    )]
    GraphFreed,
    /// An autograd node returned a gradient whose shape does not match its operand.
    #[error(
        "Function {node} returned an invalid gradient at index {index} - got {found:?} but expected shape compatible \
         with {expected:?}"
    )]
    GradientShape {
        /// The name of the node.
        node: String,
        /// The index of the gradient.
        index: usize,
        /// The sizes of the gradient.
        found: Vec<usize>,
        /// The sizes of the operand.
        expected: Vec<usize>,
    },
    /// The shape of a gradient given by the caller does not match its result.
    #[error(
        "Mismatch in shape: grad_output[{index}] has a shape of torch.Size({found:?}) and output[{index}] has a shape \
         of torch.Size({expected:?})."
    )]
    OutputGradientShape {
        /// The index of the result.
        index: usize,
        /// The sizes of the gradient.
        found: Vec<usize>,
        /// The sizes of the result.
        expected: Vec<usize>,
    },
    /// `backward` was called on a tensor that does not require gradients.
    #[error("element {index} of tensors does not require grad and does not have a grad_fn")]
    BackwardWithoutGrad {
        /// The index of the tensor.
        index: usize,
    },
    /// `backward` was called on a tensor with several elements without a gradient for it.
    #[error("grad can be implicitly created only for scalar outputs")]
    BackwardOfMany,
    /// A gradient is requested for a tensor that does not require gradients.
    #[error("One of the differentiated Tensors does not require grad")]
    InputWithoutGrad,
    /// A gradient is requested for a tensor that the results do not depend on.
    #[error(
        "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this \
         is the desired behavior."
    )]
    UnusedInput,
    /// An in-place operator writes to a leaf that requires gradients.
    #[error("a leaf Variable that requires grad is being used in an in-place operation.")]
    InPlaceOnLeaf,
    /// An in-place operator writes to a view of a leaf that requires gradients.
    #[error("a view of a leaf Variable that requires grad is being used in an in-place operation.")]
    InPlaceOnLeafView,
    /// A tensor that requires gradients is written through a view of one that does not.
    #[error(
        "a view of a tensor that does not require grad is being written to with one that does: index the tensor itself \
         in the assignment"
    )]
    InPlaceOnUntrackedView,
    /// A view is detached in place.
    #[error(
        "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for \
         training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence \
         detach_() cannot be called on these gradients. To fix this error, please refer to the Optimizer.zero_grad() \
         function in torch/optim/optimizer.py as the solution."
    )]
    DetachView,
    /// Gradients are required for elements that are not floating-point.
    #[error("only Tensors of floating point and complex dtype can require gradients")]
    RequiresGradOfIntegers,
    /// `requires_grad` is turned off for a result of a tracked operator.
    #[error(
        "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a \
         subgraph that doesn't require differentiation use var_no_grad = var.detach()."
    )]
    RequiresGradOfResult,
    /// `retain_grad` was called on a tensor that does not require gradients.
    #[error("can't retain_grad on Tensor that has requires_grad=False")]
    RetainWithoutGrad,
    /// A hook is registered on a tensor that does not require gradients.
    #[error("cannot register a hook on a tensor that doesn't require gradient")]
    HookWithoutGrad,
    /// The dtype of an assigned gradient does not match the tensor.
    #[error(
        "attempting to assign a gradient with dtype '{}' to a tensor with grad_dtype '{}'. The gradient must match the \
         tensor's grad_dtype (defaults to the tensor's dtype). You can set the tensor's grad_dtype attribute with a \
         specific dtype, or None to allow any dtype. Set grad_dtype with caution. Diverging the dtypes of a tensor and \
         its gradient may break downstream systems that assume they match.",
        .found.native_name(), .expected.native_name()
    )]
    GradType {
        /// The dtype of the tensor.
        expected: DType,
        /// The dtype of the gradient.
        found: DType,
    },
    /// The shape of an assigned gradient does not match the tensor.
    #[error(
        "assigned grad has data of a different size: expected shape {expected:?}, found {found:?}"
    )]
    GradShape {
        /// The sizes of the tensor.
        expected: Vec<usize>,
        /// The sizes of the gradient.
        found: Vec<usize>,
    },
    /// The result of an operator cannot be cast to the dtype of its output tensor.
    #[error(
        "result type {} can't be cast to the desired output type {}",
        .result.title(), .output.title()
    )]
    ResultType {
        /// The dtype of the result.
        result: DType,
        /// The dtype of the output tensor.
        output: DType,
    },
    /// An integer is divided by zero.
    #[error("ZeroDivisionError")]
    DivisionByZero,
    /// A hook returned a gradient of another dtype.
    #[error(
        "hook '{hook}' has changed the type of value (was torch.{}Tensor got torch.{}Tensor)",
        .was.title(), .found.title()
    )]
    HookType {
        /// The name of the hook.
        hook: String,
        /// The dtype of the gradient that the hook received.
        was: DType,
        /// The dtype of the gradient that the hook returned.
        found: DType,
    },
    /// A hook returned a gradient of another size.
    #[error("hook '{hook}' has changed the size of value")]
    HookSize {
        /// The name of the hook.
        hook: String,
    },
    /// A hook or function of the user failed; the binding keeps the exception.
    #[error("a function of the user failed")]
    Callback,
    /// An operator rejects its arguments; the message says which ones and why.
    #[error("{message}")]
    Rejected {
        /// The Python exception to raise.
        exception: Exception,
        /// The message.
        message: String,
    },
}

/// Returns an [`Error::Rejected`] with a formatted message from the enclosing function.
macro_rules! reject {
    ($exception:ident, $($format:tt)+) => {
        Err($crate::Error::Rejected {
            exception: $crate::Exception::$exception,
            message: format!($($format)+),
        })
    };
}
pub(crate) use reject;
