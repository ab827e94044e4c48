//! Cells for what is looked up in Python once, such as interned attribute names.
//!
//! A cell that one thread is filling while another thread forks stays half full in the child, where
//! everyone who asks for it waits forever. Every module that owns such a cell therefore has a
//! `prefill` function, and `mindprof._core` calls all of them while it is imported. A cell is never
//! filled at its first use.

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
