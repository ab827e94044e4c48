//! Caches for objects that are looked up in Python once, such as interned attribute names.
//!
//! If one thread is filling such a cell while another forks, the cell stays half filled in the
//! child, and every access to it waits forever. Therefore every module that owns a cell has a
//! function `prefill`, which `mindprof._core` calls while it is imported, and no cell is filled on
//! first use.

/// Declares a struct of interned Python strings and a cell that holds its only value.
///
/// The struct gets an associated function `get`, which returns the value. Each field is interned
/// under its own name, or under the text after `=`. The module that declares the struct calls `get`
/// once in its `prefill`.
#[macro_export]
macro_rules! interned_names {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $struct:ident {
            $($name:ident $(= $text:literal)?,)*
        }
    ) => {
        $(#[$attribute])*
        $visibility struct $struct {
            $($visibility $name: ::pyo3::Py<::pyo3::types::PyString>,)*
        }

        impl $struct {
            /// Returns the names, which were interned at import.
            $visibility fn get(py: ::pyo3::Python<'_>) -> &'static Self {
                static NAMES: ::pyo3::sync::PyOnceLock<$struct> = ::pyo3::sync::PyOnceLock::new();
                NAMES.get_or_init(py, || Self {
                    $($name: {
                        let text = $crate::interned_names!(@text $name $($text)?);
                        ::pyo3::types::PyString::intern(py, text).unbind()
                    },)*
                })
            }
        }
    };
    (@text $name:ident) => { stringify!($name) };
    (@text $name:ident $text:literal) => { $text };
}
