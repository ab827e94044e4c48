//! A cache of interned operator names, by the address of the Python string.
//!
//! The recorder interns a name by hashing its characters. Programs pass the same string object
//! again and again, so most names are found by address without hashing.

use mindprof_record::{Name, NameKind};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::gil_cell::GilCell;

/// The number of entries, a power of two.
const PLACES: usize = 256;

/// The maximum length of a cached string, in bytes.
const LONGEST_REMEMBERED: usize = 256;

/// The entries, each at the index that its address hashes to. They hold references to the strings,
/// so that no other object can get the same address.
static REMEMBERED: GilCell<[Option<Entry>; PLACES]> = GilCell::new([const { None }; PLACES]);

type Entry = (Py<PyString>, Name);

/// Returns the interned name of an operator.
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
    // Not cached: instances of subclasses, which may hold any object alive, and names that the
    // recorder refused, so that each use of them is counted.
    if text.is_exact_instance_of::<PyString>()
        && letters.len() <= LONGEST_REMEMBERED
        && !name.is_refused()
    {
        let entry = (text.clone().unbind(), name);
        let put = |entries: &mut [Option<Entry>; PLACES], entry: Entry| {
            let place = place(entry.0.as_ptr() as usize);
            entries[place].replace(entry)
        };
        // The replaced entry is dropped outside of the cell, because that may run Python code.
        drop(REMEMBERED.with(text.py(), entry, put));
    }
    name
}

/// Returns the index of an address. The multiplication spreads neighbouring addresses.
const fn place(address: usize) -> usize {
    let mixed = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 48) as usize % PLACES
}
