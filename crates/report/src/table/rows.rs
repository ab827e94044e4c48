//! Escapes control characters in the names, shapes and frames of rows before they are printed.

use std::borrow::Cow;
use std::rc::Rc;

use mindprof_formats::Row;

use crate::visible::visible;

/// Returns rows with control characters escaped. Borrows the rows if there are none to escape.
pub(super) fn visible_rows<'a>(rows: &'a [Row<'a>]) -> Cow<'a, [Row<'a>]> {
    let is_visible = |text: &str| matches!(visible(text), Cow::Borrowed(_));
    let is_ordinary = |row: &Row<'_>| {
        is_visible(&row.name)
            && is_visible(&row.overload)
            && row.shapes.as_deref().is_none_or(is_visible)
            && row.stack.iter().all(|frame| is_visible(frame))
    };
    if rows.iter().all(is_ordinary) {
        return Cow::Borrowed(rows);
    }
    let owned = |text: &str| Cow::Owned(visible(text).into_owned());
    let shown = rows.iter().map(|row| Row {
        name: owned(&row.name),
        overload: owned(&row.overload),
        shapes: row.shapes.as_deref().map(|text| visible(text).into()),
        stack: row
            .stack
            .iter()
            .map(|frame| owned(frame))
            .collect::<Rc<[_]>>(),
        ..row.clone()
    });
    Cow::Owned(shown.collect())
}
