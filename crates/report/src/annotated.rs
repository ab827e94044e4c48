//! Source files with the cost of their lines beside them.

use std::collections::BTreeMap;

use mindprof_answers::{Functions, LineCost};
use mindprof_model::Nanos;

use crate::functions::{CodeLayout, push_notes, share, time};
use crate::grid::{cut, push_line};
use crate::visible::visible;

/// The number of lines around a costly one that are shown with it.
const CONTEXT: usize = 2;

/// The width of the numbers at the left.
const NUMBERS: usize = 26;

#[derive(Clone, Copy, Default)]
struct Sum {
    own: Nanos,
    total: Nanos,
}

/// Returns the lines of a source file that cost something and those around them, each with its
/// share of the program's time. Those of other threads and processes follow.
///
/// The lines must be of one file; `source` is its text.
pub fn annotated_text(functions: &Functions, source: &str, layout: CodeLayout) -> String {
    let mut text = String::new();
    let (here, elsewhere) = (&functions.lines, &functions.lines_elsewhere);
    if !here.is_empty() || elsewhere.is_empty() {
        push_annotated(&mut text, functions, here, source, layout);
        push_notes(&mut text, functions, layout.width);
    }
    if elsewhere.iter().any(|row| row.own.time() > Nanos::ZERO) {
        if !text.is_empty() {
            text.push('\n');
        }
        push_line(&mut text, "On other threads and in other processes:");
        push_annotated(&mut text, functions, elsewhere, source, layout);
    }
    text
}

fn push_annotated(
    text: &mut String,
    functions: &Functions,
    rows: &[LineCost],
    source: &str,
    layout: CodeLayout,
) {
    let whole = functions.total.time();
    let mut costs: BTreeMap<usize, Sum> = BTreeMap::new();
    let mut own = Nanos::ZERO;
    for row in rows {
        let sum = costs.entry(row.line as usize).or_default();
        sum.own = sum.own + row.own.time();
        sum.total = sum.total.max(row.total.time());
        own = own + row.own.time();
    }
    let file = rows.first().map_or("", |row| row.file.as_str());
    let heading = format!(
        "{}: {} of {} ({})",
        visible(file),
        time(own),
        time(whole),
        share(own, whole)
    );
    push_line(text, &heading);
    push_line(text, "  Own %  Total %   Line  Source");
    push_line(text, "-------  -------  -----  ------");
    let lines: Vec<&str> = source.lines().collect();
    let is_near = |number: usize| {
        let near = number.saturating_sub(CONTEXT)..=number + CONTEXT;
        costs.range(near).next().is_some()
    };
    let mut last = 0;
    for (number, line) in (1..).zip(&lines).filter(|(number, _)| is_near(*number)) {
        if last > 0 && number > last + 1 {
            push_line(text, &format!("{:>23}", "..."));
        }
        last = number;
        let sum = costs.get(&number).copied().unwrap_or_default();
        let cell = |part: Nanos| match part {
            Nanos::ZERO => String::new(),
            part => share(part, whole),
        };
        let width = layout
            .width
            .map(|width| width.saturating_sub(NUMBERS - 1).max(10));
        let source = cut(&visible(&line.replace('\t', "    ")), width);
        let line = format!(
            "{:>7}  {:>7}  {number:>5}  {source}",
            cell(sum.own),
            cell(sum.total)
        );
        push_line(text, line.trim_end());
    }
    if rows.iter().any(|row| row.line as usize > lines.len()) {
        push_line(
            text,
            "The file has fewer lines than were recorded: it has changed",
        );
    }
    if rows.iter().any(|row| row.is_definition) {
        push_line(
            text,
            "A definition has the cost of its code at lines that were not recorded",
        );
    }
}

#[cfg(test)]
mod tests {
    use mindprof_answers::Cost;

    use super::*;

    fn line(line: u32, own: u64, is_definition: bool) -> LineCost {
        let cost = Cost {
            cpu: Nanos(own),
            ..Cost::default()
        };
        LineCost {
            file: "train.py".into(),
            line,
            function: "f".into(),
            is_definition,
            own: cost,
            total: cost,
            share_error: None,
            mostly: None,
        }
    }

    #[test]
    fn costly_lines_are_shown_with_those_around_them() {
        let functions = Functions {
            total: Cost {
                cpu: Nanos(100_000),
                ..Cost::default()
            },
            lines: vec![line(2, 60_000, false), line(8, 25_000, true)],
            ..Functions::default()
        };
        let source = "import torch\ny = f(x)\n\n\n\n\n\ndef f(x):\n\treturn x";
        let layout = CodeLayout {
            rows: 20,
            width: Some(80),
        };
        let expected = "\
train.py: 85.000us of 100.000us (85.0%)
  Own %  Total %   Line  Source
-------  -------  -----  ------
                      1  import torch
  60.0%    60.0%      2  y = f(x)
                      3
                      4
                    ...
                      6
                      7
  25.0%    25.0%      8  def f(x):
                      9      return x
A definition has the cost of its code at lines that were not recorded
";
        assert_eq!(annotated_text(&functions, source, layout), expected);
    }

    #[test]
    fn lines_that_only_workers_run_are_shown_too() {
        let functions = Functions {
            total: Cost {
                cpu: Nanos(100_000),
                ..Cost::default()
            },
            lines_elsewhere: vec![line(2, 60_000, false)],
            ..Functions::default()
        };
        let layout = CodeLayout {
            rows: 20,
            width: Some(80),
        };
        let expected = "\
On other threads and in other processes:
train.py: 60.000us of 100.000us (60.0%)
  Own %  Total %   Line  Source
-------  -------  -----  ------
                      1  def load():
  60.0%    60.0%      2      read()
";
        let source = "def load():\n    read()";
        assert_eq!(annotated_text(&functions, source, layout), expected);
    }
}
