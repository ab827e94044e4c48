//! The user's functions on the first screen.

use mindprof_answers::{CodePath, Screen, screen_findings};
use mindprof_model::Nanos;

use super::{FINDINGS, LEAST, WIDTH};
use crate::functions::short_name;
use crate::grid::{characters, cut};
use crate::headline::function_name;
use crate::steps::{is_share, percent};
use crate::visible::visible;

/// A function that takes more than this share of the time in total, and less than the other by
/// itself, only passes on: it tells nothing.
const PASSED_ON: u64 = 95;
const PASSING: u64 = 5;

/// The largest width of what a function mostly calls.
const MOSTLY: usize = 24;

/// Returns whether a function only calls another one, as `main` does.
pub(crate) fn is_passing_on(path: &CodePath, total: Nanos) -> bool {
    is_share(path.total, total, PASSED_ON) && !is_share(path.own, total, PASSING)
}

/// Returns the rows of at most `limit` functions, each below those of its callers that are shown.
pub(super) fn function_rows(screen: &Screen, limit: usize) -> Vec<Vec<String>> {
    let paths = &screen.headline.paths;
    let total = paths.total;
    let is_shown = shown(screen, limit);
    let all = || paths.paths.iter().zip(&is_shown);
    let widest = all()
        .filter(|&(_, &is_shown)| is_shown)
        .map(|(path, _)| characters(&mostly(path, total)))
        .max();
    let room = WIDTH - 15 - widest.unwrap_or(0).max(6);
    let mut around: Vec<usize> = Vec::new();
    let mut rows = Vec::new();
    for (path, &is_shown) in all() {
        while around.last().is_some_and(|&depth| depth >= path.depth) {
            around.pop();
        }
        if !is_shown {
            continue;
        }
        let indent = "  ".repeat(around.len());
        around.push(path.depth);
        let place = fitted(
            &path.function,
            &path.file,
            path.line,
            room - indent.len().min(20),
        );
        rows.push(vec![
            percent(path.total, total),
            percent(path.own, total),
            format!("{indent}{place}"),
            mostly(path, total),
        ]);
    }
    rows
}

/// Returns for each path whether it is among the `limit` that are shown: first those that the verdict
/// and the findings name, then those with the largest total times, callers before the functions that
/// they call.
fn shown(screen: &Screen, limit: usize) -> Vec<bool> {
    let paths = &screen.headline.paths;
    let is_wanted = |&index: &usize| {
        let path = &paths.paths[index];
        is_share(path.total, paths.total, LEAST) && !is_passing_on(path, paths.total)
    };
    let culprit = paths.culprit();
    let named = culprit.iter().flat_map(|culprit| {
        let others = [culprit.through, culprit.larger];
        std::iter::once(culprit.path).chain(others.into_iter().flatten())
    });
    let found = screen_findings(&screen.advice).take(FINDINGS);
    let found = found.filter_map(|finding| {
        let place = finding.place.as_ref()?;
        let function = function_name(place, &screen.facts.sources);
        let is_it = |path: &CodePath| path.file == place.file && path.function == function;
        paths.paths.iter().position(is_it)
    });
    let mut largest: Vec<usize> = (0..paths.paths.len()).collect();
    largest.sort_by_key(|&index| std::cmp::Reverse(paths.paths[index].total));
    let mut is_shown = vec![false; paths.paths.len()];
    let mut left = limit;
    for index in named.chain(found).chain(largest).filter(is_wanted) {
        if left > 0 && !is_shown[index] {
            is_shown[index] = true;
            left -= 1;
        }
    }
    is_shown
}

/// Returns what takes most of a function's own time.
fn mostly(path: &CodePath, total: Nanos) -> String {
    let called = path.mostly.as_ref();
    let called = called.filter(|_| is_share(path.own, total, LEAST));
    called.map_or_else(String::new, |called| {
        short_name(&visible(&called.name), MOSTLY)
    })
}

/// Returns a place in at most `limit` characters. The folders and the class go first, then the end
/// of the function's name, then the beginning of the file's; the line stays.
pub(super) fn fitted(function: &str, file: &str, line: u32, limit: usize) -> String {
    let whole = format!("{function} ({file}:{line})");
    if characters(&whole) <= limit {
        return visible(&whole).into_owned();
    }
    let name = file.rsplit('/').next().unwrap_or(file);
    let place = format!("({name}:{line})");
    let is_short = characters(function) + 1 + characters(&place) <= limit;
    let method = function.rsplit('.').next().unwrap_or(function);
    let function = if is_short { function } else { method };
    let left = limit.saturating_sub(characters(&place) + 1);
    let text = if left >= characters(function).min(8) {
        format!("{} {place}", cut(function, Some(left)))
    } else {
        let kept = limit.saturating_sub(characters(function).min(12) + 5);
        let skipped = characters(&place).saturating_sub(kept);
        let rest: String = place.chars().skip(skipped).collect();
        format!("{} (...{rest}", cut(function, Some(12)))
    };
    visible(&text).into_owned()
}
