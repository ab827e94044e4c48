//! What can go wrong in the runtime, in the words that users of torch know and search for.
//!
//! Operators return these; the Python binding raises [`Error::exception`] with the error's text.

use thiserror::Error as ThisError;

use crate::{DType, Exception};

/// The result of an operator.
pub type Result<T, E = Error> = std::result::Result<T, E>;

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
    /// A tensor that is read lies where another is written.
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
    /// A saved tensor was written to before its node ran.
    #[error(
        "one of the variables needed for gradient computation has been modified by an inplace operation: \
         [torch.{}Tensor {dims:?}]{origin} is at version {version}; expected version {expected} instead. Hint: enable \
         anomaly detection to find the operation that failed to compute its gradient, with \
         torch.autograd.set_detect_anomaly(True).", .dtype.title()
    )]
    SavedModified {
        /// Its type.
        dtype: DType,
        /// Its sizes.
        dims: Vec<usize>,
        /// What it is a result of, as a part of the sentence.
        origin: String,
        /// The version that it has.
        version: u32,
        /// The version that it had.
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
    /// A node gave a gradient of another shape than its operand's.
    #[error(
        "Function {node} returned an invalid gradient at index {index} - got {found:?} but expected shape compatible \
         with {expected:?}"
    )]
    GradientShape {
        /// The node.
        node: String,
        /// Which gradient.
        index: usize,
        /// The sizes that it has.
        found: Vec<usize>,
        /// The sizes of the operand.
        expected: Vec<usize>,
    },
    /// A gradient that the caller gave has another shape than its result.
    #[error(
        "Mismatch in shape: grad_output[{index}] has a shape of torch.Size({found:?}) and output[{index}] has a shape \
         of torch.Size({expected:?})."
    )]
    OutputGradientShape {
        /// Which result.
        index: usize,
        /// The sizes of the gradient.
        found: Vec<usize>,
        /// The sizes of the result.
        expected: Vec<usize>,
    },
    /// `backward` was called on a tensor that is not tracked.
    #[error("element {index} of tensors does not require grad and does not have a grad_fn")]
    BackwardWithoutGrad {
        /// Which of the tensors.
        index: usize,
    },
    /// `backward` was called on several elements without their gradients.
    #[error("grad can be implicitly created only for scalar outputs")]
    BackwardOfMany,
    /// A gradient is wanted for a tensor that is not tracked.
    #[error("One of the differentiated Tensors does not require grad")]
    InputWithoutGrad,
    /// A gradient is wanted for a tensor that the results do not depend on.
    #[error(
        "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this \
         is the desired behavior."
    )]
    UnusedInput,
    /// A leaf that is tracked is written to.
    #[error("a leaf Variable that requires grad is being used in an in-place operation.")]
    InPlaceOnLeaf,
    /// A view of a leaf that is tracked is written to.
    #[error("a view of a leaf Variable that requires grad is being used in an in-place operation.")]
    InPlaceOnLeafView,
    /// Tracked elements are written through a view that was made of an untracked tensor.
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
    /// Tracking is asked for elements that are not floating-point.
    #[error("only Tensors of floating point and complex dtype can require gradients")]
    RequiresGradOfIntegers,
    /// Tracking of a result is turned off.
    #[error(
        "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a \
         subgraph that doesn't require differentiation use var_no_grad = var.detach()."
    )]
    RequiresGradOfResult,
    /// A tensor that is not tracked is to keep its gradient.
    #[error("can't retain_grad on Tensor that has requires_grad=False")]
    RetainWithoutGrad,
    /// A hook is put on a tensor that is not tracked.
    #[error("cannot register a hook on a tensor that doesn't require gradient")]
    HookWithoutGrad,
    /// A gradient of another type is assigned.
    #[error(
        "attempting to assign a gradient with dtype '{}' to a tensor with grad_dtype '{}'. The gradient must match the \
         tensor's grad_dtype (defaults to the tensor's dtype). You can set the tensor's grad_dtype attribute with a \
         specific dtype, or None to allow any dtype. Set grad_dtype with caution. Diverging the dtypes of a tensor and \
         its gradient may break downstream systems that assume they match.",
        .found.native_name(), .expected.native_name()
    )]
    GradType {
        /// The type of the tensor.
        expected: DType,
        /// The type of the gradient.
        found: DType,
    },
    /// A gradient of another shape is assigned.
    #[error(
        "assigned grad has data of a different size: expected shape {expected:?}, found {found:?}"
    )]
    GradShape {
        /// The sizes of the tensor.
        expected: Vec<usize>,
        /// The sizes of the gradient.
        found: Vec<usize>,
    },
    /// The result of an operator cannot be kept in the type of the tensor that it is written into.
    #[error(
        "result type {} can't be cast to the desired output type {}",
        .result.title(), .output.title()
    )]
    ResultType {
        /// The type of the result.
        result: DType,
        /// The type of the tensor.
        output: DType,
    },
    /// An integer is divided by zero.
    #[error("ZeroDivisionError")]
    DivisionByZero,
    /// A hook returned a gradient of another type.
    #[error(
        "hook '{hook}' has changed the type of value (was torch.{}Tensor got torch.{}Tensor)",
        .was.title(), .found.title()
    )]
    HookType {
        /// The name of the hook.
        hook: String,
        /// The type of the gradient that arrived.
        was: DType,
        /// The type of what the hook returned.
        found: DType,
    },
    /// A hook returned a gradient of another size.
    #[error("hook '{hook}' has changed the size of value")]
    HookSize {
        /// The name of the hook.
        hook: String,
    },
    /// A hook or a function of the user failed; the binding knows how.
    #[error("a function of the user failed")]
    Callback,
    /// An operator was given arguments that it cannot work with; the message says which and why.
    #[error("{message}")]
    Rejected {
        /// What is raised.
        exception: Exception,
        /// What is wrong.
        message: String,
    },
}

/// Returns an error about arguments, with a message that is formatted.
macro_rules! reject {
    ($exception:ident, $($format:tt)+) => {
        Err($crate::Error::Rejected {
            exception: $crate::Exception::$exception,
            message: format!($($format)+),
        })
    };
}
pub(crate) use reject;
