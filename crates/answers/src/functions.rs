//! The user's own functions and lines, with what they cost.
//!
//! The cost of an operator, of library code and of backward work is charged to the innermost line of
//! the user's own code that led to it: that is the line to change.

use std::collections::hash_map::Entry;

use mindprof_analyze::Analysis;
use mindprof_model::{Category, EventId, Nanos, Place, Profile, StringId};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use crate::called::{Called, CalledNames, CalledSums, Way};
use crate::charges::{AllCharges, Charges, Cost, main_thread};
use crate::own_code::OwnCode;
use crate::questions::json;
use crate::sampling::Sampling;
use crate::source_files::SourceFiles;
use crate::work::Work;

/// One of the user's own functions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FunctionCost {
    /// The file that defines it.
    pub file: String,
    /// Its name.
    pub function: String,
    /// The line of its definition, if its calls were recorded.
    pub line: Option<u32>,
    /// The number of its calls, if they were recorded.
    pub calls: Option<u64>,
    /// The cost of its own code and of the operators and libraries that it calls, without other
    /// functions of the user's.
    pub own: Cost,
    /// The cost of everything that ran until it returned.
    pub total: Cost,
    /// The line in it with the largest own cost, if lines were recorded.
    pub hottest_line: Option<u32>,
    /// The standard error of its own share of the total, as a fraction, if its Python code was
    /// sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_error: Option<f64>,
    /// The largest part of its own cost, if that is not its own Python code.
    pub mostly: Option<Called>,
}

/// One line of the user's own code.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LineCost {
    /// The file.
    pub file: String,
    /// The line.
    pub line: u32,
    /// The function that the line is in.
    pub function: String,
    /// Whether the cost is that of Python code somewhere in the function that this line defines,
    /// because the recording does not tell the line.
    pub is_definition: bool,
    /// The cost of the operators and libraries that it calls.
    pub own: Cost,
    /// The cost of everything that it calls.
    pub total: Cost,
    /// The standard error of its own share of the total, as a fraction, if its Python code was
    /// sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_error: Option<f64>,
    /// The largest part of its own cost, if that is not its own Python code.
    pub mostly: Option<Called>,
}

/// The functions and lines of the user's own code, each list by decreasing own cost.
///
/// The main thread is what a user waits for, so that other threads and processes, such as the
/// workers of a data loader, have lists of their own.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Functions {
    /// The cost of the main thread and of the backward work that it waits for.
    pub total: Cost,
    /// The part of it that no function of the user's led to.
    pub outside: Cost,
    /// Whether the profile has Python stacks. Without them there are no functions.
    pub has_stacks: bool,
    /// How Python stacks were sampled, or `None` if every call was recorded.
    pub sampling: Option<Sampling>,
    /// The functions on the main thread.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<FunctionCost>,
    /// The lines on the main thread.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<LineCost>,
    /// The functions on other threads and in other processes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<FunctionCost>,
    /// The lines on other threads and in other processes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines_elsewhere: Vec<LineCost>,
}

impl Functions {
    /// Finds the functions and lines of a profile in time linear in its events and stacks.
    pub fn build(analysis: &Analysis, work: &Work, own: &OwnCode) -> Self {
        let profile = analysis.profile();
        let sampling = Sampling::read(profile.metadata());
        let calls = CallNames::build(analysis, work);
        let definitions = Definitions::build(profile, own, &calls);
        let charges = AllCharges::build(analysis, work);
        let total = charges.main.total();
        let shares = Shares { sampling, total };
        let found = Found::build(profile, &charges.main, &definitions);
        let elsewhere = Found::build(profile, &charges.others, &definitions);
        Self {
            total,
            outside: found.outside,
            has_stacks: !profile.stacks().is_empty() || calls.has_any,
            sampling,
            functions: found.functions(shares),
            lines: found.lines(shares),
            elsewhere: elsewhere.functions(shares),
            lines_elsewhere: elsewhere.lines(shares),
        }
    }

    /// Returns the conclusions as JSON. Times are microseconds.
    pub fn json(&self) -> String {
        json(self)
    }

    /// Drops the lines.
    #[must_use]
    pub fn without_lines(mut self) -> Self {
        (self.lines, self.lines_elsewhere) = (Vec::new(), Vec::new());
        self
    }

    /// Drops the functions, and the lines of other files if `file` is given: the whole path of a
    /// file or the end of it. Several files may have the same end.
    #[must_use]
    pub fn only_lines(mut self, file: Option<&str>) -> Self {
        (self.functions, self.elsewhere) = (Vec::new(), Vec::new());
        if let Some(file) = file {
            let wanted: Vec<String> = matching(&self.files(), file)
                .into_iter()
                .map(Into::into)
                .collect();
            for lines in [&mut self.lines, &mut self.lines_elsewhere] {
                lines.retain(|line| wanted.contains(&line.file));
            }
        }
        self
    }

    /// Returns the files of the lines, each once.
    pub fn files(&self) -> Vec<&str> {
        let lines = self.lines.iter().chain(&self.lines_elsewhere);
        let mut files: Vec<&str> = lines.map(|line| line.file.as_str()).collect();
        files.sort_unstable();
        files.dedup();
        files
    }

    /// Returns the largest error of the shares, two standard errors wide, as a fraction of the
    /// total. `None` if nothing was sampled.
    pub fn share_error(&self) -> Option<f64> {
        let functions = self.functions.iter().filter_map(|row| row.share_error);
        let lines = self.lines.iter().filter_map(|row| row.share_error);
        functions
            .chain(lines)
            .reduce(f64::max)
            .map(|error| 2.0 * error)
    }
}

/// Returns the files of the profile that a user means by a path or the end of one: the file of this
/// name, or those whose path ends with it, or the one that has most of it at its end.
fn matching<'a>(files: &[&'a str], wanted: &str) -> Vec<&'a str> {
    let ends = |long: &str, short: &str| {
        long.strip_suffix(short)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    };
    let files = || files.iter().copied();
    if let Some(file) = files().find(|&file| file == wanted) {
        return vec![file];
    }
    let longer: Vec<&str> = files().filter(|file| ends(file, wanted)).collect();
    if !longer.is_empty() {
        return longer;
    }
    let shorter = files().filter(|file| ends(wanted, file));
    shorter.max_by_key(|file| file.len()).into_iter().collect()
}

/// The whole that shares are part of, and how it was sampled.
#[derive(Clone, Copy)]
struct Shares {
    sampling: Option<Sampling>,
    total: Cost,
}

impl Shares {
    fn error(&self, own: Cost) -> Option<f64> {
        let sampling = self.sampling?;
        Some(sampling.error(own.python, self.total.time()))
    }
}

/// The names of recorded Python calls.
pub(crate) struct CallNames {
    /// By name, whether it is that of a call and so has the line of a definition.
    is_call: Vec<bool>,
    has_any: bool,
}

impl CallNames {
    pub(crate) fn build(analysis: &Analysis, work: &Work) -> Self {
        let profile = analysis.profile();
        let is_sampled = Sampling::read(profile.metadata()).is_some();
        let running = if work.side_ranges().is_some() {
            FxHashSet::default()
        } else {
            running_at_start(analysis)
        };
        let mut is_call = vec![false; profile.strings().len()];
        let mut has_any = false;
        for (index, event) in profile.events().iter().enumerate() {
            if event.category == Category::PythonFunction {
                has_any = true;
                // A sampled slice is named with the line that ran.
                let is_start = || running.contains(&EventId::from_index(index));
                is_call[event.name.index()] |= !is_sampled && !is_start();
            }
        }
        Self { is_call, has_any }
    }
}

/// Returns the calls that ran when the recording began: the first events of the main thread, each
/// inside the one before. Their names have the lines that they were at, not those of definitions.
fn running_at_start(analysis: &Analysis) -> FxHashSet<EventId> {
    let profile = analysis.profile();
    let main = main_thread(profile);
    let ids = (0..profile.events().len()).map(EventId::from_index);
    let mut running = FxHashSet::default();
    let mut last = None;
    for id in ids.filter(|&id| Some(profile.event(id).thread) == main) {
        let event = profile.event(id);
        if event.category != Category::PythonFunction || analysis.tree().parent(id) != last {
            break;
        }
        running.insert(id);
        last = Some(id);
    }
    running
}

/// The user's code in the frames of a profile: where its functions are defined, and which frames
/// name a definition instead of a line.
pub(crate) struct Definitions<'a> {
    /// By name, the place in the user's own code.
    places: Vec<Option<OwnPlace<'a>>>,
    /// The lines of definitions. They tell methods of one name in one file apart.
    lines: FxHashMap<(&'a str, &'a str), Vec<u32>>,
    /// The functions of the user's files, if the profile lists them.
    sources: &'a SourceFiles,
}

/// A place in the user's own code.
#[derive(Clone, Copy)]
struct OwnPlace<'a> {
    place: Place<'a>,
    /// Whether the line is that of the definition, because the recording tells no other.
    is_definition: bool,
}

impl<'a> Definitions<'a> {
    pub(crate) fn build(profile: &'a Profile, own: &'a OwnCode, calls: &CallNames) -> Self {
        let mut lines: FxHashMap<_, Vec<u32>> = FxHashMap::default();
        let mut places = Vec::with_capacity(profile.strings().len());
        for (name, &is_call) in profile.strings().iter().zip(&calls.is_call) {
            let Some(place) = own.place(name) else {
                places.push(None);
                continue;
            };
            if is_call {
                let of_name = lines.entry((place.file, place.function)).or_default();
                of_name.push(place.line);
            }
            places.push(Some(OwnPlace {
                place,
                is_definition: is_call && !is_expression(place.function),
            }));
        }
        for lines in lines.values_mut() {
            lines.sort_unstable();
        }
        Self {
            places,
            lines,
            sources: own.functions(),
        }
    }

    /// Returns the place of a frame, if it is in the user's own code.
    pub(crate) fn place(&self, frame: StringId) -> Option<Place<'a>> {
        self.places[frame.index()].map(|own| own.place)
    }

    /// Returns the name of the function that a place is in and the line of its definition. The
    /// classes around it are in the name if the profile lists functions.
    pub(crate) fn function(&'a self, place: &Place<'a>) -> (&'a str, Option<u32>) {
        if let Some(function) = self.sources.function(place.file, place.line) {
            return (&function.name, Some(function.first));
        }
        (place.function, self.line(place))
    }

    fn line(&self, place: &Place<'_>) -> Option<u32> {
        let lines = self.lines.get(&(place.file, place.function))?;
        let after = lines.partition_point(|&line| line <= place.line);
        after.checked_sub(1).map(|last| lines[last])
    }
}

/// Returns whether a function is an expression, which is mostly on one line: `<lambda>`,
/// `<listcomp>`. A module is not.
fn is_expression(function: &str) -> bool {
    function.starts_with('<') && function != "<module>"
}

/// Returns whether a function is a comprehension, which is part of the function that it is in.
pub(crate) fn is_comprehension(function: &str) -> bool {
    matches!(
        function,
        "<listcomp>" | "<genexpr>" | "<dictcomp>" | "<setcomp>"
    )
}

type Key<'a> = (&'a str, &'a str, Option<u32>);

/// The functions and lines of one group of threads.
struct Found<'a> {
    functions: Vec<FunctionSum<'a>>,
    lines: Vec<LineSum<'a>>,
    outside: Cost,
    names: CalledNames<'a>,
}

struct FunctionSum<'a> {
    key: Key<'a>,
    calls: Option<u64>,
    own: Cost,
    total: Cost,
    called: CalledSums,
    hottest: Option<(Nanos, u32)>,
}

struct LineSum<'a> {
    place: Place<'a>,
    is_definition: bool,
    own: Cost,
    total: Cost,
    called: CalledSums,
}

/// The position of a node's function and line, of its own or of its nearest caller of the user's.
#[derive(Clone, Copy)]
struct Blamed {
    function: usize,
    line: usize,
    way: Way,
}

impl<'a> Found<'a> {
    fn build(profile: &'a Profile, charges: &Charges, definitions: &'a Definitions<'a>) -> Self {
        let mut found = Self {
            functions: Vec::new(),
            lines: Vec::new(),
            outside: Cost::default(),
            names: CalledNames::new(profile.strings()),
        };
        let blamed = found.blame(charges, definitions);
        for (node, blame) in charges.nodes.iter().zip(&blamed) {
            match blame {
                Some(blame) => found.charge(*blame, node.own),
                None => found.outside.add(node.own),
            }
        }
        for (&(node, name), work) in &charges.called {
            if let Some(blame) = blamed[node].filter(|blame| blame.way.called.is_none()) {
                let name = found.names.of(name);
                found.functions[blame.function].called.add(name, work.time);
                found.lines[blame.line].called.add(name, work.time);
            }
        }
        let is_own = |node: usize| definitions.places[charges.nodes[node].frame.index()].is_some();
        let key = |of: fn(&Blamed) -> usize| -> Vec<Option<usize>> {
            let blamed = blamed.iter().enumerate();
            blamed
                .map(|(node, blame)| blame.as_ref().filter(|_| is_own(node)).map(of))
                .collect()
        };
        let totals = charges.sum_wholes(&key(|blame| blame.function), found.functions.len());
        for (function, total) in found.functions.iter_mut().zip(totals) {
            function.total = total;
        }
        let totals = charges.sum_wholes(&key(|blame| blame.line), found.lines.len());
        for (line, total) in found.lines.iter_mut().zip(totals) {
            line.total = total;
        }
        found
    }

    /// Finds the function and the line of each node.
    fn blame(
        &mut self,
        charges: &Charges,
        definitions: &'a Definitions<'a>,
    ) -> Vec<Option<Blamed>> {
        let (mut functions, mut lines) = (FxHashMap::default(), FxHashMap::default());
        let mut blamed: Vec<Option<Blamed>> = Vec::with_capacity(charges.nodes.len());
        for (index, node) in charges.nodes.iter().enumerate() {
            let caller = (index > 0).then(|| blamed[node.caller]).flatten();
            let own = definitions.places[node.frame.index()].filter(|_| index > 0);
            let Some(own) = own else {
                blamed.push(caller.map(|caller| Blamed {
                    way: caller.way.then(self.names.of(node.frame)),
                    ..caller
                }));
                continue;
            };
            let place = own.place;
            let around = caller.map(|caller| caller.function).filter(|&around| {
                is_comprehension(place.function) && self.functions[around].key.0 == place.file
            });
            let function = around.unwrap_or_else(|| {
                let (name, line) = definitions.function(&place);
                self.function((place.file, name, line), &mut functions)
            });
            if own.is_definition && node.calls > 0 && around.is_none() {
                let calls = &mut self.functions[function].calls;
                *calls = Some(calls.unwrap_or(0) + node.calls);
            }
            blamed.push(Some(Blamed {
                function,
                line: self.line(own, function, &mut lines),
                way: Way::default(),
            }));
        }
        blamed
    }

    fn function(&mut self, key: Key<'a>, known: &mut FxHashMap<Key<'a>, usize>) -> usize {
        match known.entry(key) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                self.functions.push(FunctionSum {
                    key,
                    calls: None,
                    own: Cost::default(),
                    total: Cost::default(),
                    called: CalledSums::default(),
                    hottest: None,
                });
                *entry.insert(self.functions.len() - 1)
            }
        }
    }

    /// Returns the position of a line. A comprehension on it belongs to the function around it.
    fn line(
        &mut self,
        own: OwnPlace<'a>,
        function: usize,
        known: &mut FxHashMap<(&'a str, u32, bool), usize>,
    ) -> usize {
        let place = Place {
            function: self.functions[function].key.1,
            ..own.place
        };
        match known.entry((place.file, place.line, own.is_definition)) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                self.lines.push(LineSum {
                    place,
                    is_definition: own.is_definition,
                    own: Cost::default(),
                    total: Cost::default(),
                    called: CalledSums::default(),
                });
                *entry.insert(self.lines.len() - 1)
            }
        }
    }

    fn charge(&mut self, blame: Blamed, cost: Cost) {
        let line = &mut self.lines[blame.line];
        line.own.add(cost);
        let function = &mut self.functions[blame.function];
        function.own.add(cost);
        if !line.is_definition {
            let candidate = (line.own.time(), line.place.line);
            if function.hottest.is_none_or(|(time, _)| candidate.0 > time) {
                function.hottest = Some(candidate);
            }
        }
        function.called.charge(blame.way, cost);
        self.lines[blame.line].called.charge(blame.way, cost);
    }

    fn functions(&self, shares: Shares) -> Vec<FunctionCost> {
        let mut rows: Vec<FunctionCost> = self
            .functions
            .iter()
            // Stacks are of all threads.
            .filter(|sum| sum.calls.is_some() || sum.total != Cost::default())
            .map(|sum| FunctionCost {
                file: sum.key.0.into(),
                function: sum.key.1.into(),
                line: sum.key.2,
                calls: sum.calls,
                own: sum.own,
                total: sum.total,
                hottest_line: sum.hottest.map(|(_, line)| line),
                share_error: shares.error(sum.own),
                mostly: sum.called.mostly(&self.names, sum.own.time()),
            })
            .collect();
        rows.sort_by(|a, b| {
            let times = (b.own.time(), b.total.time()).cmp(&(a.own.time(), a.total.time()));
            times.then_with(|| (&a.file, a.line, &a.function).cmp(&(&b.file, b.line, &b.function)))
        });
        rows
    }

    fn lines(&self, shares: Shares) -> Vec<LineCost> {
        let mut rows: Vec<LineCost> = self
            .lines
            .iter()
            .filter(|sum| sum.total != Cost::default())
            .map(|sum| LineCost {
                file: sum.place.file.into(),
                line: sum.place.line,
                function: sum.place.function.into(),
                is_definition: sum.is_definition,
                own: sum.own,
                total: sum.total,
                share_error: shares.error(sum.own),
                mostly: sum.called.mostly(&self.names, sum.own.time()),
            })
            .collect();
        rows.sort_by(|a, b| {
            let times = (b.own.time(), b.total.time()).cmp(&(a.own.time(), a.total.time()));
            times.then_with(|| (&a.file, a.line).cmp(&(&b.file, b.line)))
        });
        rows
    }
}

#[cfg(test)]
mod tests;
