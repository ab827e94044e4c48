//! Tensors of any framework, asked for shape, type and strides: `arguments` writes what they tell.
//!
//! What a tensor says may change from one operator to the next, so it is asked each time. Held is
//! only what cannot: what the name of a type of elements and a tuple of numbers mean, and how a
//! class is asked at the least cost, which has no bearing on the answer.

use mindprof_model::DType;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::known_layouts::KnownLayouts;
use crate::py_cache::{InternedNames, builtin_getattr, interned_names};

/// How many types of elements, and how many classes, are remembered.
const REMEMBERED: usize = 8;

/// The flag of classes that Python code made, and may change.
const HEAP_TYPE: u64 = 1 << 9;

/// What a tensor told.
pub(crate) struct TensorFacts<'a> {
    pub(crate) dtype: DType,
    pub(crate) dims: &'a [usize],
    pub(crate) strides: &'a [isize],
}

/// Asks tensors.
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
    /// Takes whatever has a shape and a type of elements for a tensor; one that does not tell its
    /// strides is dense.
    pub(crate) fn read(&mut self, value: &Bound<'_, PyAny>) -> Option<TensorFacts<'_>> {
        let names = interned_names(value.py());
        let shape = self.shapeless.ask(value, &names.tensor_shape)?;
        let dtype = value.getattr(&names.tensor_dtype).ok()?;
        let dtype = self.dtypes.find(&dtype, names)?;
        let stride = self.strideless.ask(value, &names.tensor_stride);
        let known = (stride.as_ref()).and_then(|stride| self.layouts.find(&shape, stride));
        if known.is_none() {
            self.read_layout(value, &shape, stride.as_ref())?;
        }
        let (dims, strides) = match known {
            Some(place) => self.layouts.at(place),
            None => (&*self.dims, &*self.strides),
        };
        Some(TensorFacts {
            dtype,
            dims,
            strides,
        })
    }

    /// Reads sizes and strides; one that does not tell strides is dense.
    fn read_layout(
        &mut self,
        value: &Bound<'_, PyAny>,
        shape: &Bound<'_, PyAny>,
        stride: Option<&Bound<'_, PyAny>>,
    ) -> Option<()> {
        read_numbers(shape, &mut self.dims, |number| usize::try_from(number).ok())?;
        let told = match stride {
            Some(stride) => read_strides(stride, &mut self.strides),
            None => read_byte_strides(value, &mut self.strides),
        };
        if told.is_none() {
            dense_strides(&self.dims, &mut self.strides);
        } else if let Some(stride) = stride {
            (self.layouts).add((shape, stride), &self.dims, &self.strides);
        }
        Some(())
    }
}

/// Reads the strides in elements that a tensor tells, or that it returns if it is asked to.
fn read_strides(told: &Bound<'_, PyAny>, strides: &mut Vec<isize>) -> Option<()> {
    let stride = |number| isize::try_from(number).ok();
    if told.is_instance_of::<PyTuple>() {
        return read_numbers(told, strides, stride);
    }
    read_numbers(&told.call0().ok()?, strides, stride)
}

/// Reads the strides of an array, which are in bytes.
fn read_byte_strides(value: &Bound<'_, PyAny>, strides: &mut Vec<isize>) -> Option<()> {
    let names = interned_names(value.py());
    let bytes = value.getattr(&names.array_strides).ok()?;
    let item: i64 = value.getattr(&names.array_item_size).ok()?.extract().ok()?;
    if item <= 0 {
        return None;
    }
    read_numbers(&bytes, strides, |number| {
        isize::try_from(number / item).ok()
    })
}

/// Reads whole numbers, all of which `convert` takes, into a list.
fn read_numbers<T>(
    value: &Bound<'_, PyAny>,
    numbers: &mut Vec<T>,
    convert: impl Fn(i64) -> Option<T>,
) -> Option<()> {
    numbers.clear();
    if let Ok(tuple) = value.cast::<PyTuple>() {
        for item in tuple.iter_borrowed() {
            numbers.push(convert(item.extract().ok()?)?);
        }
    } else if let Ok(list) = value.cast::<PyList>() {
        for item in list {
            numbers.push(convert(item.extract().ok()?)?);
        }
    } else {
        for number in value.extract::<Vec<i64>>().ok()? {
            numbers.push(convert(number)?);
        }
    }
    Some(())
}

/// Writes the strides of a tensor whose last dimension lies innermost, without gaps.
pub(crate) fn dense_strides(dims: &[usize], strides: &mut Vec<isize>) {
    strides.clear();
    strides.resize(dims.len(), 1);
    for axis in (1..dims.len()).rev() {
        strides[axis - 1] = strides[axis] * dims[axis].max(1) as isize;
    }
}

/// The types of elements that were met last, by the objects that stand for them: texts, and objects
/// that Python code cannot change. They are held, so that no other object takes their place in
/// memory.
#[derive(Default)]
struct KnownDTypes {
    known: [Option<(Py<PyAny>, DType)>; REMEMBERED],
    next: usize,
}

impl KnownDTypes {
    /// Takes a type of elements by its name: a text, an attribute, or what it is shown as, whichever
    /// is there first, since showing it may run code of the framework's.
    fn find(&mut self, value: &Bound<'_, PyAny>, names: &InternedNames) -> Option<DType> {
        if let Some(dtype) = self.get(value) {
            return Some(dtype);
        }
        if let Ok(text) = value.cast::<PyString>() {
            return Some(self.add(value, dtype_of_text(text)));
        }
        let (name, is_shown) = match value.getattr_opt(&names.dtype_name).ok()? {
            Some(name) => (name.cast_into::<PyString>().ok()?, false),
            None => (value.str().ok()?, true),
        };
        if let Some(dtype) = self.get(&name) {
            return Some(dtype);
        }
        let dtype = dtype_of_text(&name);
        if is_fixed(value, names) {
            self.add(value, dtype);
        } else if !is_shown {
            self.add(&name, dtype);
        }
        Some(dtype)
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

/// Returns whether Python code can change nothing of an object: its class is none that such code
/// made, and it has no attributes of its own.
fn is_fixed(value: &Bound<'_, PyAny>, names: &InternedNames) -> bool {
    let class = value.get_type();
    let number = |name: &Py<PyString>| class.getattr(name).and_then(|number| number.extract());
    let flags: PyResult<u64> = number(&names.class_flags);
    let attributes: PyResult<u64> = number(&names.class_dict_offset);
    matches!((flags, attributes), (Ok(flags), Ok(0)) if flags & HEAP_TYPE == 0)
}

/// The classes whose objects had no attribute of one name when they were asked last. Such an object
/// is asked in a way that makes no exception where the attribute is still missing, and costs more
/// where it is there.
#[derive(Default)]
struct RecentClasses {
    /// Where they lie. A class that takes the place of another one in memory is asked in the costly
    /// way, and answers the same.
    classes: [usize; REMEMBERED],
    next: usize,
}

impl RecentClasses {
    /// Returns an attribute of an object that has it.
    fn ask<'py>(
        &mut self,
        value: &Bound<'py, PyAny>,
        name: &Py<PyString>,
    ) -> Option<Bound<'py, PyAny>> {
        let class = value.get_type_ptr() as usize;
        if self.classes.contains(&class) {
            // The object stands for what is missing: none is its own shape or stride.
            let getattr = builtin_getattr(value.py()).ok()?;
            let found = getattr.call1((value, name, value)).ok()?;
            return (!found.is(value)).then_some(found);
        }
        let found = value.getattr(name).ok();
        if found.is_none() {
            self.classes[self.next] = class;
            self.next = (self.next + 1) % REMEMBERED;
        }
        found
    }
}

/// Takes a type of elements by its name, which may follow that of a module.
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
