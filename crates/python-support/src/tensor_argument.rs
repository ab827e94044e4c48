//! Reads shape, dtype and strides of tensors of any framework, for `arguments`.
//!
//! A tensor's attributes may change from one operator to the next, so they are read each time. Only
//! immutable facts are cached: the meaning of a dtype object or of a tuple of numbers, and the
//! cheapest way to look up an attribute of a class, which does not affect the result.

use mindprof_model::DType;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::interned_names;
use crate::known_layouts::KnownLayouts;

interned_names! {
    /// Attributes of tensors, arrays and their classes.
    pub(crate) struct TensorNames {
        array_item_size = "itemsize",
        array_strides = "strides",
        class_dict_offset = "__dictoffset__",
        class_flags = "__flags__",
        dtype_name = "name",
        tensor_dtype = "dtype",
        tensor_shape = "shape",
        tensor_stride = "stride",
    }
}

/// Fills the cells of this module at import.
pub(crate) fn prefill(py: Python<'_>) -> PyResult<()> {
    TensorNames::get(py);
    builtin_getattr(py).map(|_| ())
}

/// Returns the builtin `getattr`, which creates no exception when it is given a default.
fn builtin_getattr(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static GETATTR: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    GETATTR.import(py, "builtins", "getattr")
}

/// How many dtypes, and how many classes, are cached.
const REMEMBERED: usize = 8;

/// The flag of classes that were created by Python code and can be modified.
const HEAP_TYPE: u64 = 1 << 9;

/// Shape, dtype and strides of a tensor.
pub(crate) struct TensorFacts<'a> {
    pub(crate) dtype: DType,
    pub(crate) dims: &'a [usize],
    pub(crate) strides: &'a [isize],
}

/// Reads the facts of tensors. Keeps buffers and caches between reads.
#[derive(Default)]
pub(crate) struct TensorReader {
    dims: Vec<usize>,
    strides: Vec<isize>,
    dtypes: KnownDTypes,
    layouts: KnownLayouts,
    shapeless: RecentClasses,
    strideless: RecentClasses,
}

impl TensorReader {
    /// Reads any object that has a shape and a dtype as a tensor. A tensor without strides is
    /// dense.
    ///
    /// # Errors
    /// Returns a `ValueError` if there are more or fewer strides than sizes, and any exception
    /// raised by the tensor that is not an `Exception`, such as `SystemExit`.
    pub(crate) fn read(&mut self, value: &Bound<'_, PyAny>) -> PyResult<Option<TensorFacts<'_>>> {
        let py = value.py();
        let names = TensorNames::get(py);
        let Some(shape) = self.shapeless.ask(value, &names.tensor_shape)? else {
            return Ok(None);
        };
        let Some(dtype) = answer(py, value.getattr(&names.tensor_dtype))? else {
            return Ok(None);
        };
        let Some(dtype) = self.dtypes.find(&dtype, names)? else {
            return Ok(None);
        };
        let stride = self.strideless.ask(value, &names.tensor_stride)?;
        let known = (stride.as_ref()).and_then(|stride| self.layouts.find(&shape, stride));
        if known.is_none() && !self.read_layout(value, &shape, stride.as_ref())? {
            return Ok(None);
        }
        let (dims, strides) = match known {
            Some(place) => self.layouts.at(place),
            None => (&*self.dims, &*self.strides),
        };
        Ok(Some(TensorFacts {
            dtype,
            dims,
            strides,
        }))
    }

    /// Returns whether an object has a shape, as tensors, arrays and scalars of numpy do.
    ///
    /// # Errors
    /// Passes on exceptions of the object that are not an `Exception`.
    pub(crate) fn has_shape(&mut self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let names = TensorNames::get(value.py());
        let shape = self.shapeless.ask(value, &names.tensor_shape)?;
        Ok(shape.is_some())
    }

    /// Reads sizes and strides, with dense strides if the tensor has none. Returns whether there
    /// are sizes.
    fn read_layout(
        &mut self,
        value: &Bound<'_, PyAny>,
        shape: &Bound<'_, PyAny>,
        stride: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        if !read_numbers(shape, &mut self.dims, |number| usize::try_from(number).ok())? {
            return Ok(false);
        }
        let told = match stride {
            Some(stride) => read_strides(stride, &mut self.strides)?,
            None => read_byte_strides(value, &mut self.strides)?,
        };
        if !told {
            dense_strides(&self.dims, &mut self.strides);
        } else if self.strides.len() != self.dims.len() {
            return Err(PyValueError::new_err(format!(
                "argument 'inputs': expected tensors with a stride for each of {} dimensions, \
                 found {}",
                self.dims.len(),
                self.strides.len()
            )));
        } else if let Some(stride) = stride {
            (self.layouts).add((shape, stride), &self.dims, &self.strides);
        }
        Ok(true)
    }
}

/// Returns the value of a lookup, or `None` if it raised an `Exception`, as objects do that are not
/// tensors.
///
/// # Errors
/// Passes on every other exception, such as `SystemExit`.
pub(crate) fn answer<T>(py: Python<'_>, asked: PyResult<T>) -> PyResult<Option<T>> {
    match asked {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.is_instance_of::<PyException>(py) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads strides in elements, from a tuple or from a method that returns one. Returns whether there
/// are any.
fn read_strides(told: &Bound<'_, PyAny>, strides: &mut Vec<isize>) -> PyResult<bool> {
    let stride = |number| isize::try_from(number).ok();
    if told.is_instance_of::<PyTuple>() {
        return read_numbers(told, strides, stride);
    }
    match answer(told.py(), told.call0())? {
        Some(told) => read_numbers(&told, strides, stride),
        None => Ok(false),
    }
}

/// Reads the strides of an array, which are in bytes. Returns whether there are any.
fn read_byte_strides(value: &Bound<'_, PyAny>, strides: &mut Vec<isize>) -> PyResult<bool> {
    let py = value.py();
    let names = TensorNames::get(py);
    let Some(bytes) = answer(py, value.getattr(&names.array_strides))? else {
        return Ok(false);
    };
    let item = value.getattr(&names.array_item_size);
    let item: Option<i64> = answer(py, item.and_then(|item| item.extract()))?;
    let Some(item) = item.filter(|&item| item > 0) else {
        return Ok(false);
    };
    read_numbers(&bytes, strides, |number| {
        isize::try_from(number / item).ok()
    })
}

/// Reads integers into `numbers`. Returns whether all items are integers that `convert` accepts.
fn read_numbers<T>(
    value: &Bound<'_, PyAny>,
    numbers: &mut Vec<T>,
    convert: impl Fn(i64) -> Option<T>,
) -> PyResult<bool> {
    numbers.clear();
    let mut add = |number: PyResult<i64>| {
        let number = answer(value.py(), number)?.and_then(&convert);
        let is_taken = number.is_some();
        numbers.extend(number);
        PyResult::Ok(is_taken)
    };
    if let Ok(tuple) = value.cast::<PyTuple>() {
        for item in tuple.iter_borrowed() {
            if !add(item.extract())? {
                return Ok(false);
            }
        }
    } else if let Ok(list) = value.cast::<PyList>() {
        for item in list {
            if !add(item.extract())? {
                return Ok(false);
            }
        }
    } else {
        let Some(items) = answer(value.py(), value.extract::<Vec<i64>>())? else {
            return Ok(false);
        };
        for number in items {
            if !add(Ok(number))? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Writes the strides of a contiguous tensor.
pub(crate) fn dense_strides(dims: &[usize], strides: &mut Vec<isize>) {
    strides.clear();
    strides.resize(dims.len(), 1);
    for axis in (1..dims.len()).rev() {
        strides[axis - 1] = strides[axis] * dims[axis].max(1) as isize;
    }
}

/// A cache of recent dtypes by identity of their Python objects, which are strings or immutable.
/// The cache owns the objects, so that no other object can get their address.
#[derive(Default)]
struct KnownDTypes {
    known: [Option<(Py<PyAny>, DType)>; REMEMBERED],
    next: usize,
}

impl KnownDTypes {
    /// Finds a dtype by its name: the object itself if it is a string, else its attribute `name`,
    /// else its `str`, which comes last because it may run code of the framework.
    fn find(&mut self, value: &Bound<'_, PyAny>, names: &TensorNames) -> PyResult<Option<DType>> {
        if let Some(dtype) = self.get(value) {
            return Ok(Some(dtype));
        }
        if let Ok(text) = value.cast::<PyString>() {
            return Ok(Some(self.add(value, dtype_of_text(text))));
        }
        let py = value.py();
        let (name, is_shown) = match answer(py, value.getattr_opt(&names.dtype_name))? {
            Some(Some(name)) => (name.cast_into::<PyString>().ok(), false),
            Some(None) => (answer(py, value.str())?, true),
            None => (None, false),
        };
        let Some(name) = name else {
            return Ok(None);
        };
        if let Some(dtype) = self.get(&name) {
            return Ok(Some(dtype));
        }
        let dtype = dtype_of_text(&name);
        if is_fixed(value, names) {
            self.add(value, dtype);
        } else if !is_shown {
            self.add(&name, dtype);
        }
        Ok(Some(dtype))
    }

    fn get(&self, value: &Bound<'_, PyAny>) -> Option<DType> {
        let mut known = self.known.iter().flatten();
        let (_, dtype) = known.find(|(object, _)| object.is(value))?;
        Some(*dtype)
    }

    #[cold]
    fn add(&mut self, value: &Bound<'_, PyAny>, dtype: DType) -> DType {
        self.known[self.next] = Some((value.clone().unbind(), dtype));
        self.next = (self.next + 1) % REMEMBERED;
        dtype
    }
}

/// Returns whether an object is immutable for Python code: its class is not a heap type, and its
/// instances have no `__dict__`.
fn is_fixed(value: &Bound<'_, PyAny>, names: &TensorNames) -> bool {
    let class = value.get_type();
    let number = |name: &Py<PyString>| class.getattr(name).and_then(|number| number.extract());
    let flags: PyResult<u64> = number(&names.class_flags);
    let attributes: PyResult<u64> = number(&names.class_dict_offset);
    matches!((flags, attributes), (Ok(flags), Ok(0)) if flags & HEAP_TYPE == 0)
}

/// Classes whose instances recently lacked a certain attribute. The next lookup on such an instance
/// goes through `getattr` with a default, which creates no exception if the attribute is missing
/// but is slower if it exists.
#[derive(Default)]
pub(crate) struct RecentClasses {
    /// Their addresses. A class that reuses the address of another one takes the slower lookup,
    /// with the same result.
    classes: [usize; REMEMBERED],
    next: usize,
}

impl RecentClasses {
    /// Returns an attribute, or `None` if the object does not have it.
    pub(crate) fn ask<'py>(
        &mut self,
        value: &Bound<'py, PyAny>,
        name: &Py<PyString>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = value.py();
        let class = value.get_type_ptr() as usize;
        if self.classes.contains(&class) {
            // The object itself is the default: nothing is its own shape, stride or method.
            let found = builtin_getattr(py)?.call1((value, name, value));
            return Ok(answer(py, found)?.filter(|found| !found.is(value)));
        }
        let found = answer(py, value.getattr(name))?;
        if found.is_none() {
            self.classes[self.next] = class;
            self.next = (self.next + 1) % REMEMBERED;
        }
        Ok(found)
    }
}

/// Parses the name of a dtype, with or without a module prefix.
pub(crate) fn dtype_of_text(text: &Bound<'_, PyString>) -> DType {
    let text = text.to_string_lossy();
    dtype_named(text.rsplit('.').next().unwrap_or_default())
}

fn dtype_named(name: &str) -> DType {
    match name {
        "uint8" => DType::U8,
        "int8" => DType::I8,
        "int16" => DType::I16,
        "int32" => DType::I32,
        "int64" => DType::I64,
        "float16" => DType::F16,
        "bfloat16" => DType::BF16,
        "float32" => DType::F32,
        "float64" => DType::F64,
        "complex64" => DType::C64,
        "complex128" => DType::C128,
        "bool" => DType::Bool,
        "uint16" => DType::U16,
        "uint32" => DType::U32,
        "uint64" => DType::U64,
        "complex32" => DType::C32,
        "bcomplex32" => DType::BC32,
        "float8_e4m3fn" => DType::F8E4M3FN,
        "float8_e4m3fnuz" => DType::F8E4M3FNUZ,
        "float8_e5m2" => DType::F8E5M2,
        "float8_e5m2fnuz" => DType::F8E5M2FNUZ,
        "float8_e8m0fnu" => DType::F8E8M0FNU,
        "float4_e2m1fn_x2" => DType::F4E2M1FNX2,
        "qint8" => DType::QI8,
        "quint8" => DType::QU8,
        "qint32" => DType::QI32,
        "quint4x2" => DType::QU4X2,
        "quint2x4" => DType::QU2X4,
        _ => DType::Unknown,
    }
}
