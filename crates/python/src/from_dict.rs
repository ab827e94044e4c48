//! Structs that are extracted from a dict with an item for each field.
//!
//! What `PyO3` derives for that interns the names of the fields in cells of its own, which are filled
//! at first use: in a child that is forked meanwhile they never are (see `prefill` in `lib.rs`).

/// Makes a struct that is extracted from a dict.
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
