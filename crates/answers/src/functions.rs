//! The user's own functions and lines, with what they cost.
//!
//! The cost of an operator, of library code and of backward work is charged to the innermost line of
//! the user's own code that led to it: that is the line to change.

use std::collections::hash_map::Entry;

use mindprof_analyze::Analysis;
use mindprof_model::{Category, Nanos, Place, Profile, StringId};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::charges::{Charges, Cost, Threads};
use crate::own_code::OwnCode;
use crate::questions::micros;
use crate::work::Work;

/// Something that a function or a line calls, and the time that it takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Called {
    /// The name of the operator, library function or module.
    pub name: String,
    /// The time on the CPU and on devices.
    #[serde(rename = "time_us", serialize_with = "micros")]
    pub time: Nanos,
}

/// One of the user's own functions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FunctionCost {
    /// The file that defines it.
    pub file: String,
    /// Its name.
    pub function: String,
    /// The line of its definition, if its calls were recorded.
    pub line: Option<u32>,
    /// The number of its recorded calls.
    pub calls: u64,
    /// The cost of its own code and of the operators and libraries that it calls, without other
    /// functions of the user's.
    pub own: Cost,
    /// The cost of everything that ran until it returned.
    pub total: Cost,
    /// The line in it with the largest own cost.
    pub hottest_line: Option<u32>,
    /// What takes most of its own cost, if that is not its own Python code.
    pub mostly: Option<Called>,
}

/// One line of the user's own code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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
    /// What takes most of its own cost, if that is not its own Python code.
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
    /// The functions on the main thread.
    pub functions: Vec<FunctionCost>,
    /// The lines on the main thread.
    pub lines: Vec<LineCost>,
    /// The functions on other threads and in other processes.
    pub elsewhere: Vec<FunctionCost>,
    /// The lines on other threads and in other processes.
    pub lines_elsewhere: Vec<LineCost>,
    /// Whether the profile has Python stacks. Without them there are no functions.
    pub has_stacks: bool,
}

impl Functions {
    /// Finds the functions and lines of a profile in time linear in its events and stacks.
    pub fn build(analysis: &Analysis, work: &Work, own: &OwnCode) -> Self {
        let profile = analysis.profile();
        let definitions = Definitions::build(profile, own);
        let main = Charges::build(analysis, work, Threads::Main);
        let others = Charges::build(analysis, work, Threads::Others);
        let found = Found::build(profile, &main, own, &definitions);
        let elsewhere = Found::build(profile, &others, own, &definitions);
        let mut total = Cost::default();
        for node in &main.nodes {
            total.add(node.own);
        }
        let is_call = |category| category == Category::PythonFunction;
        let has_calls = || profile.events().iter().any(|event| is_call(event.category));
        Self {
            total,
            outside: found.outside,
            functions: found.functions(),
            lines: found.lines(),
            elsewhere: elsewhere.functions(),
            lines_elsewhere: elsewhere.lines(),
            has_stacks: !profile.stacks().is_empty() || has_calls(),
        }
    }
}

/// The lines at which the user's functions are defined, from the names of recorded calls. They tell
/// methods of one name in one file apart.
struct Definitions<'a> {
    lines: FxHashMap<(&'a str, &'a str), Vec<u32>>,
}

impl<'a> Definitions<'a> {
    fn build(profile: &'a Profile, own: &OwnCode) -> Self {
        let mut is_call = vec![false; profile.strings().len()];
        for event in profile.events() {
            is_call[event.name.index()] |= event.category == Category::PythonFunction;
        }
        let names = profile.strings().iter().zip(is_call);
        let calls = names.filter_map(|(name, is_call)| is_call.then(|| own.place(name))?);
        let mut lines: FxHashMap<_, Vec<u32>> = FxHashMap::default();
        for place in calls {
            lines
                .entry((place.file, place.function))
                .or_default()
                .push(place.line);
        }
        for lines in lines.values_mut() {
            lines.sort_unstable();
        }
        Self { lines }
    }

    /// Returns the line of the definition that a place is in.
    fn of(&self, place: &Place<'_>) -> Option<u32> {
        let lines = self.lines.get(&(place.file, place.function))?;
        let after = lines.partition_point(|&line| line <= place.line);
        after.checked_sub(1).map(|last| lines[last])
    }
}

type Key<'a> = (&'a str, &'a str, Option<u32>);

/// The functions and lines of one group of threads.
struct Found<'a> {
    functions: Vec<FunctionSum<'a>>,
    lines: Vec<LineSum<'a>>,
    outside: Cost,
    profile: &'a Profile,
}

struct FunctionSum<'a> {
    key: Key<'a>,
    calls: u64,
    own: Cost,
    total: Cost,
    called: FxHashMap<StringId, Nanos>,
    hottest: Option<(Nanos, u32)>,
}

struct LineSum<'a> {
    place: Place<'a>,
    is_definition: bool,
    own: Cost,
    total: Cost,
    called: FxHashMap<StringId, Nanos>,
}

/// The position of a node's function and line, of its own or of its nearest caller of the user's.
#[derive(Clone, Copy)]
struct Blamed {
    function: usize,
    line: usize,
    /// What was called from there on the way to the node.
    called: Option<StringId>,
}

impl<'a> Found<'a> {
    fn build(
        profile: &'a Profile,
        charges: &Charges,
        own: &OwnCode,
        definitions: &Definitions<'_>,
    ) -> Self {
        let mut found = Self {
            functions: Vec::new(),
            lines: Vec::new(),
            outside: Cost::default(),
            profile,
        };
        let places: Vec<Option<Place<'a>>> = profile
            .strings()
            .iter()
            .map(|text| own.place(text))
            .collect();
        let (mut functions, mut lines) = (FxHashMap::default(), FxHashMap::default());
        let mut blamed: Vec<Option<Blamed>> = vec![None];
        let mut keys: (Vec<Option<usize>>, Vec<Option<usize>>) = (vec![None], vec![None]);
        for node in &charges.nodes[1..] {
            let Some(place) = places[node.frame.index()] else {
                let called = |blame: Blamed| Blamed {
                    called: blame.called.or(Some(node.frame)),
                    ..blame
                };
                blamed.push(blamed[node.caller].map(called));
                keys.0.push(None);
                keys.1.push(None);
                continue;
            };
            let definition = definitions.of(&place);
            let function = found.function((place.file, place.function, definition), &mut functions);
            let line = found.line(place, node.is_call, &mut lines);
            if node.is_call {
                found.functions[function].calls += node.calls;
            }
            blamed.push(Some(Blamed {
                function,
                line,
                called: None,
            }));
            keys.0.push(Some(function));
            keys.1.push(Some(line));
        }
        for (node, blame) in charges.nodes.iter().zip(&blamed) {
            match blame {
                Some(blame) => found.charge(*blame, node.own),
                None => found.outside.add(node.own),
            }
        }
        for (&(node, name), &time) in &charges.called {
            if let Some(blame) = blamed[node].filter(|blame| blame.called.is_none()) {
                found.charge_called(blame, name, time);
            }
        }
        let totals = charges.sum_wholes(&keys.0, found.functions.len());
        for (function, total) in found.functions.iter_mut().zip(totals) {
            function.total = total;
        }
        let totals = charges.sum_wholes(&keys.1, found.lines.len());
        for (line, total) in found.lines.iter_mut().zip(totals) {
            line.total = total;
        }
        found
    }

    fn function(&mut self, key: Key<'a>, known: &mut FxHashMap<Key<'a>, usize>) -> usize {
        match known.entry(key) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                self.functions.push(FunctionSum {
                    key,
                    calls: 0,
                    own: Cost::default(),
                    total: Cost::default(),
                    called: FxHashMap::default(),
                    hottest: None,
                });
                *entry.insert(self.functions.len() - 1)
            }
        }
    }

    fn line(
        &mut self,
        place: Place<'a>,
        is_definition: bool,
        known: &mut FxHashMap<(Place<'a>, bool), usize>,
    ) -> usize {
        match known.entry((place, is_definition)) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                self.lines.push(LineSum {
                    place,
                    is_definition,
                    own: Cost::default(),
                    total: Cost::default(),
                    called: FxHashMap::default(),
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
        if let Some(name) = blame.called {
            self.charge_called(blame, name, cost.time());
        }
    }

    fn charge_called(&mut self, blame: Blamed, name: StringId, time: Nanos) {
        let function = &mut self.functions[blame.function].called;
        let line = &mut self.lines[blame.line].called;
        for called in [function, line] {
            let sum = called.entry(name).or_default();
            *sum = *sum + time;
        }
    }

    fn functions(&self) -> Vec<FunctionCost> {
        let mut rows: Vec<FunctionCost> = self
            .functions
            .iter()
            .map(|sum| FunctionCost {
                file: sum.key.0.into(),
                function: sum.key.1.into(),
                line: sum.key.2,
                calls: sum.calls,
                own: sum.own,
                total: sum.total,
                hottest_line: sum.hottest.map(|(_, line)| line),
                mostly: self.mostly(&sum.called, sum.own),
            })
            .collect();
        rows.sort_by(|a, b| {
            let times = (b.own.time(), b.total.time()).cmp(&(a.own.time(), a.total.time()));
            times.then_with(|| (&a.file, a.line, &a.function).cmp(&(&b.file, b.line, &b.function)))
        });
        rows
    }

    fn lines(&self) -> Vec<LineCost> {
        let mut rows: Vec<LineCost> = self
            .lines
            .iter()
            .map(|sum| LineCost {
                file: sum.place.file.into(),
                line: sum.place.line,
                function: sum.place.function.into(),
                is_definition: sum.is_definition,
                own: sum.own,
                total: sum.total,
                mostly: self.mostly(&sum.called, sum.own),
            })
            .collect();
        rows.sort_by(|a, b| {
            let times = (b.own.time(), b.total.time()).cmp(&(a.own.time(), a.total.time()));
            times.then_with(|| (&a.file, a.line).cmp(&(&b.file, b.line)))
        });
        rows
    }

    /// Returns the largest part of a cost, unless the Python code itself is larger.
    fn mostly(&self, called: &FxHashMap<StringId, Nanos>, own: Cost) -> Option<Called> {
        let python = own
            .time()
            .0
            .saturating_sub(called.values().map(|time| time.0).sum());
        let text = |name: StringId| self.profile.strings().text(name);
        let (name, time) = called
            .iter()
            .max_by_key(|&(&name, &time)| (time, std::cmp::Reverse(text(name))))?;
        (time.0 > python).then(|| Called {
            name: text(*name).into(),
            time: *time,
        })
    }
}

#[cfg(test)]
mod tests;
