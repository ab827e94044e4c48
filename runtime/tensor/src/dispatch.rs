//! Reports operators and their arguments to the recorder.
//!
//! Every operator declares a [`Site`] and holds the [`Scope`] that [`open`] returns until it is
//! done. Arguments are encoded in the order of torch's schema, one entry per argument, and only
//! while shapes are recorded. Composed operators, storage and backward nodes report themselves.

#![expect(
    clippy::inline_always,
    reason = "the comparison of inputs keeps its state in registers, which a call would spill"
)]

use std::sync::atomic::{AtomicBool, Ordering};

use mindprof_record::{InputsRewriter, is_recording, result, scope_with, wants_results};
pub(crate) use mindprof_record::{Scope, Site};
use smallvec::SmallVec;

use crate::autograd::next_sequence;
use crate::{DType, Result, Scalar, Tensor};

/// The longest list of numbers whose values are recorded.
const LIST_LIMIT: usize = 30;

/// Whether the values of number lists are recorded.
static LIST_VALUES: AtomicBool = AtomicBool::new(true);

/// Sets whether the values of number lists are recorded along with shapes.
pub fn set_list_values_recorded(recorded: bool) {
    // Relaxed: nothing else is published through it.
    LIST_VALUES.store(recorded, Ordering::Relaxed);
}

/// Opens the scope of an operator, which closes when the returned value is dropped.
#[inline]
#[must_use = "the scope closes when this value is dropped"]
pub(crate) fn open<A: Arguments>(site: &'static Site, arguments: A) -> Scope {
    let mut scope = scope_with(site, move |encoder| arguments.encode(encoder));
    if A::HAS_TENSOR
        && is_recording()
        && let Some(sequence) = next_sequence()
    {
        // Operators that are not differentiable carry a sequence number too, as in torch.
        scope.set_sequence(sequence);
    }
    scope
}

/// An argument that is absent, or whose value is not recorded: a generator or a memory format.
pub(crate) struct Absent;

/// A device argument that the caller passed explicitly; it is always the CPU.
pub(crate) struct Device;

/// Records the result of the innermost open operator, for execution traces.
#[inline]
pub(crate) fn returns(tensor: &Tensor) {
    if wants_results() {
        result(tensor.storage_address() as u64, |encoder| {
            tensor.encode(encoder);
        });
    }
}

/// Records a result as [`returns`] does, and passes it on.
pub(crate) fn returning(result: Result<Tensor>) -> Result<Tensor> {
    result.inspect(returns)
}

/// An argument of an operator that can be encoded for the recorder.
pub(crate) trait Argument {
    /// Whether the argument is a tensor or a list of tensors.
    const IS_TENSOR: bool = false;

    fn encode(&self, encoder: &mut InputsRewriter<'_>);
}

/// The arguments of an operator, as a tuple in the order of its schema.
///
/// Tuples of up to thirteen arguments implement it.
pub(crate) trait Arguments {
    /// Whether one of the arguments is a tensor, so that the operator can be part of a graph.
    const HAS_TENSOR: bool;

    fn encode(self, encoder: &mut InputsRewriter<'_>);
}

impl Argument for Tensor {
    const IS_TENSOR: bool = true;

    #[inline(always)]
    fn encode(&self, encoder: &mut InputsRewriter<'_>) {
        encoder.storage(self.storage_address() as u64);
        if self.offset() != 0 {
            encode_offset(self, encoder);
        }
        encoder.tensor(self.dtype().into(), self.dims(), self.strides());
    }
}

/// Encodes the storage offset, only while results are recorded.
///
/// Otherwise views that differ only in their offset are interned as the same input.
#[cold]
fn encode_offset(tensor: &Tensor, encoder: &mut InputsRewriter<'_>) {
    if wants_results() {
        encoder.offset(tensor.offset());
    }
}

impl Argument for [&Tensor] {
    const IS_TENSOR: bool = true;

    #[inline]
    fn encode(&self, encoder: &mut InputsRewriter<'_>) {
        encoder.tensor_list(self.len());
        for tensor in self {
            tensor.encode(encoder);
        }
    }
}

impl Argument for [Tensor] {
    const IS_TENSOR: bool = true;

    #[inline]
    fn encode(&self, encoder: &mut InputsRewriter<'_>) {
        encoder.tensor_list(self.len());
        for tensor in self {
            tensor.encode(encoder);
        }
    }
}

impl Argument for Absent {
    #[inline]
    fn encode(&self, encoder: &mut InputsRewriter<'_>) {
        encoder.other();
    }
}

impl Argument for Device {
    #[inline]
    fn encode(&self, encoder: &mut InputsRewriter<'_>) {
        encoder.device();
    }
}

impl Argument for Scalar {
    #[inline(always)]
    fn encode(&self, encoder: &mut InputsRewriter<'_>) {
        match *self {
            Self::Bool(value) => encoder.bool(value),
            Self::Int(value) => encoder.int(value),
            Self::Float(value) => encoder.float(value),
        }
    }
}

impl Argument for i64 {
    #[inline]
    fn encode(&self, encoder: &mut InputsRewriter<'_>) {
        encoder.int(*self);
    }
}

impl Argument for f64 {
    #[inline]
    fn encode(&self, encoder: &mut InputsRewriter<'_>) {
        encoder.float(*self);
    }
}

impl Argument for bool {
    #[inline]
    fn encode(&self, encoder: &mut InputsRewriter<'_>) {
        encoder.bool(*self);
    }
}

impl Argument for DType {
    #[inline]
    fn encode(&self, encoder: &mut InputsRewriter<'_>) {
        encoder.int(self.code());
    }
}

impl Argument for [i64] {
    #[inline]
    fn encode(&self, encoder: &mut InputsRewriter<'_>) {
        if self.len() > LIST_LIMIT || !LIST_VALUES.load(Ordering::Relaxed) {
            encoder.other();
        } else {
            encoder.int_list(self);
        }
    }
}

impl Argument for [usize] {
    #[inline]
    fn encode(&self, encoder: &mut InputsRewriter<'_>) {
        let signed: SmallVec<[i64; 6]> = self.iter().map(|&value| value as i64).collect();
        signed.as_slice().encode(encoder);
    }
}

impl Argument for [isize] {
    #[inline]
    fn encode(&self, encoder: &mut InputsRewriter<'_>) {
        let signed: SmallVec<[i64; 6]> = self.iter().map(|&value| value as i64).collect();
        signed.as_slice().encode(encoder);
    }
}

impl<T: Argument> Argument for Option<T> {
    const IS_TENSOR: bool = T::IS_TENSOR;

    #[inline]
    fn encode(&self, encoder: &mut InputsRewriter<'_>) {
        match self {
            Some(argument) => argument.encode(encoder),
            None => encoder.other(),
        }
    }
}

impl<T: Argument + ?Sized> Argument for &T {
    const IS_TENSOR: bool = T::IS_TENSOR;

    #[inline(always)]
    fn encode(&self, encoder: &mut InputsRewriter<'_>) {
        (**self).encode(encoder);
    }
}

macro_rules! arguments {
    (few $($name:ident)+) => {
        arguments!(@ Argument::encode, $($name)+);
    };
    (many $($name:ident)+) => {
        arguments!(@ encode_apart, $($name)+);
    };
    (@ $encode:path, $($name:ident)+) => {
        impl<$($name: Argument),+> Arguments for ($($name,)+) {
            const HAS_TENSOR: bool = $($name::IS_TENSOR)||+;

            #[inline(always)]
            fn encode(self, encoder: &mut InputsRewriter<'_>) {
                #[expect(non_snake_case, reason = "type parameters also name the fields")]
                let ($($name,)+) = self;
                $($encode(&$name, encoder);)+
            }
        }
    };
}

/// Encodes an argument out of line, which keeps operators with many arguments small.
#[inline(never)]
fn encode_apart<A: Argument>(argument: &A, encoder: &mut InputsRewriter<'_>) {
    argument.encode(encoder);
}

arguments!(few A);
arguments!(few A B);
arguments!(few A B C);
arguments!(many A B C D);
arguments!(many A B C D E);
arguments!(many A B C D E F);
arguments!(many A B C D E F G);
arguments!(many A B C D E F G H);
arguments!(many A B C D E F G H I);
arguments!(many A B C D E F G H I J);
arguments!(many A B C D E F G H I J K);
arguments!(many A B C D E F G H I J K L);
arguments!(many A B C D E F G H I J K L M);
