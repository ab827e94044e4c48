//! Output formats of a command, and the choice of one by file extension or `--to`.
//!
//! Each command that writes files has a list of [`Form`]s. The list also provides the values of
//! `--to` and the section on formats in the help.

use std::io::{IsTerminal, stdout};
use std::path::Path;

use clap::builder::PossibleValue;
use mindprof_formats::Format;
use mindprof_trace::Compression;

use crate::failure::{misused, refused_name};
use crate::output::Output;

/// An output format that a command offers.
///
/// `K` is the command's own type for its formats, so that it can match on the chosen one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form<K> {
    /// The value of `--to`.
    pub(crate) name: &'static str,
    /// The file extensions, with the dot and without that of a compression.
    pub(crate) endings: &'static [&'static str],
    /// A short description for the help.
    pub(crate) description: &'static str,
    /// Whether a terminal can show it.
    pub(crate) is_text: bool,
    /// The format as the command knows it.
    pub(crate) kind: K,
}

impl Form<Format> {
    pub(crate) const fn of(format: Format) -> Self {
        Self {
            name: format.name(),
            endings: format.endings(),
            description: format.description(),
            is_text: format.is_text(),
            kind: format,
        }
    }
}

/// The format and compression of an output, as [`choose`] found them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice<K> {
    pub(crate) form: Form<K>,
    pub(crate) compression: Option<Compression>,
}

/// Returns the values of `--to`: every form, plain and compressed.
///
/// Compressed forms are hidden from help and completions, except those of the first form, which is
/// the common one.
pub(crate) fn values<K>(forms: &[Form<K>]) -> Vec<PossibleValue> {
    let mut values = Vec::new();
    for (index, form) in forms.iter().enumerate() {
        let others = || other_names(form);
        values.push(
            PossibleValue::new(form.name)
                .help(form.description)
                .aliases(others()),
        );
        for compression in Compression::ALL {
            let name = format!("{}{}", form.name, compression.ending());
            let help = format!("{}, with {compression}", form.description);
            let others = others().map(|other| format!("{other}{}", compression.ending()));
            let value = PossibleValue::new(name).help(help).aliases(others);
            values.push(value.hide(index > 0));
        }
    }
    values
}

/// Returns the other values of `--to` for a form: its file extensions, such as `speedscope.json`.
fn other_names<K>(form: &Form<K>) -> impl Iterator<Item = &'static str> {
    let (name, ends) = (form.name, form.endings.iter());
    let ends = ends.map(|ending| ending.trim_start_matches('.'));
    ends.filter(move |ending| *ending != name)
}

/// Returns the section on formats of a help text: the extensions of each form on a line.
pub(crate) fn listed<K>(forms: &[Form<K>]) -> String {
    let endings = |form: &Form<K>| form.endings.join(", ");
    let width = forms.iter().map(|form| endings(form).len()).max();
    let width = width.unwrap_or(0);
    let line = |form: &Form<K>| format!("  {:<width$}  {}\n", endings(form), form.description);
    let lines: String = forms.iter().map(line).collect();
    let (first, compressions) = (forms[0].name, Compression::ALL.map(Compression::ending));
    let compressions = compressions.join(" or ");
    format!(
        "Formats, by file extension or --to (without the dot):\n{lines}\
         On stdout the default is {first}. A further {compressions} compresses."
    )
}

/// Finds the format of an output: the one named by `--to`, else the one of the file extension.
///
/// Without either it is the first form, on stdout and in pipes and devices, whose names have no
/// meaning.
///
/// # Errors
///
/// If the extension is unknown or contradicts `--to`, or if binary data would go to a terminal.
pub(crate) fn choose<K: Copy>(
    forms: &[Form<K>],
    to: Option<&str>,
    out: &Output,
) -> anyhow::Result<Choice<K>> {
    let asked = to.map(Compression::split);
    let named = asked.map(|(name, _)| {
        let is_named =
            |form: &&Form<K>| form.name == name || other_names(form).any(|own| own == name);
        let found = forms.iter().find(is_named);
        *found.expect("the command line accepts only the values of `values`")
    });
    let packed = asked.and_then(|(_, compression)| compression);
    let (form, compression) = match out {
        Output::Stdout => (named.unwrap_or(forms[0]), packed),
        Output::File(path) => {
            let compression = Compression::of(path);
            if packed.is_some() && packed != compression {
                let ending = packed.map_or("", Compression::ending);
                let to = to.unwrap_or_default();
                let message = format!("--to {to} needs a file name that ends in {ending}");
                return Err(misused(
                    message,
                    format!("write to {}{ending}", path.display()),
                ));
            }
            let found = named.or_else(|| named_by(forms, path));
            let any = || out.is_special().then_some(forms[0]);
            let found = found.or_else(any);
            (found.ok_or_else(|| refused(forms, path))?, compression)
        }
    };
    let is_shown = form.is_text && compression.is_none();
    if matches!(out, Output::Stdout) && stdout().is_terminal() && !is_shown {
        let format = to.unwrap_or(form.name);
        let message = format!("refusing to write {format} to a terminal: it is binary data");
        return Err(misused(message, "write to a file, or pipe the output"));
    }
    Ok(Choice { form, compression })
}

/// Returns the form with the longest extension that a file name ends in, ignoring case and the
/// extension of a compression.
fn named_by<K: Copy>(forms: &[Form<K>], path: &Path) -> Option<Form<K>> {
    let name = path.to_string_lossy().to_ascii_lowercase();
    let (name, _) = Compression::split(&name);
    let ends = forms.iter().flat_map(|form| {
        let endings = form.endings.iter();
        endings.map(move |ending| (ending, form))
    });
    let found = ends.filter(|(ending, _)| name.ends_with(**ending));
    let longest = found.max_by_key(|(ending, _)| ending.len());
    longest.map(|(_, form)| *form)
}

fn refused<K>(forms: &[Form<K>], path: &Path) -> anyhow::Error {
    let ends: Vec<&str> = forms
        .iter()
        .flat_map(|form| form.endings)
        .copied()
        .collect();
    refused_name(path, &ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMS: [Form<u8>; 2] = [
        Form {
            name: "json",
            endings: &[".json"],
            description: "points",
            is_text: true,
            kind: 1,
        },
        Form {
            name: "raw",
            endings: &[".raw.json"],
            description: "changes",
            is_text: true,
            kind: 2,
        },
    ];

    fn chosen(to: Option<&str>, out: &str) -> Option<(u8, Option<Compression>)> {
        let choice = choose(&FORMS, to, &Output::of(out.as_ref())).ok()?;
        Some((choice.form.kind, choice.compression))
    }

    #[test]
    fn the_longest_end_of_a_name_counts_in_any_case() {
        assert_eq!(chosen(None, "a.json"), Some((1, None)));
        assert_eq!(
            chosen(None, "A.RAW.JSON.GZ"),
            Some((2, Some(Compression::Gzip)))
        );
        assert_eq!(chosen(None, "a.png"), None);
        assert_eq!(chosen(Some("raw"), "a.png"), Some((2, None)));
        assert_eq!(chosen(Some("raw.gz"), "a.raw.json"), None);
        assert_eq!(chosen(Some("raw.json"), "a.png"), Some((2, None)));
    }

    #[test]
    fn without_a_name_the_first_is_meant() {
        assert_eq!(chosen(None, "/dev/null"), Some((1, None)));
    }
}
