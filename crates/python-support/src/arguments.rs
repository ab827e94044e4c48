//! Extracts the inputs of operators and ranges from Python objects into the recorder's encoding.
//!
//! Values are extracted before the recorder is entered, because extraction may run Python code that
//! opens operators itself. The buffer is reused from one operator to the next, so that an operator
//! allocates nothing.

use mindprof_model::{DType, Encoder, InputsEncoder, WordSink};
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyComplex, PyComplexMethods, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType,
};

use crate::foreign_number::{IndexReader, is_numpy_scalar, numpy_number};
use crate::gil_cell::GilCell;
use crate::tensor_argument::TensorReader;
use crate::tensor_input::TensorInput;

/// The maximum length of a list of numbers whose values are recorded.
pub const LONGEST_LIST: usize = 30;

/// The maximum number of words of a buffer that is kept for reuse.
const MOST_HELD: usize = 4096;

/// The buffer of the last operator. It is empty while an operator's inputs are being extracted, so
/// an operator that is opened meanwhile allocates its own.
static SPARE: GilCell<Option<Box<Arguments>>> = GilCell::new(None);

/// The inputs of one operator or range, extracted from Python and encoded for the recorder.
///
/// Framework operators borrow a shared one through [`Arguments::with_operator`]; others build their
/// own with [`Arguments::add`].
#[derive(Default)]
pub struct Arguments {
    encoder: InputsEncoder,
    tensors: TensorReader,
    indices: IndexReader,
    /// The class of the last input that was neither a number nor a list. Whether an object is a
    /// number depends on its class alone.
    tensor_class: Option<Py<PyType>>,
    /// The class of the last tensor without dimensions, which is not one of numpy's scalars.
    bare_class: Option<Py<PyType>>,
}

impl Arguments {
    /// Extracts the inputs of an operator and calls `action` with them.
    ///
    /// # Errors
    /// Returns a `ValueError` if a tensor has more or fewer strides than sizes, and any exception
    /// raised by an input that is not an `Exception`, such as `SystemExit`.
    pub fn with_operator<'py, R>(
        py: Python<'py>,
        inputs: Option<&Bound<'py, PyTuple>>,
        keywords: Option<&Bound<'py, PyDict>>,
        action: impl FnOnce(&Self) -> R,
    ) -> PyResult<R> {
        let spare = SPARE.with(py, (), |spare, ()| spare.take());
        let mut arguments = spare.unwrap_or_default();
        arguments.encoder.restart();
        if let Some(inputs) = inputs {
            arguments.add_all(inputs)?;
        }
        if let Some(keywords) = keywords
            && !keywords.is_empty()
        {
            for (_, value) in keywords {
                arguments.add(&value)?;
            }
        }
        let result = action(&arguments);
        if arguments.encoder.words().len() <= MOST_HELD {
            SPARE.with(py, arguments, |spare, arguments| *spare = Some(arguments));
        }
        Ok(result)
    }

    /// Adds all inputs. An input that is the same object as its predecessor, as in `x * x`, is read
    /// once.
    fn add_all(&mut self, inputs: &Bound<'_, PyTuple>) -> PyResult<()> {
        let mut before = None;
        for value in inputs.iter_borrowed() {
            let begin = self.encoder.words().len();
            match before {
                Some((object, words)) if value.is(object) => self.encoder.repeat(words),
                _ => self.add(&value)?,
            }
            before = Some((value, begin));
        }
        Ok(())
    }

    /// Adds a number, a list or a tensor by its value or shape. Any other object becomes a
    /// placeholder.
    ///
    /// # Errors
    /// As [`Arguments::with_operator`].
    pub fn add(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let is_told = if self.is_of_tensor_class(value) {
            self.add_tensor(value)?
        } else {
            self.add_unknown(value)?
        };
        if !is_told {
            if value.is_none() {
                self.encoder.other();
            } else {
                self.add_seldom(value)?;
            }
        }
        Ok(())
    }

    fn is_of_tensor_class(&self, value: &Bound<'_, PyAny>) -> bool {
        let class = self.tensor_class.as_ref();
        class.is_some_and(|class| class.as_ptr() == value.get_type_ptr().cast())
    }

    /// Adds a value of any class. Returns whether its kind was recognized.
    fn add_unknown(&mut self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        if let Some(number) = Number::from_python(value) {
            self.add_number(number);
            return Ok(true);
        }
        if let Ok(list) = value.cast::<PyList>() {
            return Ok(self.add_items(list.len(), list.iter())?
                || self.add_mixed(list.len(), list.iter())?);
        }
        if let Ok(tuple) = value.cast::<PyTuple>() {
            return Ok(self.add_items(tuple.len(), tuple.iter())?
                || self.add_mixed(tuple.len(), tuple.iter())?);
        }
        if is_plain(value) {
            return Ok(false);
        }
        self.tensor_class = Some(value.get_type().unbind());
        self.add_tensor(value)
    }

    /// Adds a value that is neither a real number of Python's own, nor a list, nor a tensor.
    #[cold]
    fn add_seldom(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Ok(number) = value.cast::<PyComplex>() {
            self.encoder.complex(number.real(), number.imag());
        } else if let Some(number) = self.foreign_number(value)? {
            self.add_number(number);
        } else {
            self.encoder.other();
        }
        Ok(())
    }

    /// Extracts a number that is not Python's own.
    #[cold]
    fn foreign_number(&mut self, value: &Bound<'_, PyAny>) -> PyResult<Option<Number>> {
        if is_plain(value) {
            return Ok(None);
        }
        if !self.tensors.has_shape(value)? {
            return self.indices.read(value);
        }
        if is_numpy_scalar(value) {
            return numpy_number(value);
        }
        Ok(None)
    }

    /// Writes the extracted inputs to the recorder's encoder.
    pub fn encode<W: WordSink>(&self, encoder: &mut Encoder<W>) {
        encoder.inputs(self.encoder.words());
    }

    /// Adds a list if its items are all numbers of one kind or all tensors. Returns whether they
    /// are.
    fn add_items<'py>(
        &mut self,
        count: usize,
        items: impl Iterator<Item = Bound<'py, PyAny>>,
    ) -> PyResult<bool> {
        let mut items = items.peekable();
        let Some(first) = items.peek() else {
            // An empty list counts as a list of integers.
            self.encoder.int_list(&[]);
            return Ok(true);
        };
        let encoder = &mut self.encoder;
        let added = match Number::from_python(first) {
            Some(Number::Bool(_)) => {
                all(items, Number::as_bool).map(|numbers| encoder.bool_list(&numbers))
            }
            Some(Number::Int(_)) => {
                all(items, Number::as_int).map(|numbers| encoder.int_list(&numbers))
            }
            Some(Number::Float(_)) => {
                all(items, Number::as_float).map(|numbers| encoder.float_list(&numbers))
            }
            None if is_plain(first) => None,
            None => return self.add_tensors(count, items),
        };
        Ok(added.is_some())
    }

    /// Adds a list if all its items are tensors. Returns whether they are.
    fn add_tensors<'py>(
        &mut self,
        count: usize,
        items: impl Iterator<Item = Bound<'py, PyAny>>,
    ) -> PyResult<bool> {
        let begin = self.encoder.words().len();
        self.encoder.tensor_list(count);
        let mut added = 0;
        for item in items {
            // The first item decides whether scalars of numpy are tensors or numbers.
            let scalars = if added == 0 {
                Scalars::AreNumbers
            } else {
                Scalars::AreTensors
            };
            if !self.add_tensor_or(&item, scalars)? {
                break;
            }
            added += 1;
        }
        // Reading a tensor may run Python code that changes the list.
        if added == count {
            return Ok(true);
        }
        self.encoder.truncate(begin);
        Ok(false)
    }

    /// Adds a list of numbers that are not Python's own, of several kinds, or complex. As in torch,
    /// any item but the first may be `None`. Returns whether the list was added.
    #[cold]
    fn add_mixed<'py>(
        &mut self,
        count: usize,
        items: impl Iterator<Item = Bound<'py, PyAny>>,
    ) -> PyResult<bool> {
        if count == 0 || count > LONGEST_LIST {
            return Ok(false);
        }
        let items: Vec<_> = items.collect();
        let mut numbers = Vec::with_capacity(items.len());
        for item in &items {
            numbers.push(match Number::from_python(item) {
                Some(number) => Some(number),
                None => self.foreign_number(item)?,
            });
        }
        if self.add_same(&numbers) {
            return Ok(true);
        }
        let begin = self.encoder.words().len();
        self.encoder.number_list(count);
        let mut added = 0;
        for (item, number) in items.iter().zip(numbers) {
            let is_number = item.is_instance_of::<PyComplex>() || item.is_none() && added > 0;
            match number {
                Some(number) => self.add_number(number),
                None if is_number => self.add_seldom(item)?,
                None => break,
            }
            added += 1;
        }
        // Reading an item may run Python code that changes the list.
        if added == count {
            return Ok(true);
        }
        self.encoder.truncate(begin);
        Ok(false)
    }

    /// Adds a list of numbers of one kind. Returns whether they are.
    fn add_same(&mut self, numbers: &[Option<Number>]) -> bool {
        fn pick<T>(numbers: &[Option<Number>], pick: fn(Number) -> Option<T>) -> Option<Vec<T>> {
            numbers.iter().map(|number| number.and_then(pick)).collect()
        }
        if let Some(integers) = pick(numbers, Number::as_int) {
            self.encoder.int_list(&integers);
        } else if let Some(floats) = pick(numbers, Number::as_float) {
            self.encoder.float_list(&floats);
        } else if let Some(values) = pick(numbers, Number::as_bool) {
            self.encoder.bool_list(&values);
        } else {
            return false;
        }
        true
    }

    fn add_number(&mut self, number: Number) {
        match number {
            Number::Bool(value) => self.encoder.bool(value),
            Number::Int(value) => self.encoder.int(value),
            Number::Float(value) => self.encoder.float(value),
        }
    }

    fn add_tensor(&mut self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.add_tensor_or(value, Scalars::AreNumbers)
    }

    fn add_tensor_or(&mut self, value: &Bound<'_, PyAny>, scalars: Scalars) -> PyResult<bool> {
        if let Ok(tensor) = value.cast_exact::<TensorInput>() {
            self.encoder.inputs(tensor.get().words());
            return Ok(true);
        }
        let Some(tensor) = self.tensors.read(value)? else {
            return Ok(false);
        };
        // A scalar of numpy has a shape too. One of 64 complex bits is no Python number.
        let is_bare =
            tensor.dims.is_empty() && tensor.dtype != DType::C64 && scalars == Scalars::AreNumbers;
        let class = self.bare_class.as_ref();
        if is_bare && !class.is_some_and(|class| class.is(value.get_type())) {
            if is_numpy_scalar(value) {
                return Ok(false);
            }
            self.bare_class = Some(value.get_type().unbind());
        }
        (self.encoder).tensor(tensor.dtype, tensor.dims, tensor.strides);
        Ok(true)
    }
}

/// Whether scalars of numpy, which have a shape too, count as tensors.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scalars {
    AreNumbers,
    AreTensors,
}

/// A real number or a boolean, extracted from a Python object.
#[derive(Clone, Copy)]
pub enum Number {
    /// A `bool`.
    Bool(bool),
    /// An `int` of at most 64 bits.
    Int(i64),
    /// A `float`.
    Float(f64),
}

impl Number {
    /// Extracts a number. Returns `None` for other objects and for integers of more than 64 bits.
    #[inline]
    pub fn from_python(value: &Bound<'_, PyAny>) -> Option<Self> {
        if let Ok(value) = value.cast::<PyBool>() {
            return Some(Self::Bool(value.is_true()));
        }
        if value.is_instance_of::<PyInt>() {
            return value.extract().ok().map(Self::Int);
        }
        let value = value.cast::<PyFloat>().ok()?;
        Some(Self::Float(value.value()))
    }

    const fn as_bool(self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(value),
            Self::Int(_) | Self::Float(_) => None,
        }
    }

    const fn as_int(self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(value),
            Self::Bool(_) | Self::Float(_) => None,
        }
    }

    const fn as_float(self) -> Option<f64> {
        match self {
            Self::Float(value) => Some(value),
            Self::Bool(_) | Self::Int(_) => None,
        }
    }
}

/// Returns whether a value that is not a [`Number`] is known not to be a tensor either.
fn is_plain(value: &Bound<'_, PyAny>) -> bool {
    value.is_none()
        || value.is_instance_of::<PyString>()
        || value.is_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyComplex>()
}

/// Returns all items if `pick` accepts every one of them.
fn all<'py, T>(
    items: impl Iterator<Item = Bound<'py, PyAny>>,
    pick: impl Fn(Number) -> Option<T>,
) -> Option<Vec<T>> {
    items
        .map(|item| Number::from_python(&item).and_then(&pick))
        .collect()
}
