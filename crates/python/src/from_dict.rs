//! A macro for structs that are extracted from a Python dict with one item per field.
//!
//! `PyO3`'s derive interns the field names in cells that are filled on first use. If the process
//! forks meanwhile, they are never filled in the child (see `prefill` in `lib.rs`).

/// Defines a struct and its extraction from a dict.
macro_rules! from_dict {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $name:ident {
            $($(#[$field_attribute:meta])* $field:ident: $type:ty,)*
        }
    ) => {
        $(#[$attribute])*
        $visibility struct $name {
            $($(#[$field_attribute])* $field: $type,)*
        }

        impl<'py> pyo3::FromPyObject<'_, 'py> for $name {
            type Error = pyo3::PyErr;

            fn extract(dict: pyo3::Borrowed<'_, 'py, pyo3::PyAny>) -> pyo3::PyResult<Self> {
                use pyo3::types::PyAnyMethods;
                Ok(Self {
                    $($field: dict.get_item(stringify!($field))?.extract()?,)*
                })
            }
        }
    };
}

pub(crate) use from_dict;
