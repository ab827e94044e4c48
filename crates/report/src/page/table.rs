//! Tables of a page: written as HTML, and given to the scripts, which sort, filter and page them.

use std::fmt::Write as _;

use mindprof_answers::Finding;
use mindprof_model::Nanos;
use serde_json::{Value, json};

use super::findings::NOT_PRICED;
use super::markup::{encoded, escaped, shown};
use super::names::{NAMELESS, short_name, shown_name};
use crate::number::memory_text;
use crate::steps::short_time;

/// The largest number of rows that are written as HTML. The scripts show the others too.
const WRITTEN_ROWS: usize = 50;

/// The number of letters of the longest text up to which a column of texts is as narrow as its texts.
/// `tables.js` has the same.
const WORD: usize = 20;

/// The number of letters from which on a name may be cut to the width of its column. `tables.js` has
/// the same.
const LONG_NAME: usize = 24;

/// The meaning of a column, which decides its alignment and how numbers are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name that a detail may lead from.
    Name,
    /// Any other text.
    Text,
    /// A time in nanoseconds.
    Time,
    /// A number of bytes.
    Bytes,
    /// A whole number.
    Count,
    /// A fraction, shown in percent.
    Share,
    /// A difference of fractions, shown in percentage points with a sign.
    Points,
    /// A large number with a unit prefix, such as operations.
    Amount,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Text => "text",
            Self::Time => "time",
            Self::Bytes => "bytes",
            Self::Count => "count",
            Self::Share => "share",
            Self::Points => "points",
            Self::Amount => "amount",
        }
    }

    const fn is_text(self) -> bool {
        matches!(self, Self::Name | Self::Text)
    }
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    pub(super) title: &'static str,
    pub(super) kind: Kind,
    /// The meaning of the column in a sentence, shown on request; may be empty.
    pub(super) meaning: &'static str,
}

/// Returns a column.
pub(super) const fn column(title: &'static str, kind: Kind, meaning: &'static str) -> Column {
    Column {
        title,
        kind,
        meaning,
    }
}

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    /// Nothing is known.
    Empty,
    Text(String),
    /// A text that leads to another view: its address without the `#`.
    Link(String, String),
    Number(f64),
}

impl Cell {
    pub(super) fn time(time: Nanos) -> Self {
        Self::Number(time.0 as f64)
    }

    pub(super) fn count(count: u64) -> Self {
        Self::Number(count as f64)
    }

    pub(super) fn bytes(bytes: i64) -> Self {
        Self::Number(bytes as f64)
    }

    /// Returns a part of a whole; nothing if the whole is zero.
    pub(super) fn share(part: Nanos, whole: Nanos) -> Self {
        if whole.0 == 0 {
            return Self::Empty;
        }
        Self::Number(part.0 as f64 / whole.0 as f64)
    }

    /// Returns the price of a finding, as a fraction of a step.
    pub(super) fn price(finding: &Finding) -> Self {
        if finding.share > 0.0 {
            Self::Number(finding.share)
        } else {
            Self::text(NOT_PRICED)
        }
    }

    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Returns a name that leads to its detail.
    pub(super) fn detail(kind: &str, name: &str) -> Self {
        Self::named(kind, name, name)
    }

    /// Returns a text that leads to the detail of a name.
    pub(super) fn named(kind: &str, name: &str, text: &str) -> Self {
        let text = if text.is_empty() { NAMELESS } else { text };
        let view = format!("detail?kind={kind}&name={}", encoded(&shown(name)));
        Self::Link(text.into(), view)
    }

    fn json(&self) -> Value {
        match self {
            Self::Empty => Value::Null,
            Self::Text(text) => json!(shown(text)),
            Self::Link(text, view) => json!([shown(text), view]),
            Self::Number(number) => json!(number),
        }
    }

    fn html(&self, kind: Kind) -> String {
        match self {
            Self::Empty => String::new(),
            Self::Text(text) if kind == Kind::Name => escaped(&short_name(text)),
            Self::Text(text) => escaped(text),
            Self::Link(text, view) => link_html(text, view),
            Self::Number(number) => number_text(*number, kind),
        }
    }
}

/// Returns a link whose text is short, and whose tip is the whole text if less of it may be seen. It
/// leads somewhere as soon as scripts run, which draw the view.
fn link_html(text: &str, view: &str) -> String {
    let short = short_name(text);
    let tip = if short == text && text.len() <= LONG_NAME {
        String::new()
    } else {
        format!(" title=\"{}\"", escaped(&shown_name(text)))
    };
    format!(
        "<a data-href=\"#{}\"{tip}>{}</a>",
        escaped(view),
        escaped(&short)
    )
}

/// A table.
#[derive(Debug)]
pub(super) struct Table {
    /// Its name, unique in the page.
    pub(super) id: &'static str,
    /// The contents in a few words, above the table and for screen readers.
    pub(super) caption: String,
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Vec<Cell>>,
    /// The column by which rows are sorted, from the largest number on.
    pub(super) sorted_by: Option<usize>,
}

impl Table {
    /// Drops the columns in which no row says anything, except names.
    pub(super) fn without_empty_columns(mut self) -> Self {
        let is_empty = |cell: &Cell| match cell {
            Cell::Empty => true,
            Cell::Text(text) => text.is_empty(),
            Cell::Number(number) => *number == 0.0,
            Cell::Link(..) => false,
        };
        for index in (0..self.columns.len()).rev() {
            let is_kept = self.columns[index].kind == Kind::Name
                || self.sorted_by == Some(index)
                || self.rows.iter().any(|row| !is_empty(&row[index]));
            if !is_kept {
                self.columns.remove(index);
                for row in &mut self.rows {
                    row.remove(index);
                }
                self.sorted_by = self
                    .sorted_by
                    .map(|sorted| sorted - usize::from(sorted > index));
            }
        }
        self
    }

    /// Returns whether a column has short texts only, which need no room to wrap.
    fn is_of_words(&self, index: usize) -> bool {
        self.rows.iter().all(|row| match &row[index] {
            Cell::Text(text) | Cell::Link(text, _) => text.chars().count() <= WORD,
            Cell::Empty | Cell::Number(_) => true,
        })
    }

    /// Returns the table as HTML.
    pub(super) fn html(&self) -> String {
        let Self { id, caption, .. } = self;
        let mut html = format!(
            "<div class=\"wide\" data-table=\"{id}\" tabindex=\"0\" role=\"region\" \
             aria-label=\"{0}\">\n<table>\n<caption>{0}</caption>\n<thead><tr>",
            escaped(caption)
        );
        for (index, column) in self.columns.iter().enumerate() {
            let class = if column.kind.is_text() {
                " class=\"text\""
            } else {
                ""
            };
            let sort = if self.sorted_by == Some(index) {
                " aria-sort=\"descending\""
            } else {
                ""
            };
            let meaning = match column.meaning {
                "" => String::new(),
                meaning => format!(" title=\"{}\"", escaped(meaning)),
            };
            let _ = write!(
                html,
                "<th scope=\"col\"{class}{sort}{meaning}>{}</th>",
                escaped(column.title)
            );
        }
        html.push_str("</tr></thead>\n<tbody>\n");
        let words: Vec<bool> = (0..self.columns.len())
            .map(|index| self.is_of_words(index))
            .collect();
        for row in self.rows.iter().take(WRITTEN_ROWS) {
            html.push_str("<tr>");
            for ((cell, column), is_word) in row.iter().zip(&self.columns).zip(&words) {
                let text = cell.html(column.kind);
                let _ = match column.kind {
                    Kind::Text if *is_word => write!(html, "<td class=\"text word\">{text}</td>"),
                    Kind::Name => write!(html, "<th scope=\"row\" class=\"text\">{text}</th>"),
                    Kind::Text => write!(html, "<td class=\"text\">{text}</td>"),
                    Kind::Time
                    | Kind::Bytes
                    | Kind::Count
                    | Kind::Share
                    | Kind::Points
                    | Kind::Amount => {
                        let class = if *cell == Cell::Number(0.0) {
                            " class=\"zero\""
                        } else {
                            ""
                        };
                        write!(html, "<td{class}>{text}</td>")
                    }
                };
            }
            html.push_str("</tr>\n");
        }
        html.push_str("</tbody>\n</table>\n");
        if self.rows.is_empty() {
            html.push_str("<p class=\"quiet\">Nothing was recorded for this table.</p>\n");
        }
        if self.rows.len() > WRITTEN_ROWS {
            let _ = writeln!(
                html,
                "<p class=\"quiet scriptless\">{WRITTEN_ROWS} of {} rows; all of them are shown if \
                 scripts may run.</p>",
                self.rows.len()
            );
        }
        html + "</div>\n"
    }

    /// Returns the table as JSON for the scripts.
    pub(super) fn json(&self) -> Value {
        let columns = self.columns.iter();
        let columns = columns.map(|column| {
            json!({"title": column.title, "kind": column.kind.name(), "meaning": column.meaning})
        });
        let rows = self.rows.iter();
        let rows = rows.map(|row| row.iter().map(Cell::json).collect::<Vec<_>>());
        json!({
            "id": self.id,
            "caption": self.caption,
            "columns": columns.collect::<Vec<_>>(),
            "rows": rows.collect::<Vec<_>>(),
            "sorted": self.sorted_by,
        })
    }
}

/// Returns a number of a column as text. `numbers.js` has the same rules.
pub(super) fn number_text(number: f64, kind: Kind) -> String {
    match kind {
        _ if number == 0.0 => "0".into(),
        Kind::Points if number > 0.0 => format!("+{:.1} points", number * 100.0),
        Kind::Points => format!("\u{2212}{:.1} points", -number * 100.0),
        _ if number < 0.0 => format!("\u{2212}{}", number_text(-number, kind)),
        Kind::Time => short_time(Nanos(number as u64)),
        Kind::Bytes => memory_text(number as i64),
        Kind::Share => share_text(number),
        Kind::Amount => amount_text(number),
        Kind::Count | Kind::Name | Kind::Text => thousands(&format!("{number:.0}")),
    }
}

/// Returns the digits of a whole number with a comma between thousands.
pub(super) fn thousands(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.char_indices() {
        let left = digits.len() - index;
        let follows_digit = text.ends_with(|last: char| last.is_ascii_digit());
        if follows_digit && left.is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a number and a noun, which gets an `s` unless the number is one.
pub(super) fn counted(count: u64, noun: &str) -> String {
    let end = if count == 1 { "" } else { "s" };
    format!("{} {noun}{end}", thousands(&count.to_string()))
}

/// Returns a fraction in percent with one digit after the point.
pub(super) fn share_text(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Returns a large number with three digits and a prefix.
pub(super) fn amount_text(number: f64) -> String {
    let prefixes = [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let fitting = prefixes.iter().find(|(size, _)| number >= *size);
    let (value, prefix) = fitting.map_or((number, ""), |(size, prefix)| (number / size, *prefix));
    match value {
        100.0.. => format!("{value:.0} {prefix}"),
        10.0..100.0 => format!("{value:.1} {prefix}"),
        _ => format!("{value:.2} {prefix}"),
    }
    .trim_end()
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_apart() {
        for (digits, text) in [
            ("0", "0"),
            ("999", "999"),
            ("1000", "1,000"),
            ("-1000", "-1,000"),
            ("-100", "-100"),
            ("1234567", "1,234,567"),
        ] {
            assert_eq!(thousands(digits), text);
        }
        assert_eq!(counted(1, "event"), "1 event");
        assert_eq!(counted(15_475, "event"), "15,475 events");
    }

    #[test]
    fn a_table_holds_no_foreign_markup_and_the_numbers_of_its_cells() {
        let table = Table {
            id: "operators",
            caption: "Operators".into(),
            columns: vec![
                column("Name", Kind::Name, ""),
                column("Self CPU", Kind::Time, "without <children>"),
                column("Flops", Kind::Amount, ""),
            ],
            rows: vec![vec![
                Cell::detail("operator", "<b>&"),
                Cell::time(Nanos(1_500)),
                Cell::Number(0.0),
            ]],
            sorted_by: Some(1),
        };
        let table = table.without_empty_columns();
        assert_eq!(table.columns.len(), 2);
        let html = table.html();
        assert!(html.contains(
            "<a data-href=\"#detail?kind=operator&amp;name=%3Cb%3E%26\">&lt;b&gt;&amp;</a>"
        ));
        assert!(html.contains("<td>1.50 us</td>"), "{html}");
        assert!(html.contains("title=\"without &lt;children&gt;\""));
        assert_eq!(table.json()["rows"][0][1], 1500.0);
    }

    #[test]
    fn negative_numbers_have_a_minus_and_differences_of_shares_a_sign() {
        // tests/page/texts.test.js has the same numbers.
        for (number, kind, text) in [
            (-1536.0, Kind::Bytes, "\u{2212}1.50 KB"),
            (-0.25, Kind::Share, "\u{2212}25.0 %"),
            (-1000.0, Kind::Count, "\u{2212}1,000"),
            (0.697, Kind::Points, "+69.7 points"),
            (-0.03, Kind::Points, "\u{2212}3.0 points"),
            (0.0, Kind::Points, "0"),
        ] {
            assert_eq!(number_text(number, kind), text);
        }
    }

    #[test]
    fn amounts_have_three_digits() {
        let texts = [0.5, 12.0, 999.0, 1_234.0, 5e12].map(amount_text);
        assert_eq!(texts, ["0.50", "12.0", "999", "1.23 k", "5.00 T"]);
    }
}
