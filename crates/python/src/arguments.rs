//! What operators and ranges of Python code are given, as the words of inputs.
//!
//! Values are taken out of Python before the recorder is asked, since that may run code which opens
//! operators itself. What holds the words meanwhile is used again and again, so that an operator
//! allocates nothing.

use mindprof_model::{DType, Encoder, InputsEncoder, WordSink};
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyComplex, PyComplexMethods, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType,
};

use crate::gil_cell::GilCell;
use crate::inputs::LONGEST_LIST;
use crate::tensor_argument::TensorReader;
use crate::tensor_input::TensorInput;

/// Words beyond this many are given back, not held for the next operator.
const MOST_HELD: usize = 4096;

/// What the last operator left. An operator that is opened while another one's inputs are taken
/// finds nothing here.
static SPARE: GilCell<Option<Box<Arguments>>> = GilCell::new(None);

/// A list of inputs that is taken out of Python.
#[derive(Default)]
pub(crate) struct Arguments {
    encoder: InputsEncoder,
    tensors: TensorReader,
    /// The class of the last input that was neither a number nor a list, and never will be.
    tensor_class: Option<Py<PyType>>,
}

impl Arguments {
    /// Takes the inputs of an operator, and calls `action` with them.
    ///
    /// # Errors
    /// As [`TensorReader::read`].
    pub(crate) fn with_operator<'py, R>(
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

    /// Adds all inputs. One that is also the input before, as in a product of a tensor with itself,
    /// is asked once.
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

    /// Adds a value for what it is; what cannot be told apart is just there.
    ///
    /// # Errors
    /// As [`TensorReader::read`].
    pub(crate) fn add(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let is_told = if self.is_of_tensor_class(value) {
            self.add_tensor(value)?
        } else {
            self.add_unknown(value)?
        };
        if !is_told {
            if value.is_none() {
                self.encoder.other();
            } else {
                self.add_seldom(value);
            }
        }
        Ok(())
    }

    fn is_of_tensor_class(&self, value: &Bound<'_, PyAny>) -> bool {
        let class = self.tensor_class.as_ref();
        class.is_some_and(|class| class.as_ptr() == value.get_type_ptr().cast())
    }

    /// Adds a value of any class, and returns whether it could.
    fn add_unknown(&mut self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        if let Some(number) = Number::from_python(value) {
            self.add_number(number);
            return Ok(true);
        }
        if let Ok(list) = value.cast::<PyList>() {
            return Ok(
                self.add_items(list.len(), list.iter())? || self.add_mixed(list.len(), list.iter())
            );
        }
        if let Ok(tuple) = value.cast::<PyTuple>() {
            return Ok(self.add_items(tuple.len(), tuple.iter())?
                || self.add_mixed(tuple.len(), tuple.iter()));
        }
        if is_plain(value) {
            return Ok(false);
        }
        self.tensor_class = Some(value.get_type().unbind());
        self.add_tensor(value)
    }

    /// Adds what is neither a usual number, nor a list, nor a tensor.
    #[cold]
    fn add_seldom(&mut self, value: &Bound<'_, PyAny>) {
        match value.cast::<PyComplex>() {
            Ok(number) => self.encoder.complex(number.real(), number.imag()),
            Err(_) => self.encoder.other(),
        }
    }

    /// Adds the values to a list of inputs.
    pub(crate) fn encode<W: WordSink>(&self, encoder: &mut Encoder<W>) {
        encoder.inputs(self.encoder.words());
    }

    /// Adds a list whose items are all numbers of one kind or all tensors, and returns whether they
    /// are.
    fn add_items<'py>(
        &mut self,
        count: usize,
        items: impl Iterator<Item = Bound<'py, PyAny>>,
    ) -> PyResult<bool> {
        let mut items = items.peekable();
        let Some(first) = items.peek() else {
            // Nothing is a list of whole numbers here.
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

    /// Adds a list of tensors, or nothing if not all of them are. Returns whether it did.
    fn add_tensors<'py>(
        &mut self,
        count: usize,
        items: impl Iterator<Item = Bound<'py, PyAny>>,
    ) -> PyResult<bool> {
        let begin = self.encoder.words().len();
        self.encoder.tensor_list(count);
        let mut added = 0;
        for item in items {
            if !self.add_tensor(&item)? {
                break;
            }
            added += 1;
        }
        // A tensor that is asked runs code, which may change the list.
        if added == count {
            return Ok(true);
        }
        self.encoder.truncate(begin);
        Ok(false)
    }

    /// Adds a list of numbers of several kinds, or of complex ones. As in torch one may be absent,
    /// but the first. Returns whether it did.
    #[cold]
    fn add_mixed<'py>(
        &mut self,
        count: usize,
        items: impl Iterator<Item = Bound<'py, PyAny>>,
    ) -> bool {
        if count == 0 || count > LONGEST_LIST {
            return false;
        }
        let begin = self.encoder.words().len();
        self.encoder.number_list(count);
        let mut added = 0;
        for item in items {
            let is_number = item.is_instance_of::<PyComplex>() || item.is_none() && added > 0;
            match Number::from_python(&item) {
                Some(number) => self.add_number(number),
                None if is_number => self.add_seldom(&item),
                None => break,
            }
            added += 1;
        }
        if added == count {
            return true;
        }
        self.encoder.truncate(begin);
        false
    }

    fn add_number(&mut self, number: Number) {
        match number {
            Number::Bool(value) => self.encoder.bool(value),
            Number::Int(value) => self.encoder.int(value),
            Number::Float(value) => self.encoder.float(value),
        }
    }

    fn add_tensor(&mut self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        if let Ok(tensor) = value.cast_exact::<TensorInput>() {
            self.encoder.inputs(tensor.get().words());
            return Ok(true);
        }
        let Some(tensor) = self.tensors.read(value)? else {
            return Ok(false);
        };
        // A complex number of numpy's has a shape too.
        let is_number = tensor.dtype == DType::C128 && tensor.dims.is_empty();
        if is_number && value.is_instance_of::<PyComplex>() {
            return Ok(false);
        }
        (self.encoder).tensor(tensor.dtype, tensor.dims, tensor.strides);
        Ok(true)
    }
}

/// A number or a truth value.
#[derive(Clone, Copy)]
pub(crate) enum Number {
    Bool(bool),
    Int(i64),
    Float(f64),
}

impl Number {
    /// Takes a value that is one; numbers of more than 64 bits are not.
    #[inline]
    pub(crate) fn from_python(value: &Bound<'_, PyAny>) -> Option<Self> {
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

/// Returns whether a value that is no usual number is known to be no tensor either.
fn is_plain(value: &Bound<'_, PyAny>) -> bool {
    value.is_none()
        || value.is_instance_of::<PyString>()
        || value.is_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyComplex>()
}

/// Returns all items, if each is a number that `pick` takes.
fn all<'py, T>(
    items: impl Iterator<Item = Bound<'py, PyAny>>,
    pick: impl Fn(Number) -> Option<T>,
) -> Option<Vec<T>> {
    items
        .map(|item| Number::from_python(&item).and_then(&pick))
        .collect()
}
