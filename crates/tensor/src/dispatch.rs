//! The one place where operators tell the recorder that they run, and on what.
//!
//! An operator names itself once with a [`Site`] and holds the [`Scope`] that [`open`] returns
//! until it is done. Its arguments are written as torch lists them, one per argument of the
//! operator's schema, and only when shapes are wanted.

#![expect(
    clippy::inline_always,
    reason = "whether a list is the one before is told in registers, which a call would spill"
)]

use std::sync::atomic::{AtomicBool, Ordering};

use mindprof_record::{InputsRewriter, is_recording, result, scope_with, wants_results};
pub(crate) use mindprof_record::{Scope, Site};
use smallvec::SmallVec;

use crate::autograd::next_sequence;
use crate::{DType, Result, Scalar, Tensor};

/// Lists of numbers longer than this are not recorded.
const LIST_LIMIT: usize = 30;

/// Whether the values of lists of numbers are recorded.
static LIST_VALUES: AtomicBool = AtomicBool::new(true);

/// Says whether the values of lists of numbers are recorded with the shapes from now on.
pub fn set_list_values_recorded(recorded: bool) {
    // Relaxed: nothing else is published through it.
    LIST_VALUES.store(recorded, Ordering::Relaxed);
}

/// Opens the scope of an operator; it closes when the returned value is dropped.
#[inline]
#[must_use = "the scope closes when this value is dropped"]
pub(crate) fn open<A: Arguments>(site: &'static Site, arguments: A) -> Scope {
    let mut scope = scope_with(site, move |encoder| arguments.encode(encoder));
    if A::HAS_TENSOR
        && is_recording()
        && let Some(sequence) = next_sequence()
    {
        // Even an operator that is not differentiable carries it, as in torch.
        scope.set_sequence(sequence);
    }
    scope
}

/// An argument that is absent or of a kind that is not told apart: a device, a generator, a memory
/// format.
pub(crate) struct Absent;

/// The device of the host, where the caller names it.
pub(crate) struct Device;

/// Tells execution traces what the innermost operator returns.
#[inline]
pub(crate) fn returns(tensor: &Tensor) {
    if wants_results() {
        result(tensor.storage_address() as u64, |encoder| {
            tensor.encode(encoder);
        });
    }
}

/// As [`returns`], for a result that is handed on.
pub(crate) fn returning(result: Result<Tensor>) -> Result<Tensor> {
    result.inspect(returns)
}

/// One argument of an operator.
pub(crate) trait Argument {
    /// Whether it is a tensor, or a list of them.
    const IS_TENSOR: bool = false;

    fn encode(&self, encoder: &mut InputsRewriter<'_>);
}

/// All arguments of an operator, in the order of its schema.
pub(crate) trait Arguments {
    /// Whether an operator with these arguments can be part of a graph.
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

/// Only where results are wanted: else views that differ in nothing but their offsets are one input.
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
                #[expect(non_snake_case, reason = "the names of the types name the fields too")]
                let ($($name,)+) = self;
                $($encode(&$name, encoder);)+
            }
        }
    };
}

/// Encodes an argument by a call: of operators with many arguments each would be a large function.
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
