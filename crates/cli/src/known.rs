//! Values of options that are known by name: completions list them, and what is none of them is
//! refused in the words of who reads it.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command};

/// Reads one of the values, or what else `read` takes.
#[derive(Clone, Debug)]
pub(crate) struct KnownValues<T> {
    names: Vec<&'static str>,
    read: fn(&str) -> Result<T, String>,
}

impl<T> KnownValues<T> {
    pub(crate) fn new(
        names: impl IntoIterator<Item = &'static str>,
        read: fn(&str) -> Result<T, String>,
    ) -> Self {
        Self {
            names: names.into_iter().collect(),
            read,
        }
    }
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for KnownValues<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        let read = self.read;
        (move |text: &str| read(text)).parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.names.iter().copied().map(PossibleValue::new)))
    }
}
