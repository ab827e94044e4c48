//! Python's arithmetic operators, and element-wise functions.

#![expect(
    unsafe_op_in_unsafe_fn,
    reason = "PyO3 generates the operator slots this way if a macro generates the methods"
)]

use mindtorch_tensor as host;
use mindtorch_tensor::{Comparison, Elementwise, Logic, Scalar};
use pyo3::basic::CompareOp;
use pyo3::prelude::*;

use super::arguments::{Number, Operand};
use super::creation::first_operand;
use super::in_place::ONE;
use super::{Tensor, wrap, written};
use crate::error::Error;

/// Calls a binary operator, or returns `NotImplemented` if the operand has an unknown type, so that
/// Python asks the other side.
#[inline]
fn binary<'py>(
    tensor: &Tensor,
    other: &Bound<'py, PyAny>,
    call: impl FnOnce(&host::Tensor, host::Operand<'_>) -> host::Result<host::Tensor>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = other.py();
    match Operand::of(other.as_borrowed())? {
        Some(operand) => {
            let result = wrap(call(&tensor.0, operand.as_host()))?;
            Ok(Bound::new(py, result)?.into_any())
        }
        None => Ok(py.NotImplemented().into_bound(py)),
    }
}

macro_rules! binary_methods {
    ($($name:ident $tensor:ident $operand:ident $call:expr;)+) => {
        #[pymethods]
        impl Tensor {
            $(fn $name<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                binary(self, other, |$tensor, $operand| $call)
            })+
        }
    };
}

binary_methods! {
    __add__ x y x.add(y);
    __radd__ x y x.add(y);
    __sub__ x y x.sub(y);
    __mul__ x y x.mul(y);
    __rmul__ x y x.mul(y);
    __truediv__ x y x.div(y);
    __floordiv__ x y x.floor_divide(y);
    __mod__ x y x.remainder(y);
    __and__ x y x.logic_operator(Logic::And, y);
    __rand__ x y x.logic_operator(Logic::And, y);
    __or__ x y x.logic_operator(Logic::Or, y);
    __ror__ x y x.logic_operator(Logic::Or, y);
    __xor__ x y x.logic_operator(Logic::Xor, y);
    __rxor__ x y x.logic_operator(Logic::Xor, y);
}

#[pymethods]
impl Tensor {
    fn __rsub__(&self, other: Number) -> PyResult<Self> {
        wrap(self.0.rsub(other.0))
    }

    fn __rtruediv__(&self, other: Number) -> PyResult<Self> {
        let inverse = self.0.reciprocal().map_err(Error::from)?;
        wrap(inverse.mul(other.0))
    }

    fn __pow__(
        &self,
        exponent: Operand<'_, '_>,
        _modulo: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        self.pow(exponent)
    }

    fn __rpow__(&self, base: Number, _modulo: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let base = host::Tensor::full(&[], base.0, None).map_err(Error::from)?;
        wrap(base.pow_tensor(&self.0))
    }

    fn __matmul__(&self, other: &Self) -> PyResult<Self> {
        wrap(self.0.matmul(&other.0))
    }

    fn __neg__(&self) -> PyResult<Self> {
        wrap(self.0.neg())
    }

    fn __pos__(&self) -> Self {
        Self(self.0.positive())
    }

    fn __abs__(&self) -> PyResult<Self> {
        wrap(self.0.elementwise(Elementwise::Abs))
    }

    fn __invert__(&self) -> PyResult<Self> {
        wrap(self.0.bitwise_not())
    }

    fn __richcmp__<'py>(
        &self,
        other: &Bound<'py, PyAny>,
        operator: CompareOp,
    ) -> PyResult<Bound<'py, PyAny>> {
        let how = match operator {
            CompareOp::Eq => Comparison::Eq,
            CompareOp::Ne => Comparison::Ne,
            CompareOp::Lt => Comparison::Lt,
            CompareOp::Le => Comparison::Le,
            CompareOp::Gt => Comparison::Gt,
            CompareOp::Ge => Comparison::Ge,
        };
        binary(self, other, |tensor, operand| tensor.compare(how, operand))
    }

    fn __hash__(slf: &Bound<'_, Self>) -> isize {
        // By identity, as in torch: equality is element-wise and yields no single truth value.
        slf.as_ptr() as isize >> 4
    }

    /// Adds `alpha` times a tensor or a number.
    #[pyo3(signature = (other, *, alpha = Number(Scalar::Int(1))))]
    fn add(&self, other: Operand<'_, '_>, alpha: Number) -> PyResult<Self> {
        wrap(self.0.add_scaled(other.as_host(), alpha.0))
    }

    /// Subtracts `alpha` times a tensor or a number.
    #[pyo3(signature = (other, *, alpha = Number(Scalar::Int(1))))]
    fn sub(&self, other: Operand<'_, '_>, alpha: Number) -> PyResult<Self> {
        wrap(self.0.sub_scaled(other.as_host(), alpha.0))
    }

    /// Multiplies by a tensor or a number.
    fn mul(&self, other: Operand<'_, '_>) -> PyResult<Self> {
        wrap(self.0.mul(other.as_host()))
    }

    /// Divides by a tensor or a number.
    fn div(&self, other: Operand<'_, '_>) -> PyResult<Self> {
        wrap(self.0.div(other.as_host()))
    }

    /// Divides and rounds towards negative infinity.
    fn floor_divide(&self, other: Operand<'_, '_>) -> PyResult<Self> {
        wrap(self.0.floor_divide(other.as_host()))
    }

    /// Returns the remainder of a floored division.
    fn remainder(&self, other: Operand<'_, '_>) -> PyResult<Self> {
        wrap(self.0.remainder(other.as_host()))
    }

    /// Raises the elements to a power.
    fn pow(&self, exponent: Operand<'_, '_>) -> PyResult<Self> {
        wrap(match exponent {
            Operand::Tensor(exponent) => self.0.pow_tensor(&exponent.get().0),
            Operand::Number(exponent) => self.0.pow(exponent),
        })
    }

    /// Adds `value` times the product of two tensors.
    #[pyo3(signature = (tensor1, tensor2, *, value = ONE))]
    fn addcmul(&self, tensor1: &Self, tensor2: &Self, value: Number) -> PyResult<Self> {
        wrap(self.0.addcmul(&tensor1.0, &tensor2.0, value.0))
    }

    /// Adds `value` times the quotient of two tensors.
    #[pyo3(signature = (tensor1, tensor2, *, value = ONE))]
    fn addcdiv(&self, tensor1: &Self, tensor2: &Self, value: Number) -> PyResult<Self> {
        wrap(self.0.addcdiv(&tensor1.0, &tensor2.0, value.0))
    }

    /// Returns the larger of each pair of elements.
    fn maximum(&self, other: &Self) -> PyResult<Self> {
        wrap(self.0.maximum(&other.0))
    }

    /// Returns the smaller of each pair of elements.
    fn minimum(&self, other: &Self) -> PyResult<Self> {
        wrap(self.0.minimum(&other.0))
    }

    /// Limits the elements to the range from `min` to `max`.
    #[pyo3(signature = (min = None, max = None))]
    fn clamp(&self, min: Option<Number>, max: Option<Number>) -> PyResult<Self> {
        wrap(self.0.clamp(min.map(|min| min.0), max.map(|max| max.0)))
    }

    /// Raises elements below `min` to `min`.
    fn clamp_min(&self, min: Number) -> PyResult<Self> {
        wrap(self.0.clamp_min(min.0))
    }

    /// Returns a copy in which the elements selected by `mask` are set to a number.
    fn masked_fill(&self, mask: &Self, value: Number) -> PyResult<Self> {
        wrap(self.0.masked_fill(&mask.0, value.0))
    }

    /// Returns the matrix product.
    fn matmul(&self, other: &Self) -> PyResult<Self> {
        wrap(self.0.matmul(&other.0))
    }

    /// Returns the product of two matrices.
    fn mm(&self, mat2: &Self) -> PyResult<Self> {
        wrap(self.0.mm(&mat2.0))
    }

    /// Multiplies two batches of matrices pairwise.
    fn bmm(&self, mat2: &Self) -> PyResult<Self> {
        wrap(self.0.bmm(&mat2.0))
    }

    /// Returns the product of a matrix and a vector.
    fn mv(&self, vec: &Self) -> PyResult<Self> {
        wrap(self.0.mv(&vec.0))
    }

    /// Returns the dot product of two vectors.
    fn dot(&self, tensor: &Self) -> PyResult<Self> {
        wrap(self.0.dot(&tensor.0))
    }

    /// Multiplies two matrices and adds this tensor.
    fn addmm(&self, mat1: &Self, mat2: &Self) -> PyResult<Self> {
        wrap(self.0.addmm(&mat1.0, &mat2.0))
    }
}

macro_rules! unary_methods {
    ($($name:ident $call:expr;)+) => {
        #[pymethods]
        impl Tensor {
            $(fn $name(&self) -> PyResult<Self> {
                let call: fn(&host::Tensor) -> host::Result<host::Tensor> = $call;
                wrap(call(&self.0))
            })+
        }
    };
}

unary_methods! {
    abs |x| x.elementwise(Elementwise::Abs);
    bitwise_not host::Tensor::bitwise_not;
    ceil |x| x.elementwise(Elementwise::Ceil);
    cos |x| x.elementwise(Elementwise::Cos);
    erf |x| x.elementwise(Elementwise::Erf);
    exp |x| x.elementwise(Elementwise::Exp);
    floor |x| x.elementwise(Elementwise::Floor);
    log |x| x.elementwise(Elementwise::Log);
    neg host::Tensor::neg;
    reciprocal host::Tensor::reciprocal;
    relu host::Tensor::relu;
    round |x| x.elementwise(Elementwise::Round);
    rsqrt |x| x.elementwise(Elementwise::Rsqrt);
    sigmoid |x| x.elementwise(Elementwise::Sigmoid);
    sign |x| x.elementwise(Elementwise::Sign);
    sin |x| x.elementwise(Elementwise::Sin);
    sqrt |x| x.elementwise(Elementwise::Sqrt);
    square |x| x.square();
    tanh |x| x.elementwise(Elementwise::Tanh);
}

macro_rules! comparison_methods {
    ($($name:ident $how:ident;)+) => {
        #[pymethods]
        impl Tensor {
            $(fn $name(&self, other: Operand<'_, '_>) -> PyResult<Self> {
                wrap(self.0.compare(Comparison::$how, other.as_host()))
            })+
        }
    };
}

comparison_methods! {
    eq Eq;
    ne Ne;
    lt Lt;
    le Le;
    gt Gt;
    ge Ge;
}

/// Adds `alpha` times `other`. Both may be numbers.
#[pyfunction]
#[pyo3(signature = (input, other, *, alpha = Number(Scalar::Int(1))))]
pub(crate) fn add(
    input: &Bound<'_, PyAny>,
    other: Operand<'_, '_>,
    alpha: Number,
) -> PyResult<Tensor> {
    first_operand("add", input)?.add(other, alpha)
}

/// Subtracts `alpha` times `other`. Both may be numbers.
#[pyfunction]
#[pyo3(signature = (input, other, *, alpha = Number(Scalar::Int(1))))]
pub(crate) fn sub(
    input: &Bound<'_, PyAny>,
    other: Operand<'_, '_>,
    alpha: Number,
) -> PyResult<Tensor> {
    first_operand("sub", input)?.sub(other, alpha)
}

/// Multiplies tensors or numbers.
#[pyfunction]
pub(crate) fn mul(input: &Bound<'_, PyAny>, other: Operand<'_, '_>) -> PyResult<Tensor> {
    first_operand("mul", input)?.mul(other)
}

/// Divides tensors or numbers.
#[pyfunction]
pub(crate) fn div(input: &Bound<'_, PyAny>, other: Operand<'_, '_>) -> PyResult<Tensor> {
    first_operand("div", input)?.div(other)
}

/// Divides tensors or numbers, and rounds towards negative infinity.
#[pyfunction]
pub(crate) fn floor_divide(input: &Bound<'_, PyAny>, other: Operand<'_, '_>) -> PyResult<Tensor> {
    first_operand("floor_divide", input)?.floor_divide(other)
}

/// Returns the larger of each pair of elements, written into `out` if it is given.
#[pyfunction]
#[pyo3(signature = (input, other, *, out = None))]
pub(crate) fn maximum<'py>(
    input: &Bound<'py, Tensor>,
    other: &Tensor,
    out: Option<Bound<'py, Tensor>>,
) -> PyResult<Bound<'py, Tensor>> {
    extreme(input, other, out, host::End::Highest)
}

/// Returns the smaller of each pair of elements, written into `out` if it is given.
#[pyfunction]
#[pyo3(signature = (input, other, *, out = None))]
pub(crate) fn minimum<'py>(
    input: &Bound<'py, Tensor>,
    other: &Tensor,
    out: Option<Bound<'py, Tensor>>,
) -> PyResult<Bound<'py, Tensor>> {
    extreme(input, other, out, host::End::Lowest)
}

fn extreme<'py>(
    input: &Bound<'py, Tensor>,
    other: &Tensor,
    out: Option<Bound<'py, Tensor>>,
    end: host::End,
) -> PyResult<Bound<'py, Tensor>> {
    let own = &input.get().0;
    if let Some(out) = out {
        return written(out, |out| own.extreme_into(&other.0, end, out));
    }
    let result = match end {
        host::End::Highest => own.maximum(&other.0),
        host::End::Lowest => own.minimum(&other.0),
    };
    Bound::new(input.py(), wrap(result)?)
}
