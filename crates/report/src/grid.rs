//! Text in aligned columns, for all tables that do not follow torch's layout.

use crate::visible::visible;

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

const SPACING: usize = 2;

/// Lays out rows below a header without a rule, where lines are scarce.
pub(crate) fn dense_grid(columns: &[(&str, Align)], rows: &[Vec<String>]) -> String {
    let text = grid(columns, rows);
    let lines = text.lines().enumerate().filter(|(index, _)| *index != 1);
    lines.fold(String::new(), |mut text, (_, line)| {
        push_line(&mut text, line);
        text
    })
}

/// Lays out rows below a header and a rule. Columns are as wide as their widest text, and lines have
/// no trailing blanks.
pub(crate) fn grid(columns: &[(&str, Align)], rows: &[Vec<String>]) -> String {
    let shown = |row: &Vec<String>| row.iter().map(|cell| visible(cell).into_owned()).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(shown).collect();
    let widths: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(index, (header, _))| {
            let cells = rows.iter().map(|row| characters(&row[index]));
            cells.chain([characters(header)]).max().unwrap_or(0)
        })
        .collect();
    let header: Vec<String> = columns.iter().map(|(name, _)| (*name).into()).collect();
    let rule: Vec<String> = widths.iter().map(|&width| "-".repeat(width)).collect();
    let mut text = String::new();
    for row in [&header, &rule].into_iter().chain(&rows) {
        let mut line = String::new();
        for ((cell, &width), (_, align)) in row.iter().zip(&widths).zip(columns) {
            let padding = " ".repeat(width - characters(cell));
            let spacing = " ".repeat(SPACING);
            match align {
                Align::Left => line.extend([cell, padding.as_str(), &spacing]),
                Align::Right => line.extend([padding.as_str(), cell, &spacing]),
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Cuts a text that is too long, and ends it with three dots.
pub(crate) fn cut(text: &str, limit: Option<usize>) -> String {
    match limit {
        Some(limit) if characters(text) > limit => {
            let kept = text.chars().take(limit.saturating_sub(3));
            kept.chain("...".chars()).take(limit).collect()
        }
        Some(_) | None => text.into(),
    }
}

/// Appends a line.
pub(crate) fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// Appends a line, wrapped between words at `width` characters.
pub(crate) fn push_wrapped(text: &mut String, line: &str, width: Option<usize>) {
    let width = width.unwrap_or(usize::MAX);
    let mut taken = 0;
    let line = visible(line);
    for word in line.split(' ') {
        if taken > 0 {
            let fits = taken + 1 + characters(word) <= width;
            text.push(if fits { ' ' } else { '\n' });
            taken = if fits { taken + 1 } else { 0 };
        }
        text.push_str(word);
        taken += characters(word);
    }
    text.push('\n');
}

pub(crate) fn characters(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_text_controls_no_terminal() {
        let mut text = String::new();
        push_wrapped(&mut text, "spent in f\u{1b}[31m\n", Some(80));
        assert_eq!(text, "spent in f\\u001b[31m\\n\n");
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_text() {
        let rows = [
            vec!["größer".into(), "1".into()],
            vec!["b".into(), "1000".into()],
        ];
        let text = grid(&[("Name", Align::Left), ("#", Align::Right)], &rows);
        assert_eq!(
            text,
            "Name       #\n------  ----\ngrößer     1\nb       1000\n"
        );
    }

    #[test]
    fn long_lines_are_broken_between_words() {
        let wrapped = |width| {
            let mut text = String::new();
            push_wrapped(&mut text, "Self CPU time total: 1.5ms", width);
            text
        };
        assert_eq!(wrapped(None), "Self CPU time total: 1.5ms\n");
        assert_eq!(wrapped(Some(20)), "Self CPU time total:\n1.5ms\n");
        assert_eq!(wrapped(Some(3)), "Self\nCPU\ntime\ntotal:\n1.5ms\n");
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(cut("aten::addmm", Some(8)), "aten:...");
        assert_eq!(cut("aten::mm", Some(8)), "aten::mm");
        assert_eq!(cut("aten::mm", Some(2)), "..");
        assert_eq!(cut("aten::mm", None), "aten::mm");
    }
}
