//! The user's own functions as a tree of calls, with the time that each path of calls takes.
//!
//! Unlike [`crate::Functions`], which sums up a function over all its callers, a path tells which
//! caller the time belongs to: a model's `forward` in training apart from that in an evaluation.

use mindprof_analyze::Analysis;
use mindprof_model::{Nanos, Place, StringId};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::called::{Called, CalledNames, CalledSums, Way, module_class};
use crate::charges::Charges;
use crate::culprit::Culprit;
use crate::functions::{CallNames, Definitions, is_comprehension};
use crate::own_code::OwnCode;
use crate::questions::micros;
use crate::sampling::Sampling;
use crate::source_files::SourceFiles;
use crate::work::Work;

/// One of the user's functions, at the end of a path of calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CodePath {
    /// The number of the user's functions that called it, one inside the other.
    pub depth: usize,
    /// The file that defines it.
    pub file: String,
    /// Its name, with its class if that is known.
    pub function: String,
    /// The line of its definition, if that is known. It tells methods of one name apart.
    #[serde(skip)]
    pub definition: Option<u32>,
    /// The line in it that takes most of the total time, or that of its definition.
    pub line: u32,
    /// The line in it that takes most of its own time, or that of its definition.
    pub own_line: u32,
    /// The line of the caller that calls it for most of the time, if that is known.
    pub called_at: Option<u32>,
    /// Whether it is the `forward` of a module, which a module calls on behalf of its caller.
    pub is_forward: bool,
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
    /// The part of its own time that is the expected work of a model: modules, losses and
    /// optimizers of libraries, and matrix products.
    #[serde(rename = "model_us", serialize_with = "micros")]
    pub model: Nanos,
    /// The part of its own time that is backward work.
    #[serde(rename = "backward_us", serialize_with = "micros")]
    pub backward: Nanos,
    /// The number of operators that it calls, without backward work.
    pub operator_calls: u64,
}

/// The paths of the user's functions on some threads, callers before the functions that they call.
/// Those with one caller come by decreasing total time.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CodePaths {
    /// The time of all events without the profiler's own cost, those outside of the user's code
    /// included.
    #[serde(rename = "total_us", serialize_with = "micros")]
    pub total: Nanos,
    /// The profiler's own cost, which is in none of the times.
    #[serde(rename = "recording_us", serialize_with = "micros")]
    pub recording: Nanos,
    /// The paths.
    pub paths: Vec<CodePath>,
    /// By node of the charges, the position of the path that it belongs to.
    #[serde(skip)]
    pub(crate) path_of_node: Vec<Option<usize>>,
}

impl CodePaths {
    /// Finds the paths that charges belong to.
    pub(crate) fn build(
        analysis: &Analysis,
        charges: &Charges,
        own: &OwnCode,
        sources: &SourceFiles,
    ) -> Self {
        let calls = CallNames::build(analysis, &Work::of(analysis));
        let definitions = Definitions::build(analysis.profile(), own, &calls);
        let mut tree = PathTree::new(analysis, sources, &definitions);
        tree.add_nodes(analysis, charges);
        let known = tree.known_callers();
        if !known.is_empty() {
            tree = PathTree::new(analysis, sources, &definitions);
            tree.known_callers = known;
            tree.add_nodes(analysis, charges);
        }
        tree.add_costs(charges);
        tree.into_paths()
    }

    /// Returns the function to change first, if there is one.
    pub fn culprit(&self) -> Option<Culprit> {
        Culprit::find(self)
    }

    /// Returns the position of the caller of a path, if that is one of the user's functions too.
    pub fn caller(&self, path: usize) -> Option<usize> {
        let depth = self.paths[path].depth;
        (0..path)
            .rev()
            .find(|&earlier| self.paths[earlier].depth < depth)
    }
}

/// A path while times are summed up.
struct PathSum<'a> {
    caller: usize,
    file: &'a str,
    function: &'a str,
    /// The line of its definition, if that is known. It tells methods of one name apart.
    definition: Option<u32>,
    /// The line of its definition, or the first line of it that is known.
    first: u32,
    is_forward: bool,
    own: Nanos,
    /// The part of the own time that recording took.
    recording: Nanos,
    total: Nanos,
    model: Nanos,
    backward: Nanos,
    operators: Nanos,
    operator_calls: u64,
    /// The total and the own time by line.
    lines: FxHashMap<u32, Nanos>,
    own_lines: FxHashMap<u32, Nanos>,
    /// The total time by the line of the caller.
    called_at: FxHashMap<u32, Nanos>,
    called: CalledSums,
}

struct PathTree<'a> {
    sources: &'a SourceFiles,
    definitions: &'a Definitions<'a>,
    sums: Vec<PathSum<'a>>,
    /// By caller, file, name and line of the definition, if that is known.
    known: FxHashMap<(usize, &'a str, &'a str, Option<u32>), usize>,
    /// The callers of functions whose callers some samples lost, from the outermost one.
    known_callers: FxHashMap<FunctionKey<'a>, Vec<(FunctionKey<'a>, u32)>>,
    names: CalledNames<'a>,
    blamed: Vec<Blamed>,
    is_sampled: bool,
}

/// A function: its file, its name and the line of its definition, if that is known.
type FunctionKey<'a> = (&'a str, &'a str, Option<u32>);

impl<'a> PathSum<'a> {
    fn key(&self) -> FunctionKey<'a> {
        (self.file, self.function, self.definition)
    }

    /// Takes the time that recording took, at most this part, out of the own time and its parts.
    fn leave_out_recording(&mut self, most: f64) {
        let most = Nanos((self.own.0 as f64 * most) as u64);
        self.recording = self.recording.min(most);
        let left = self.own.saturating_sub(self.recording).0 as f64 / self.own.0.max(1) as f64;
        let parts = [
            &mut self.own,
            &mut self.model,
            &mut self.backward,
            &mut self.operators,
        ];
        for part in parts {
            *part = Nanos((part.0 as f64 * left).round() as u64);
        }
        self.called.scale(left);
    }
}

/// The path that a node of the charges belongs to, and how the path leads to the node.
#[derive(Clone, Copy, Default)]
struct Blamed {
    path: usize,
    /// The line of the user's that it is or was called from, if that is known.
    line: Option<u32>,
    /// Whether the node is a frame of the user's, and the line that of the caller's frame if so.
    is_own: bool,
    called_at: Option<u32>,
    /// The way from the user's frame to the node.
    way: Way,
    /// Whether a module calls the next frame.
    is_module: bool,
}

/// The path of everything that is not the user's.
const OUTSIDE: usize = 0;

impl<'a> PathTree<'a> {
    fn new(
        analysis: &'a Analysis,
        sources: &'a SourceFiles,
        definitions: &'a Definitions<'a>,
    ) -> Self {
        let mut tree = Self {
            sources,
            definitions,
            sums: Vec::new(),
            known: FxHashMap::default(),
            known_callers: FxHashMap::default(),
            names: CalledNames::new(analysis.profile().strings()),
            blamed: vec![Blamed::default()],
            is_sampled: Sampling::read(analysis.profile().metadata()).is_some(),
        };
        tree.push(OUTSIDE, "", "", None, 0);
        tree
    }

    fn push(
        &mut self,
        caller: usize,
        file: &'a str,
        function: &'a str,
        definition: Option<u32>,
        first: u32,
    ) -> usize {
        self.sums.push(PathSum {
            caller,
            file,
            function,
            definition,
            first,
            is_forward: false,
            own: Nanos::ZERO,
            recording: Nanos::ZERO,
            total: Nanos::ZERO,
            model: Nanos::ZERO,
            backward: Nanos::ZERO,
            operators: Nanos::ZERO,
            operator_calls: 0,
            lines: FxHashMap::default(),
            own_lines: FxHashMap::default(),
            called_at: FxHashMap::default(),
            called: CalledSums::default(),
        });
        self.sums.len() - 1
    }

    /// Finds the functions that samples show without a caller, although all others show the same
    /// callers: these samples lost their outer frames.
    ///
    /// ```text
    /// <module> ── main ── train     9 ms
    /// train                         1 ms: the same function, so its callers are the same
    /// ```
    fn known_callers(&self) -> FxHashMap<FunctionKey<'a>, Vec<(FunctionKey<'a>, u32)>> {
        let mut found = FxHashMap::default();
        if !self.is_sampled {
            return found;
        }
        let mut paths: FxHashMap<FunctionKey<'a>, Vec<usize>> = FxHashMap::default();
        for (index, sum) in self.sums.iter().enumerate().skip(1) {
            paths.entry(sum.key()).or_default().push(index);
        }
        for (key, paths) in paths {
            let has_caller = |&path: &usize| self.sums[path].caller != OUTSIDE;
            let mut known = paths.iter().copied().filter(has_caller);
            let (Some(path), None) = (known.next(), known.next()) else {
                continue;
            };
            let mut callers = Vec::new();
            let mut caller = self.sums[path].caller;
            while caller != OUTSIDE {
                callers.push((self.sums[caller].key(), self.sums[caller].first));
                caller = self.sums[caller].caller;
            }
            callers.reverse();
            // A function that also calls its caller has no certain place.
            let is_recursive = callers.iter().any(|&(caller, _)| caller == key);
            if paths.len() > 1 && !is_recursive {
                found.insert(key, callers);
            }
        }
        found
    }

    fn add_nodes(&mut self, analysis: &'a Analysis, charges: &Charges) {
        let strings = analysis.profile().strings();
        let is_module = |frame: StringId| module_class(strings.text(frame)).is_some();
        for node in charges.nodes.iter().skip(1) {
            let around = self.blamed[node.caller];
            let Some(place) = self.definitions.place(node.frame) else {
                let name = self.names.of(node.frame);
                self.blamed.push(Blamed {
                    is_own: false,
                    called_at: None,
                    way: around.way.then(name),
                    is_module: is_module(node.frame) || (around.is_module && name.is_wrapper),
                    ..around
                });
                continue;
            };
            let path = self.path(around.path, place);
            self.sums[path].is_forward |= around.is_module && path != around.path;
            let is_current = node.calls == 0 || self.is_sampled;
            self.blamed.push(Blamed {
                path,
                line: is_current.then_some(place.line),
                is_own: true,
                called_at: around.line.filter(|_| path != around.path),
                way: Way::default(),
                is_module: false,
            });
        }
    }

    /// Returns the path of a place that is called from another path.
    fn path(&mut self, around: usize, place: Place<'a>) -> usize {
        let (function, definition) = match self.sources.function(place.file, place.line) {
            Some(function) => (function.name.as_str(), Some(function.first)),
            None => self.definitions.function(&place),
        };
        let first = definition.unwrap_or(place.line);
        let caller = &self.sums[around];
        let is_inside = is_comprehension(function) && caller.file == place.file;
        if around != OUTSIDE && is_inside {
            // A comprehension is part of the function that it is in.
            return around;
        }
        let is_same =
            (caller.file, caller.function, caller.definition) == (place.file, function, definition);
        if around != OUTSIDE && is_same {
            // A function that calls itself is one path.
            return around;
        }
        let key = (place.file, function, definition);
        let mut around = around;
        if around == OUTSIDE
            && let Some(callers) = self.known_callers.get(&key).cloned()
        {
            for (caller, first) in callers {
                around = self.path_of(around, caller, first);
            }
        }
        self.path_of(around, key, first)
    }

    /// Returns the path of a function that is called from another path.
    fn path_of(&mut self, around: usize, function: FunctionKey<'a>, first: u32) -> usize {
        let (file, name, definition) = function;
        let key = (around, file, name, definition);
        if let Some(&path) = self.known.get(&key) {
            let known = &mut self.sums[path].first;
            *known = (*known).min(first);
            return path;
        }
        let path = self.push(around, file, name, definition, first);
        self.known.insert(key, path);
        path
    }

    fn add_costs(&mut self, charges: &Charges) {
        let wholes = charges.wholes();
        for (index, node) in charges.nodes.iter().enumerate() {
            let blamed = self.blamed[index];
            let sum = &mut self.sums[blamed.path];
            let own = node.own.time();
            sum.own = sum.own + own;
            sum.recording = sum.recording + node.recording;
            sum.backward = sum.backward + node.own.backward;
            sum.called.charge(blamed.way, node.own);
            sum.model = sum.model + blamed.way.model_time(node.own);
            if let Some(line) = blamed.line {
                add(&mut sum.own_lines, line, own);
                if blamed.is_own {
                    add(&mut sum.lines, line, wholes[index].time());
                }
            }
            if let Some(line) = blamed.called_at {
                add(&mut sum.called_at, line, wholes[index].time());
            }
        }
        for (&(node, name), work) in &charges.called {
            let blamed = self.blamed[node];
            let sum = &mut self.sums[blamed.path];
            sum.operators = sum.operators + work.time;
            sum.operator_calls += work.calls;
            if blamed.way.called.is_none() {
                let name = self.names.of(name);
                sum.called.add(name, work.time);
                if name.is_model {
                    sum.model = sum.model + work.time;
                }
            }
        }
        for sum in &mut self.sums {
            sum.leave_out_recording(charges.most_recording);
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

    fn into_paths(self) -> CodePaths {
        let mut callees: Vec<Vec<usize>> = vec![Vec::new(); self.sums.len()];
        for (index, sum) in self.sums.iter().enumerate().skip(1) {
            callees[sum.caller].push(index);
        }
        for list in &mut callees {
            let key = |&index: &usize| (self.sums[index].total, std::cmp::Reverse(index));
            list.sort_by_key(key);
        }
        let mut paths = Vec::with_capacity(self.sums.len());
        let mut positions = vec![None; self.sums.len()];
        // The largest callee is the last of each list, and so the first to be taken.
        let mut open: Vec<(usize, usize)> =
            callees[OUTSIDE].iter().map(|&index| (index, 0)).collect();
        while let Some((index, depth)) = open.pop() {
            open.extend(callees[index].iter().map(|&callee| (callee, depth + 1)));
            let sum = &self.sums[index];
            positions[index] = Some(paths.len());
            paths.push(CodePath {
                depth,
                file: sum.file.into(),
                function: sum.function.into(),
                definition: sum.definition,
                line: hottest(&sum.lines).unwrap_or(sum.first),
                own_line: hottest(&sum.own_lines).unwrap_or(sum.first),
                called_at: hottest(&sum.called_at),
                is_forward: sum.is_forward,
                own: sum.own,
                total: sum.total,
                mostly: sum.called.mostly(&self.names, sum.own),
                operators: sum.operators,
                model: sum.model,
                backward: sum.backward,
                operator_calls: sum.operator_calls,
            });
        }
        CodePaths {
            total: self.sums[OUTSIDE].total,
            recording: Nanos(self.sums.iter().map(|sum| sum.recording.0).sum()),
            paths,
            path_of_node: (self.blamed.iter())
                .map(|blamed| positions[blamed.path])
                .collect(),
        }
    }
}

fn add<K: std::hash::Hash + Eq>(sums: &mut FxHashMap<K, Nanos>, key: K, time: Nanos) {
    let sum = sums.entry(key).or_default();
    *sum = *sum + time;
}

/// Returns the line with the most time.
fn hottest(lines: &FxHashMap<u32, Nanos>) -> Option<u32> {
    let most = lines
        .iter()
        .max_by_key(|&(line, time)| (time, std::cmp::Reverse(line)));
    most.map(|(&line, _)| line)
}

#[cfg(test)]
mod tests;
