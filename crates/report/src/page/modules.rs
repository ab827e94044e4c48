//! The scripts and the style of pages: small modules that are joined into one inline script.
//!
//! The modules in `crates/report/page` are plain ES modules, which node tests and type checkers
//! read as they are. A page has no files to import, so that joining takes the import lines and the
//! word `export` out, with the comments, and puts all modules into one scope.

use std::fmt::Write as _;

/// A module: its file name and its text.
pub(super) type Module = (&'static str, &'static str);

macro_rules! modules {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("../../page/", $name)))),+]
    };
}

/// Every module of the report, those that others import first.
pub(super) const REPORT: &[Module] = &modules![
    "numbers.js",
    "names.js",
    "elements.js",
    "columns.js",
    "address.js",
    "sorting.js",
    "csv.js",
    "colours.js",
    "nesting.js",
    "lanes.js",
    "marks.js",
    "profile.js",
    "sums.js",
    "inside.js",
    "tree.js",
    "memory_chart.js",
    "memory_pane.js",
    "tables.js",
    "canvas.js",
    "timeline.js",
    "events_table.js",
    "flame_pane.js",
    "trace_file.js",
    "step_pane.js",
    "operators_pane.js",
    "detail_parts.js",
    "finding_detail.js",
    "costs.js",
    "groups.js",
    "detail_pane.js",
    "keyboard.js",
    "visit.js",
    "main.js",
];

/// The modules of the page that shows memory alone.
pub(crate) const MEMORY: &[Module] = &modules![
    "numbers.js",
    "elements.js",
    "memory_chart.js",
    "memory_pane.js",
    "memory_main.js",
];

/// The modules of the page about all ranks of a job.
pub(super) const RANKS: &[Module] = &modules![
    "numbers.js",
    "names.js",
    "elements.js",
    "address.js",
    "sorting.js",
    "csv.js",
    "tables.js",
    "keyboard.js",
    "ranks_main.js",
];

/// The style of all pages.
pub(super) const STYLE: &str = concat!(
    include_str!("../../page/colours.css"),
    include_str!("../../page/page.css"),
    include_str!("../../page/memory.css"),
    include_str!("../../page/ranks.css"),
    include_str!("../../page/print.css"),
);

/// Joins modules into one script.
pub(super) fn joined(modules: &[Module]) -> String {
    let mut script = String::from("\"use strict\";\n(() => {\n");
    for (name, text) in modules {
        let _ = writeln!(script, "// {name}");
        for line in text.lines().filter(|line| is_code(line)) {
            script.push_str(line.strip_prefix("export ").unwrap_or(line));
            script.push('\n');
        }
    }
    script.push_str("})();");
    script
}

/// Returns whether a line is neither an import nor a comment. Types are in comments of their own
/// lines, where they begin with one of these marks.
fn is_code(line: &str) -> bool {
    let comments = ["//", "/**", "* ", "*/"];
    let text = line.trim_start();
    !text.is_empty()
        && text != "*"
        && !line.starts_with("import ")
        && (!comments.iter().any(|mark| text.starts_with(mark)) || text.starts_with("/** @type"))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    /// Returns the names that a module declares at its outermost level, and whether each is
    /// exported.
    fn declared(text: &'static str) -> Vec<(&'static str, bool)> {
        let lines = text.lines().filter_map(|line| {
            let rest = line.strip_prefix("export ").unwrap_or(line);
            let rest = rest.strip_prefix("async ").unwrap_or(rest);
            let kinds = ["function* ", "function ", "const ", "let ", "class "];
            let name = kinds.iter().find_map(|kind| rest.strip_prefix(kind))?;
            let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
            let end = name.find(|letter| !is_part(letter)).unwrap_or(name.len());
            Some((&name[..end], line.starts_with("export ")))
        });
        lines.collect()
    }

    fn imported(text: &'static str) -> Vec<(&'static str, &'static str)> {
        let lines = text.lines().filter(|line| line.starts_with("import "));
        lines
            .flat_map(|line| {
                let (names, file) = line.split_once("} from \"./").expect("one line each");
                let names = names.strip_prefix("import {").expect("names in braces");
                let file = file.strip_suffix("\";").expect("a file name");
                names.split(',').map(move |name| (name.trim(), file))
            })
            .collect()
    }

    #[test]
    fn every_import_names_an_export_of_an_earlier_module() {
        for modules in [REPORT, MEMORY, RANKS] {
            let mut exports: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
            for (name, text) in modules {
                for (import, file) in imported(text) {
                    let known = exports.get(file);
                    assert!(
                        known.is_some_and(|known| known.contains(import)),
                        "{name} imports {import} from {file}"
                    );
                }
                let own = declared(text).into_iter();
                let own = own.filter(|(_, is_exported)| *is_exported);
                exports.insert(name, own.map(|(name, _)| name).collect());
            }
        }
    }

    #[test]
    fn names_are_unique_in_the_joined_script() {
        for modules in [REPORT, MEMORY, RANKS] {
            let mut seen = BTreeMap::new();
            for (file, text) in modules {
                for (name, _) in declared(text) {
                    let before = seen.insert(name, file);
                    assert_eq!(before, None, "{name} of {file} is declared twice");
                }
            }
        }
    }

    #[test]
    fn every_module_is_checked_by_a_type_checker() {
        for (name, text) in REPORT.iter().chain(MEMORY).chain(RANKS) {
            assert!(text.starts_with("// @ts-check\n"), "{name}");
            assert!(!text.contains("innerHTML"), "{name} writes markup");
        }
    }

    #[test]
    fn a_joined_script_neither_imports_nor_exports() {
        let script = joined(REPORT);
        let is_left = |line: &str| line.starts_with("import ") || line.starts_with("export ");
        assert!(!script.lines().any(is_left));
        assert!(!script.contains("</script"));
    }
}
