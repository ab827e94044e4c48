//! The names of operators that Python code opened last, by the texts that it gave.
//!
//! The recorder finds a name by its letters. A program gives the same text object again and again,
//! so most of them are found by where they lie.

use mindprof_record::{Name, NameKind};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::gil_cell::GilCell;

/// How many texts are remembered: a power of two.
const PLACES: usize = 256;

/// A text longer than this is not held for the next operator.
const LONGEST_REMEMBERED: usize = 256;

/// Texts, each at the place that its address leads to. They are held, so that no other object takes
/// their place in memory; names of operators stay anyway.
static REMEMBERED: GilCell<[Option<Entry>; PLACES]> = GilCell::new([const { None }; PLACES]);

type Entry = (Py<PyString>, Name);

/// Returns the name of an operator.
#[inline]
pub(crate) fn operator_name(text: &Bound<'_, PyString>) -> Name {
    let find =
        |entries: &mut [Option<Entry>; PLACES], address: usize| match &entries[place(address)] {
            Some((known, name)) if known.as_ptr() as usize == address => Some(*name),
            _ => None,
        };
    let known = REMEMBERED.with(text.py(), text.as_ptr() as usize, find);
    known.unwrap_or_else(|| intern(text))
}

#[cold]
fn intern(text: &Bound<'_, PyString>) -> Name {
    let letters = text.to_string_lossy();
    let name = Name::intern(&letters, NameKind::Operator);
    // Of a class of its own it might hold anything, and a name that was refused is told of again.
    if text.is_exact_instance_of::<PyString>()
        && letters.len() <= LONGEST_REMEMBERED
        && !name.is_refused()
    {
        let entry = (text.clone().unbind(), name);
        let put = |entries: &mut [Option<Entry>; PLACES], entry: Entry| {
            let place = place(entry.0.as_ptr() as usize);
            entries[place].replace(entry)
        };
        // Dropped out here, where Python code may run.
        drop(REMEMBERED.with(text.py(), entry, put));
    }
    name
}

/// Returns where a text is remembered. What lies next to it in memory is far from it here.
const fn place(address: usize) -> usize {
    let mixed = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 48) as usize % PLACES
}
