//! A value parser for options with a list of known names and an error message of their own.
//!
//! clap's own parser for a list of names cannot accept values beyond the list, such as `stack:3`,
//! and words its errors itself. Completions still list the names, and [`columns_of`] lays them out
//! for the help.

use std::ffi::OsStr;
use std::fmt::Write;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command};

/// The width of a help text, in characters.
const HELP_WIDTH: usize = 78;

/// Returns a list of names for a help text, in aligned columns, a line break after each row.
pub(crate) fn columns_of(names: &[&str]) -> String {
    let width = names.iter().map(|name| name.len()).max().unwrap_or(0);
    let per_row = (HELP_WIDTH / (width + 2)).max(1);
    let mut text = String::new();
    for row in names.chunks(per_row) {
        let mut line = String::new();
        for name in row {
            let _ = write!(line, "  {name:<width$}");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Parses a value with `read`, and offers `names` to completions.
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
