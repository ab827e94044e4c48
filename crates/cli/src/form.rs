//! The forms that a command writes in. The end of a name says which, or `--to` where there is no
//! name.

use std::io::{IsTerminal, stdout};
use std::path::Path;

use clap::builder::PossibleValue;
use mindprof_formats::Format;
use mindprof_trace::Compression;

use crate::failure::{misused, refused_name};
use crate::output::Output;

/// One form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form<K> {
    /// What `--to` calls it.
    pub(crate) name: &'static str,
    /// How names of files in it end.
    pub(crate) endings: &'static [&'static str],
    /// What it is, in a few words.
    pub(crate) description: &'static str,
    /// Whether a terminal can show it.
    pub(crate) is_text: bool,
    /// What the command knows it by.
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

/// What was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice<K> {
    pub(crate) form: Form<K>,
    pub(crate) compression: Option<Compression>,
}

/// Returns what `--to` takes: each form, and the first, which traces mostly are, compressed too.
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

/// Returns what else a form may be asked for by: the ends of its names, as `speedscope.json`.
fn other_names<K>(form: &Form<K>) -> impl Iterator<Item = &'static str> {
    let (name, ends) = (form.name, form.endings.iter());
    let ends = ends.map(|ending| ending.trim_start_matches('.'));
    ends.filter(move |ending| *ending != name)
}

/// Lists the forms with the ends of their names, a line each, for a help text.
pub(crate) fn listed<K>(forms: &[Form<K>]) -> String {
    let line = |form: &Form<K>| format!("  {:<26} {}\n", form.endings.join(", "), form.description);
    forms.iter().map(line).collect()
}

/// Finds the form that was asked for. The first one is meant where nothing says it and nothing could:
/// on stdout, and in pipes and devices, which have any name.
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
        *found.expect("the command line takes names of forms alone")
    });
    let packed = asked.and_then(|(_, compression)| compression);
    let (form, compression) = match out {
        Output::Stdout => (named.unwrap_or(forms[0]), packed),
        Output::File(path) => {
            let compression = Compression::of(path);
            if packed.is_some() && packed != compression {
                let ending = packed.map_or("", Compression::ending);
                let message = format!("what is compressed has a name that ends in {ending}");
                return Err(misused(
                    message,
                    format!("name it {}{ending}", path.display()),
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
        let message = format!("{} is not for a terminal", to.unwrap_or(form.name));
        return Err(misused(
            message,
            "give the name of a file, or send it on with |",
        ));
    }
    Ok(Choice { form, compression })
}

/// Returns the form whose end a name has, compressed or not, in letters of any case; the longest
/// end counts.
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
