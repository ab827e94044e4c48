//! Indexing with `x[...]`: translates Python's indices into `select`, `slice`, `unsqueeze` and
//! `index`, applied in order.

use mindtorch_tensor as host;
use mindtorch_tensor::Put;
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyInt, PySequence, PySlice, PyString, PyTuple};

use super::arguments::Operand;
use super::{Tensor, wrap};
use crate::error::Error;

#[pymethods]
impl Tensor {
    fn __getitem__(&self, index: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(place) = index.cast::<PyInt>()
            && !index.is_instance_of::<PyBool>()
        {
            return wrap(indexed_once(&self.0, place.extract()?));
        }
        let (view, picks) = apply(&self.0, index)?;
        if picks.iter().all(Option::is_none) {
            // Even `x[...]` returns a new tensor object.
            return match view {
                Some(view) => Ok(Self(view)),
                None => wrap(self.0.view_as_self()),
            };
        }
        let view = view.unwrap_or_else(|| self.0.clone());
        wrap(view.index(&picks))
    }

    fn __setitem__(&self, index: &Bound<'_, PyAny>, value: Operand<'_, '_>) -> PyResult<()> {
        if let Operand::Number(number) = &value
            && let Some(mask) = only_mask(index)
            && self.0.dims().starts_with(mask.dims())
        {
            let mask = (mask.rank()..self.0.rank()).try_fold(mask, |mask, _| mask.unsqueeze(-1));
            let filled = mask.and_then(|mask| self.0.masked_fill_(&mask, *number));
            return Ok(filled.map_err(Error::from)?);
        }
        let (view, picks) = apply(&self.0, index)?;
        let view = view.unwrap_or_else(|| self.0.clone());
        let value = match &value {
            Operand::Tensor(tensor) => tensor.get().0.clone(),
            Operand::Number(number) if picks.iter().all(Option::is_none) => {
                return Ok(view.fill_(*number).map_err(Error::from)?);
            }
            Operand::Number(number) => {
                let dtype = self.0.dtype();
                host::Tensor::full(&[], *number, Some(dtype)).map_err(Error::from)?
            }
        };
        if value.requires_grad() {
            view.link_to(&self.0);
        }
        let result = if picks.iter().all(Option::is_none) {
            // As in torch, leading dimensions of size one in the value are ignored.
            shortened(&value, view.rank()).and_then(|value| view.copy_(&value))
        } else {
            let value = if value.dtype() == view.dtype() {
                Ok(value)
            } else {
                value.to(view.dtype())
            };
            value.and_then(|value| view.index_put_(&picks, &value, Put::Replace))
        };
        Ok(result.map_err(Error::from)?)
    }

    /// Gathers elements along a dimension by their indices.
    fn gather(&self, dim: i64, index: &Self) -> PyResult<Self> {
        wrap(self.0.gather(dim, &index.0))
    }

    /// Picks indices of a dimension.
    fn index_select(&self, dim: i64, index: &Self) -> PyResult<Self> {
        wrap(self.0.index_select(dim, &index.0))
    }

    /// Returns the elements that a mask selects, in order.
    fn masked_select(&self, mask: &Self) -> PyResult<Self> {
        wrap(self.0.masked_select(&mask.0))
    }

    /// Returns the indices of the nonzero elements.
    fn nonzero(&self) -> PyResult<Self> {
        wrap(self.0.nonzero())
    }
}

/// Returns the mask if it is the whole index.
fn only_mask(index: &Bound<'_, PyAny>) -> Option<host::Tensor> {
    let sole = match index.cast::<PyTuple>() {
        Ok(tuple) if tuple.len() == 1 => tuple.get_item(0).ok()?,
        Ok(_) => return None,
        Err(_) => index.clone(),
    };
    let mask = sole.cast::<Tensor>().ok()?.get().0.clone();
    (mask.dtype() == host::DType::Bool && mask.rank() > 0).then_some(mask)
}

fn indexed_once(tensor: &host::Tensor, place: i64) -> host::Result<host::Tensor> {
    check_place(tensor, [0, 0], place)?;
    tensor.select(0, place)
}

/// Checks an integer index. Unlike those of `select`, error messages name the dimension of the
/// original tensor.
fn check_place(
    tensor: &host::Tensor,
    [dimension, whole]: [usize; 2],
    place: i64,
) -> host::Result<()> {
    let Some(&size) = tensor.dims().get(dimension) else {
        return Err(host::Error::Rejected {
            exception: host::Exception::Index,
            message: if tensor.rank() == 0 {
                "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to \
                 convert a 0-dim tensor to a number"
                    .to_owned()
            } else {
                format!("too many indices for tensor of dimension {}", tensor.rank())
            },
        });
    };
    let size = size as i64;
    if place < -size || place >= size {
        return Err(host::Error::Rejected {
            exception: host::Exception::Index,
            message: format!(
                "index {place} is out of bounds for dimension {whole} with size {size}"
            ),
        });
    }
    Ok(())
}

/// Applies all indices except tensors. Returns the view, if one was needed, and the index tensors
/// by dimension of the view.
fn apply(
    tensor: &host::Tensor,
    index: &Bound<'_, PyAny>,
) -> PyResult<(Option<host::Tensor>, Vec<Option<host::Tensor>>)> {
    let items: Vec<Bound<'_, PyAny>> = match index.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().collect(),
        Err(_) => vec![index.clone()],
    };
    let named: usize = items.iter().map(consumed).sum();
    if named > tensor.rank() {
        return Err(PyIndexError::new_err(format!(
            "too many indices for tensor of dimension {}",
            tensor.rank()
        )));
    }
    let mut view: Option<host::Tensor> = None;
    let mut picks: Vec<Option<host::Tensor>> = Vec::new();
    let (mut dimension, mut whole) = (0, 0);
    for item in &items {
        let current = view.as_ref().unwrap_or(tensor);
        if item.is_none() {
            view = Some(current.unsqueeze(dimension as i64).map_err(Error::from)?);
            dimension += 1;
        } else if item.is_instance_of::<PyEllipsis>() {
            dimension += tensor.rank() - named;
            whole += tensor.rank() - named;
        } else if let Some(mask) = single_truth(item).map_err(Error::from)? {
            view = Some(current.unsqueeze(dimension as i64).map_err(Error::from)?);
            put_at(&mut picks, dimension, mask);
            dimension += 1;
        } else if let Ok(slice) = item.cast::<PySlice>() {
            let (first, end, step) = bounds(slice)?;
            if (first, end, step) != (None, None, 1) {
                let sliced = current.slice(dimension as i64, first, end, step);
                view = Some(sliced.map_err(Error::from)?);
            }
            dimension += 1;
        } else if let Some(pick) = as_tensor(item)? {
            let covered = if pick.dtype() == host::DType::Bool {
                pick.rank()
            } else {
                1
            };
            put_at(&mut picks, dimension, pick);
            dimension += covered;
        } else {
            let place: i64 = item.extract().map_err(|_| wrong_index(item))?;
            check_place(current, [dimension, whole], place).map_err(Error::from)?;
            view = Some(
                current
                    .select(dimension as i64, place)
                    .map_err(Error::from)?,
            );
        }
        whole += consumed(item);
    }
    Ok((view, picks))
}

/// Returns a mask of size one for a boolean or a zero-dimensional boolean tensor, which selects all
/// or nothing.
fn single_truth(item: &Bound<'_, PyAny>) -> host::Result<Option<host::Tensor>> {
    if let Ok(truth) = item.cast::<PyBool>() {
        let truth = [host::Logical::from(truth.is_true())];
        return host::Tensor::from_slice(&truth, &[1]).map(Some);
    }
    match item.cast::<Tensor>() {
        Ok(tensor) if tensor.get().0.dtype() == host::DType::Bool && tensor.get().0.rank() == 0 => {
            tensor.get().0.unsqueeze(0).map(Some)
        }
        Ok(_) | Err(_) => Ok(None),
    }
}

/// Stores an index tensor at its dimension. A mask of several dimensions takes one slot.
fn put_at(picks: &mut Vec<Option<host::Tensor>>, dimension: usize, pick: host::Tensor) {
    let taken: usize = picks
        .iter()
        .flatten()
        .filter(|pick| pick.dtype() == host::DType::Bool)
        .map(|pick| pick.rank().saturating_sub(1))
        .sum();
    picks.resize(dimension.saturating_sub(taken), None);
    picks.push(Some(pick));
}

/// Returns the number of dimensions that an index consumes.
fn consumed(item: &Bound<'_, PyAny>) -> usize {
    if item.is_none() || item.is_instance_of::<PyEllipsis>() || item.is_instance_of::<PyBool>() {
        return 0;
    }
    match item.cast::<Tensor>() {
        Ok(tensor) if tensor.get().0.dtype() == host::DType::Bool => tensor.get().0.rank(),
        _ => 1,
    }
}

/// Converts an index to a tensor, including a list; returns `None` for an integer.
fn as_tensor(item: &Bound<'_, PyAny>) -> PyResult<Option<host::Tensor>> {
    if let Ok(tensor) = item.cast::<Tensor>() {
        return Ok(Some(tensor.get().0.clone()));
    }
    if item.cast::<PySequence>().is_ok() && !item.is_instance_of::<PyString>() {
        let made = super::creation::tensor(item, None, None, false)?;
        if made.0.count() == 0 {
            return Ok(Some(made.0.to(host::DType::I64).map_err(Error::from)?));
        }
        return Ok(Some(made.0));
    }
    if item.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("new(): invalid data type 'str'"));
    }
    if item.hasattr("__array_interface__")? && !item.hasattr("__index__")? {
        return Ok(Some(super::numpy::from_numpy(item)?.0));
    }
    Ok(None)
}

fn bounds(slice: &Bound<'_, PySlice>) -> PyResult<(Option<i64>, Option<i64>, i64)> {
    let part = |name: &str| -> PyResult<Option<i64>> { slice.getattr(name)?.extract() };
    let step = part("step")?.unwrap_or(1);
    if step <= 0 {
        return Err(PyValueError::new_err("step must be greater than zero"));
    }
    Ok((part("start")?, part("stop")?, step))
}

fn shortened(value: &host::Tensor, rank: usize) -> host::Result<host::Tensor> {
    let mut value = value.clone();
    while value.rank() > rank && value.dims()[0] == 1 {
        value = value.squeeze(0)?;
    }
    Ok(value)
}

fn wrong_index(item: &Bound<'_, PyAny>) -> PyErr {
    let found = item
        .get_type()
        .name()
        .map_or_else(|_| "?".into(), |name| name.to_string());
    PyIndexError::new_err(format!(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got {found})"
    ))
}
