//! The user's own functions as a tree of calls, with the time that each path of calls takes.
//!
//! Unlike [`crate::Functions`], which sums up a function over all its callers, a path tells which
//! caller the time belongs to: a model's `forward` in training apart from that in an evaluation.

use mindprof_analyze::Analysis;
use mindprof_model::{Nanos, Place, StringId};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::charges::{AllCharges, Charges};
use crate::functions::Called;
use crate::own_code::OwnCode;
use crate::questions::micros;
use crate::sampling::Sampling;
use crate::source_files::SourceFiles;
use crate::work::Work;

/// Functions of libraries that only call another one, which is more telling.
const PASSING_ON: [&str; 14] = [
    "_wrapped_call_impl",
    "_call_impl",
    "wrapper",
    "_use_grad",
    "decorate_context",
    "inner",
    "_fn",
    "wrapped",
    "_compile_wrapper",
    "compile_wrapper",
    "__call__",
    "__next__",
    "next",
    "_next_data",
];

/// One of the user's functions, at the end of a path of calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CodePath {
    /// The number of the user's functions that called it, one inside the other.
    pub depth: usize,
    /// The file that defines it.
    pub file: String,
    /// Its name, with its class if that is known.
    pub function: String,
    /// The line in it that takes most of the total time, or that of its definition.
    pub line: u32,
    /// The time of its code and of the operators and libraries that it calls.
    #[serde(rename = "own_us", serialize_with = "micros")]
    pub own: Nanos,
    /// The time until it returned, with the user's functions that it calls.
    #[serde(rename = "total_us", serialize_with = "micros")]
    pub total: Nanos,
    /// The call that takes most of its own time, unless that is its own Python code.
    pub mostly: Option<Called>,
    /// The part of its own time that operators take.
    #[serde(rename = "operators_us", serialize_with = "micros")]
    pub operators: Nanos,
}

/// The paths of the user's functions on some threads, callers before the functions that they call.
/// Those with one caller come by decreasing total time.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CodePaths {
    /// The time of all events, those outside of the user's code included.
    #[serde(rename = "total_us", serialize_with = "micros")]
    pub total: Nanos,
    /// The paths.
    pub paths: Vec<CodePath>,
}

impl CodePaths {
    /// Finds the paths of the main thread and of the backward work that it waits for.
    pub fn of_main(analysis: &Analysis, work: &Work, own: &OwnCode, sources: &SourceFiles) -> Self {
        Self::build(
            analysis,
            &AllCharges::build(analysis, work).main,
            own,
            sources,
        )
    }

    /// Finds the paths of all other threads and processes.
    pub fn of_others(
        analysis: &Analysis,
        work: &Work,
        own: &OwnCode,
        sources: &SourceFiles,
    ) -> Self {
        Self::build(
            analysis,
            &AllCharges::build(analysis, work).others,
            own,
            sources,
        )
    }

    /// Returns the position of the path with the most own time, if there is one.
    pub fn hottest(&self) -> Option<usize> {
        let paths = self.paths.iter().enumerate();
        let hottest = paths.max_by_key(|(index, path)| (path.own, std::cmp::Reverse(*index)));
        hottest
            .filter(|(_, path)| path.own > Nanos::ZERO)
            .map(|(index, _)| index)
    }

    /// Returns the position of the caller of a path, if that is one of the user's functions too.
    pub fn caller(&self, path: usize) -> Option<usize> {
        let depth = self.paths[path].depth;
        (0..path)
            .rev()
            .find(|&earlier| self.paths[earlier].depth < depth)
    }

    fn build(analysis: &Analysis, charges: &Charges, own: &OwnCode, sources: &SourceFiles) -> Self {
        let mut tree = PathTree::new(analysis, sources);
        tree.add_nodes(analysis, charges, own);
        tree.add_costs(charges);
        tree.into_paths(analysis)
    }
}

/// A path while times are summed up.
struct PathSum<'a> {
    caller: usize,
    file: &'a str,
    function: &'a str,
    definition: u32,
    own: Nanos,
    total: Nanos,
    /// The total time by line.
    lines: FxHashMap<u32, Nanos>,
    operators: FxHashMap<StringId, Nanos>,
    libraries: FxHashMap<StringId, Nanos>,
}

struct PathTree<'a> {
    sources: &'a SourceFiles,
    sums: Vec<PathSum<'a>>,
    known: FxHashMap<(usize, &'a str, &'a str), usize>,
    /// By node of the charges its path, and the library function that was called from there.
    blamed: Vec<(usize, Option<StringId>)>,
    /// By node of the charges the line that its whole time belongs to.
    lines: Vec<Option<u32>>,
    is_sampled: bool,
}

/// The path of everything that is not the user's.
const OUTSIDE: usize = 0;

impl<'a> PathTree<'a> {
    fn new(analysis: &Analysis, sources: &'a SourceFiles) -> Self {
        let mut tree = Self {
            sources,
            sums: Vec::new(),
            known: FxHashMap::default(),
            blamed: vec![(OUTSIDE, None)],
            lines: vec![None],
            is_sampled: Sampling::read(analysis.profile().metadata()).is_some(),
        };
        tree.push(OUTSIDE, "", "", 0);
        tree
    }

    fn push(&mut self, caller: usize, file: &'a str, function: &'a str, definition: u32) -> usize {
        self.sums.push(PathSum {
            caller,
            file,
            function,
            definition,
            own: Nanos::ZERO,
            total: Nanos::ZERO,
            lines: FxHashMap::default(),
            operators: FxHashMap::default(),
            libraries: FxHashMap::default(),
        });
        self.sums.len() - 1
    }

    fn add_nodes(&mut self, analysis: &'a Analysis, charges: &Charges, own: &OwnCode) {
        let strings = analysis.profile().strings();
        let places: Vec<Option<Place<'a>>> = strings.iter().map(|text| own.place(text)).collect();
        let is_telling: Vec<bool> = strings.iter().map(is_telling).collect();
        for node in charges.nodes.iter().skip(1) {
            let (around, called) = self.blamed[node.caller];
            let Some(place) = places[node.frame.index()] else {
                let called = called.or(is_telling[node.frame.index()].then_some(node.frame));
                self.blamed.push((around, called));
                self.lines.push(None);
                continue;
            };
            let path = self.path(around, place);
            self.blamed.push((path, None));
            let is_current = node.calls == 0 || self.is_sampled;
            self.lines.push(is_current.then_some(place.line));
        }
    }

    /// Returns the path of a place that is called from another path.
    fn path(&mut self, around: usize, place: Place<'a>) -> usize {
        let found = self.sources.function(place.file, place.line);
        let (function, definition) = match found {
            Some(function) => (function.name.as_str(), function.first),
            None => (place.function, place.line),
        };
        let caller = &self.sums[around];
        if around != OUTSIDE && (caller.file, caller.function) == (place.file, function) {
            // A function that calls itself is one path.
            return around;
        }
        let key = (around, place.file, function);
        if let Some(&path) = self.known.get(&key) {
            let known = &mut self.sums[path].definition;
            *known = (*known).min(definition);
            return path;
        }
        let path = self.push(around, place.file, function, definition);
        self.known.insert(key, path);
        path
    }

    fn add_costs(&mut self, charges: &Charges) {
        let wholes = charges.wholes();
        for (index, node) in charges.nodes.iter().enumerate() {
            let (path, called) = self.blamed[index];
            let sum = &mut self.sums[path];
            sum.own = sum.own + node.own.time();
            if let Some(called) = called {
                add(&mut sum.libraries, called, node.own.time());
            }
            if let Some(line) = self.lines[index] {
                add(&mut sum.lines, line, wholes[index].time());
            }
        }
        for (&(node, name), &time) in &charges.called {
            add(&mut self.sums[self.blamed[node].0].operators, name, time);
        }
        for index in (0..self.sums.len()).rev() {
            let total = self.sums[index].total + self.sums[index].own;
            self.sums[index].total = total;
            if index != OUTSIDE {
                let caller = self.sums[index].caller;
                let sum = &mut self.sums[caller].total;
                *sum = *sum + total;
            }
        }
    }

    fn into_paths(self, analysis: &Analysis) -> CodePaths {
        let mut callees: Vec<Vec<usize>> = vec![Vec::new(); self.sums.len()];
        for (index, sum) in self.sums.iter().enumerate().skip(1) {
            callees[sum.caller].push(index);
        }
        for list in &mut callees {
            let key = |&index: &usize| (self.sums[index].total, std::cmp::Reverse(index));
            list.sort_by_key(key);
        }
        let mut paths = Vec::with_capacity(self.sums.len());
        // The largest callee is the last of each list, and so the first to be taken.
        let mut open: Vec<(usize, usize)> =
            callees[OUTSIDE].iter().map(|&index| (index, 0)).collect();
        while let Some((index, depth)) = open.pop() {
            open.extend(callees[index].iter().map(|&callee| (callee, depth + 1)));
            let sum = &self.sums[index];
            let hottest = sum
                .lines
                .iter()
                .max_by_key(|&(line, time)| (time, std::cmp::Reverse(line)));
            paths.push(CodePath {
                depth,
                file: sum.file.into(),
                function: sum.function.into(),
                line: hottest.map_or(sum.definition, |(&line, _)| line),
                own: sum.own,
                total: sum.total,
                mostly: mostly(analysis, sum),
                operators: Nanos(sum.operators.values().map(|time| time.0).sum()),
            });
        }
        CodePaths {
            total: self.sums[OUTSIDE].total,
            paths,
        }
    }
}

fn add<K: std::hash::Hash + Eq>(sums: &mut FxHashMap<K, Nanos>, key: K, time: Nanos) {
    let sum = sums.entry(key).or_default();
    *sum = *sum + time;
}

/// Returns whether the name of a library's function or module describes its work.
fn is_telling(frame: &str) -> bool {
    match Place::parse(frame) {
        Some(place) => {
            !PASSING_ON.contains(&place.function)
                && !place.function.starts_with('<')
                && !place.file.starts_with("mindprof/")
        }
        None => !frame.starts_with("<built-in method __enter__") && !frame.is_empty(),
    }
}

/// Returns the operator or else the library function that most of a path's own time goes to.
fn mostly(analysis: &Analysis, sum: &PathSum<'_>) -> Option<Called> {
    let text = |name: StringId| analysis.profile().strings().text(name);
    let largest = |sums: &FxHashMap<StringId, Nanos>| {
        let sums = sums.iter().map(|(&name, &time)| (time, text(name)));
        sums.max_by(|a, b| a.0.cmp(&b.0).then_with(|| b.1.cmp(a.1)))
    };
    let operator = largest(&sum.operators);
    let library = largest(&sum.libraries);
    // A half is most of it in any case; otherwise a quarter is enough, if nothing takes more.
    let found = [2, 4].into_iter().find_map(|part| {
        let is_much = |(time, _): &(Nanos, &str)| time.0 * part >= sum.own.0 && time.0 > 0;
        operator.filter(is_much).or(library.filter(is_much))
    });
    found.map(|(time, name)| Called {
        name: name.into(),
        time,
    })
}

#[cfg(test)]
mod tests;
