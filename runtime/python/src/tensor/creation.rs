//! Functions that create tensors.

use mindtorch_tensor as host;
use mindtorch_tensor::Scalar;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PySequence, PyString, PyTuple, PyType};

use super::arguments::{Number, number, sizes};
use super::dtype::{DeviceArgument, host_dtype};
use super::{DType, Tensor, wrap};
use crate::error::Error;

/// Sets whether a new tensor requires gradients.
fn tracked(tensor: PyResult<Tensor>, requires_grad: bool) -> PyResult<Tensor> {
    let tensor = tensor?;
    if requires_grad {
        if !tensor.0.dtype().is_float() {
            return Err(PyRuntimeError::new_err(
                "Only Tensors of floating point and complex dtype can require gradients",
            ));
        }
        tensor.0.set_requires_grad(true).map_err(Error::from)?;
    }
    Ok(tensor)
}

/// Returns the first operand of the function `name`: a tensor as it is, and a number as a tensor
/// without dimensions, which takes no operator.
#[pyfunction]
pub(crate) fn first_operand(name: &str, input: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    if let Ok(tensor) = input.cast::<Tensor>() {
        return Ok(Tensor(tensor.get().0.clone()));
    }
    let made = match number(input.as_borrowed())? {
        Some(Scalar::Bool(value)) => host::Tensor::from_slice(&[host::Logical::from(value)], &[]),
        Some(Scalar::Int(value)) => host::Tensor::from_slice(&[value], &[]),
        Some(Scalar::Float(value)) => host::Tensor::from_slice(&[value as f32], &[]),
        None => {
            return Err(PyTypeError::new_err(format!(
                "{name}(): argument 'input' (position 1) must be Tensor, not {}",
                input.get_type().name()?
            )));
        }
    };
    wrap(made)
}

macro_rules! sized_functions {
    ($($(#[$doc:meta])+ $name:ident $make:path;)+) => {
        $($(#[$doc])+
        #[pyfunction]
        #[pyo3(signature = (*size, dtype = None, device = None, requires_grad = false, generator = None))]
        pub(crate) fn $name(
            size: &Bound<'_, PyTuple>,
            dtype: Option<DType>,
            device: Option<DeviceArgument>,
            requires_grad: bool,
            generator: Option<&Bound<'_, PyAny>>,
        ) -> PyResult<Tensor> {
            let _ = (device, generator);
            tracked(wrap($make(&sizes(size)?, host_dtype(dtype))), requires_grad)
        })+
    };
}

sized_functions! {
    /// Creates a tensor of ones.
    ones host::Tensor::ones;
    /// Creates a tensor of zeros.
    zeros host::Tensor::zeros;
    /// Creates a tensor without initializing it.
    empty host::Tensor::empty;
    /// Creates a tensor of draws from the standard normal distribution.
    randn host::Tensor::randn;
    /// Creates a tensor of uniform draws from zero up to but excluding one.
    rand host::Tensor::rand;
}

/// Creates a tensor filled with a value.
#[pyfunction]
#[pyo3(signature = (size, fill_value, *, dtype = None, device = None, requires_grad = false))]
pub(crate) fn full(
    size: Vec<i64>,
    fill_value: Number,
    dtype: Option<DType>,
    device: Option<DeviceArgument>,
    requires_grad: bool,
) -> PyResult<Tensor> {
    let _ = device;
    let full = host::Tensor::full(&size, fill_value.0, host_dtype(dtype));
    tracked(wrap(full), requires_grad)
}

/// Creates a vector of numbers from `start` up to but excluding `end`, `step` apart.
#[pyfunction]
#[pyo3(signature = (start, end = None, step = Number(Scalar::Int(1)), *, dtype = None, device = None, requires_grad = false))]
pub(crate) fn arange(
    start: Number,
    end: Option<Number>,
    step: Number,
    dtype: Option<DType>,
    device: Option<DeviceArgument>,
    requires_grad: bool,
) -> PyResult<Tensor> {
    let _ = device;
    let (start, end) = match end {
        Some(end) => (start.0, end.0),
        None => (Scalar::Int(0), start.0),
    };
    let range = host::Tensor::arange(start, end, step.0, host_dtype(dtype));
    tracked(wrap(range), requires_grad)
}

/// Creates a vector of `steps` evenly spaced numbers from `start` to `end`, inclusive.
#[pyfunction]
#[pyo3(signature = (start, end, steps, *, dtype = None, device = None, requires_grad = false))]
pub(crate) fn linspace(
    start: f64,
    end: f64,
    steps: i64,
    dtype: Option<DType>,
    device: Option<DeviceArgument>,
    requires_grad: bool,
) -> PyResult<Tensor> {
    let _ = device;
    let Ok(steps) = usize::try_from(steps) else {
        return Err(PyRuntimeError::new_err(
            "number of steps must be non-negative",
        ));
    };
    let dtype = host_dtype(dtype).unwrap_or(host::DType::DEFAULT);
    let made = host::Tensor::linspace(start, end, steps, dtype);
    tracked(wrap(made), requires_grad)
}

/// Creates a matrix with ones on its diagonal.
#[pyfunction]
#[pyo3(signature = (n, m = None, *, dtype = None, device = None, requires_grad = false))]
pub(crate) fn eye(
    n: i64,
    m: Option<i64>,
    dtype: Option<DType>,
    device: Option<DeviceArgument>,
    requires_grad: bool,
) -> PyResult<Tensor> {
    let _ = device;
    let m = m.unwrap_or(n);
    for (name, size) in [("n", n), ("m", m)] {
        if size < 0 {
            return Err(PyRuntimeError::new_err(format!(
                "{name} must be greater or equal to 0, got {size}"
            )));
        }
    }
    let make = || {
        let zeros = host::Tensor::zeros(&[n, m], host_dtype(dtype))?;
        let diagonal = zeros.as_strided_at(&[n.min(m)], &[m + 1], None)?;
        diagonal.fill_(Scalar::Int(1))?;
        Ok(zeros)
    };
    tracked(wrap(make()), requires_grad)
}

/// Creates uniform integers from `low` up to but excluding `high`; `low` defaults to zero.
#[pyfunction]
#[pyo3(signature = (low, high = None, size = None, *, dtype = None, device = None, requires_grad = false, generator = None))]
pub(crate) fn randint(
    low: i64,
    high: Option<&Bound<'_, PyAny>>,
    size: Option<Vec<i64>>,
    dtype: Option<DType>,
    device: Option<DeviceArgument>,
    requires_grad: bool,
    generator: Option<&Bound<'_, PyAny>>,
) -> PyResult<Tensor> {
    let _ = (device, generator);
    let missing =
        || PyTypeError::new_err("randint() missing 1 required positional arguments: \"size\"");
    let (low, high, size) = match (high, size) {
        (Some(high), Some(size)) => (low, high.extract()?, size),
        (Some(size), None) => (0, low, size.extract()?),
        (None, Some(size)) => (0, low, size),
        (None, None) => return Err(missing()),
    };
    let made = host::Tensor::randint(low, high, &size, host_dtype(dtype));
    tracked(wrap(made), requires_grad)
}

/// Creates a random permutation of the integers below `n`.
#[pyfunction]
#[pyo3(signature = (n, *, device = None, generator = None))]
pub(crate) fn randperm(
    n: i64,
    device: Option<DeviceArgument>,
    generator: Option<&Bound<'_, PyAny>>,
) -> PyResult<Tensor> {
    let _ = (device, generator);
    wrap(host::Tensor::randperm(n))
}

/// Seeds the random number generator.
#[pyfunction]
pub(crate) fn manual_seed(seed: i64) {
    host::manual_seed(seed as u64);
}

/// Returns the total size of all live storages in bytes.
#[pyfunction]
#[pyo3(name = "_live_bytes")]
pub(crate) fn live_bytes() -> usize {
    host::live_bytes()
}

/// Creates a tensor from `data`: a number, or arbitrarily nested sequences of numbers.
#[pyfunction]
#[pyo3(signature = (data, *, dtype = None, device = None, requires_grad = false))]
pub(crate) fn tensor(
    data: &Bound<'_, PyAny>,
    dtype: Option<DType>,
    device: Option<DeviceArgument>,
    requires_grad: bool,
) -> PyResult<Tensor> {
    let _ = device;
    if let Ok(other) = data.cast::<Tensor>() {
        let other = &other.get().0;
        let copy = other.detach().and_then(|other| match host_dtype(dtype) {
            Some(dtype) if dtype != other.dtype() => other.to(dtype),
            _ => other.duplicate(),
        });
        return tracked(wrap(copy), requires_grad);
    }
    if data.hasattr("__array_interface__")? {
        let array = super::numpy::from_numpy(data)?;
        let dtype = host_dtype(dtype).unwrap_or(array.0.dtype());
        let made = array.0.to(dtype).and_then(|array| array.duplicate());
        return tracked(wrap(made), requires_grad);
    }
    let numbers = Numbers::collect(data, dtype)?;
    let made = match &numbers.elements {
        Elements::Floats(values) => {
            host::Tensor::from_values(values, &numbers.sizes, numbers.dtype)
        }
        Elements::Integers(values) => {
            host::Tensor::from_values(values, &numbers.sizes, numbers.dtype)
        }
    };
    tracked(wrap(made), requires_grad)
}

/// Returns `data` as a tensor, sharing memory if possible: a tensor is returned as it is, and a
/// numpy array is not copied.
#[pyfunction]
#[pyo3(signature = (data, dtype = None, device = None))]
pub(crate) fn as_tensor<'py>(
    data: &Bound<'py, PyAny>,
    dtype: Option<DType>,
    device: Option<DeviceArgument>,
) -> PyResult<Bound<'py, PyAny>> {
    let _ = device;
    let made = if let Ok(tensor) = data.cast::<Tensor>() {
        let tensor = &tensor.get().0;
        let dtype = host_dtype(dtype).unwrap_or(tensor.dtype());
        let converted = tensor.to(dtype);
        if dtype == tensor.dtype() {
            return Ok(data.clone());
        }
        converted
    } else if data.hasattr("__array_interface__")? {
        let array = super::numpy::from_numpy(data)?;
        array.0.to(host_dtype(dtype).unwrap_or(array.0.dtype()))
    } else {
        let numbers = Numbers::collect(data, dtype)?;
        match &numbers.elements {
            Elements::Floats(values) => host::Tensor::lifted(values, &numbers.sizes, numbers.dtype),
            Elements::Integers(values) => {
                host::Tensor::lifted(values, &numbers.sizes, numbers.dtype)
            }
        }
    };
    Ok(Bound::new(data.py(), wrap(made)?)?.into_any())
}

/// Numbers collected from Python, and the dtype of a tensor made of them.
struct Numbers {
    elements: Elements,
    sizes: Vec<i64>,
    dtype: host::DType,
}

enum Elements {
    Floats(Vec<f64>),
    Integers(Vec<i64>),
}

impl Numbers {
    fn collect(data: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<Self> {
        let mut found = Found::default();
        found.collect(data, 0)?;
        let kind = found.numbers.iter().map(|number| number.dtype()).max();
        let dtype = match (dtype, kind) {
            (Some(dtype), _) => dtype.0,
            (None, Some(host::DType::F64) | None) => host::DType::DEFAULT,
            (None, Some(kind)) => kind,
        };
        let numbers = found.numbers.into_iter();
        let elements = if dtype.is_float() {
            Elements::Floats(numbers.map(Scalar::to_f64).collect())
        } else {
            Elements::Integers(numbers.map(to_i64).collect())
        };
        Ok(Self {
            elements,
            sizes: found.sizes,
            dtype,
        })
    }
}

fn to_i64(number: Scalar) -> i64 {
    match number {
        Scalar::Bool(value) => i64::from(value),
        Scalar::Int(value) => value,
        Scalar::Float(value) => value as i64,
    }
}

/// The maximum nesting depth of sequences, so that objects that contain themselves are rejected.
const DEEPEST: usize = 64;

/// The numbers of nested sequences. The first path down determines the sizes, and all others must
/// match them.
#[derive(Default)]
struct Found {
    sizes: Vec<i64>,
    numbers: Vec<Scalar>,
}

impl Found {
    fn collect(&mut self, data: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
        if let Some(number) = number_in(data)? {
            if depth != self.sizes.len() {
                return Err(PyValueError::new_err(format!(
                    "expected sequence of length {} at dim {depth}, found a number",
                    self.sizes[depth]
                )));
            }
            self.numbers.push(number);
            return Ok(());
        }
        let sequence = match data.cast::<PySequence>() {
            Ok(sequence) if !data.is_instance_of::<PyString>() && depth < DEEPEST => sequence,
            _ => {
                let found = data.get_type().name()?;
                return Err(PyTypeError::new_err(format!(
                    "new(): invalid data type '{found}'"
                )));
            }
        };
        self.check_length(sequence.len()? as i64, depth)?;
        for item in sequence.try_iter()? {
            self.collect(&item?, depth + 1)?;
        }
        Ok(())
    }

    fn check_length(&mut self, length: i64, depth: usize) -> PyResult<()> {
        match self.sizes.get(depth) {
            None if self.numbers.is_empty() => self.sizes.push(length),
            Some(&expected) if expected == length => {}
            Some(&expected) => {
                return Err(PyValueError::new_err(format!(
                    "expected sequence of length {expected} at dim {depth} (got {length})"
                )));
            }
            None => {
                return Err(PyTypeError::new_err(format!(
                    "expected a number at dim {depth}, found a sequence"
                )));
            }
        }
        Ok(())
    }
}

/// Returns a number, including that of a zero-dimensional tensor.
fn number_in(data: &Bound<'_, PyAny>) -> PyResult<Option<Scalar>> {
    if let Ok(tensor) = data.cast::<Tensor>() {
        let tensor = &tensor.get().0;
        if tensor.rank() == 0 {
            return Ok(Some(tensor.item().map_err(Error::from)?));
        }
        return Ok(None);
    }
    number(data.as_borrowed())
}

#[pymethods]
impl Tensor {
    /// Creates a new handle to the elements of a tensor, or a tensor of numbers; used by
    /// subclasses.
    #[new]
    #[pyo3(signature = (data = None, requires_grad = false))]
    fn new(data: Option<&Bound<'_, PyAny>>, requires_grad: bool) -> PyResult<Self> {
        let made = match data {
            None => wrap(host::Tensor::empty(&[0], None)),
            Some(data) => match data.cast::<Self>() {
                Ok(other) => Ok(Self(other.get().0.detached())),
                Err(_) => tensor(data, Some(DType(host::DType::DEFAULT)), None, false),
            },
        };
        tracked(made, requires_grad)
    }

    /// Creates an instance of a subclass over the elements of a tensor.
    #[staticmethod]
    #[pyo3(signature = (cls, data, require_grad = false))]
    fn _make_subclass<'py>(
        cls: &Bound<'py, PyType>,
        data: &Bound<'py, Self>,
        require_grad: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let base = cls.py().get_type::<Self>();
        base.call_method1("__new__", (cls, data, require_grad))
    }

    /// Creates zeros of the same sizes and dtype.
    #[pyo3(signature = (*, dtype = None, device = None, requires_grad = false))]
    fn zeros_like(
        &self,
        dtype: Option<DType>,
        device: Option<DeviceArgument>,
        requires_grad: bool,
    ) -> PyResult<Self> {
        let _ = device;
        tracked(self.like(dtype, host::Tensor::zeros_like), requires_grad)
    }

    /// Creates ones of the same sizes and dtype.
    #[pyo3(signature = (*, dtype = None, device = None, requires_grad = false))]
    fn ones_like(
        &self,
        dtype: Option<DType>,
        device: Option<DeviceArgument>,
        requires_grad: bool,
    ) -> PyResult<Self> {
        let _ = device;
        tracked(self.like(dtype, host::Tensor::ones_like), requires_grad)
    }

    /// Creates a tensor of the same sizes and dtype without initializing it.
    #[pyo3(signature = (*, dtype = None, device = None, requires_grad = false))]
    fn empty_like(
        &self,
        dtype: Option<DType>,
        device: Option<DeviceArgument>,
        requires_grad: bool,
    ) -> PyResult<Self> {
        let _ = device;
        tracked(self.like(dtype, host::Tensor::empty_like), requires_grad)
    }

    /// Creates a tensor of the same sizes and dtype, filled with a value.
    #[pyo3(signature = (fill_value, *, dtype = None, device = None, requires_grad = false))]
    fn full_like(
        &self,
        fill_value: Number,
        dtype: Option<DType>,
        device: Option<DeviceArgument>,
        requires_grad: bool,
    ) -> PyResult<Self> {
        let _ = device;
        let full = self.like(dtype, |tensor| tensor.full_like(fill_value.0));
        tracked(full, requires_grad)
    }

    /// Creates draws from the standard normal distribution, of the same sizes and dtype.
    #[pyo3(signature = (*, dtype = None, device = None, requires_grad = false))]
    fn randn_like(
        &self,
        dtype: Option<DType>,
        device: Option<DeviceArgument>,
        requires_grad: bool,
    ) -> PyResult<Self> {
        let _ = device;
        let draw = |tensor: &host::Tensor| tensor.randn_like();
        tracked(self.like(dtype, draw), requires_grad)
    }

    /// Creates uniform draws from zero up to but excluding one, of the same sizes and dtype.
    #[pyo3(signature = (*, dtype = None, device = None, requires_grad = false))]
    fn rand_like(
        &self,
        dtype: Option<DType>,
        device: Option<DeviceArgument>,
        requires_grad: bool,
    ) -> PyResult<Self> {
        let _ = device;
        let draw = |tensor: &host::Tensor| tensor.rand_like();
        tracked(self.like(dtype, draw), requires_grad)
    }

    /// Creates zeros of the given sizes and, by default, the same dtype.
    #[pyo3(signature = (*size, dtype = None))]
    fn new_zeros(&self, size: &Bound<'_, PyTuple>, dtype: Option<DType>) -> PyResult<Self> {
        wrap(self.0.new_zeros(&sizes(size)?, host_dtype(dtype)))
    }
}

impl Tensor {
    fn like(
        &self,
        dtype: Option<DType>,
        make: impl FnOnce(&host::Tensor) -> host::Result<host::Tensor>,
    ) -> PyResult<Self> {
        match host_dtype(dtype) {
            Some(dtype) if dtype != self.0.dtype() => {
                let model = self.0.detached().to(dtype).map_err(Error::from)?;
                wrap(make(&model))
            }
            _ => wrap(make(&self.0)),
        }
    }
}
