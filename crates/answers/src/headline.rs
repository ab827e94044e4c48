//! The place or cause that the first sentence about a profile names. The first screen of a run and
//! its page share it, so that both say the same.

use mindprof_analyze::Analysis;
use mindprof_model::{Category, Metadata, Nanos};
use serde::{Deserialize, Serialize};

use crate::advice::{Advice, Finding};
use crate::charges::AllCharges;
use crate::code_paths::{CodePath, CodePaths};
use crate::culprit::Culprit;
use crate::own_code::OwnCode;
use crate::questions::micros;
use crate::recorder_cost::{CostName, RecorderCost};
use crate::source_files::SourceFiles;
use crate::steps::Step;
use crate::top_operators::{TopOperator, TopOperators, WideFloats};

/// The metadata key under which a trace of `mindprof run` keeps [`RunFacts`].
pub const RUN_FACTS_KEY: &str = "mindprof_run_facts";

/// The share of the time that compilations, or operators in double precision, take if they come
/// first, and that of waiting for data.
const MUCH: f64 = 0.3;

/// The share of a step from which on a finding is worth a sentence.
const WORTH: f64 = 0.05;

/// The compilations of one function by a compiler such as `torch.compile`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Compiled {
    /// The name of the function.
    pub function: String,
    /// Its file, as the compiler names it.
    pub file: String,
    /// The line of its definition.
    pub line: u32,
    /// The number of compilations.
    pub times: u64,
    /// The time of all compilations.
    #[serde(rename = "time_us", serialize_with = "micros")]
    pub time: Nanos,
    /// Why it was compiled again, if the compiler tells.
    pub reason: Option<String>,
}

/// A function of other threads or processes that makes the loop wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Elsewhere {
    /// The file that defines it.
    pub file: String,
    /// Its name.
    pub function: String,
    /// The line in it that takes most of the time.
    pub line: u32,
    /// The time of its code and of the operators and libraries that it calls.
    #[serde(rename = "own_us", serialize_with = "micros")]
    pub own: Nanos,
    /// The time of all threads and processes besides the main thread.
    #[serde(rename = "of_us", serialize_with = "micros")]
    pub of: Nanos,
}

/// The operators that the culprit calls in one step, without backward work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StepOperators {
    /// The least number in a step.
    pub least: u64,
    /// The number that half of the steps do not exceed.
    pub median: u64,
    /// The largest number in a step.
    pub most: u64,
}

/// Facts about a run that its launcher knows and that the first sentence may rest on. The launcher
/// keeps them in the metadata of the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFacts {
    /// The time of the run without imports.
    pub rest: Nanos,
    /// The time that the loop waited for data.
    pub data_wait: Nanos,
    /// Whether a data loader has workers.
    pub has_workers: bool,
    /// The compilations, those that took longest first.
    pub compiled: Vec<Compiled>,
}

/// The facts as they are written, with times in nanoseconds.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Written {
    without_imports_ns: u64,
    waited_for_data_ns: u64,
    has_workers: bool,
    /// Function, file, line, number of compilations, time and reason.
    compiled: Vec<(String, String, u32, u64, u64, Option<String>)>,
}

impl RunFacts {
    /// Reads the facts in the metadata of a profile. A profile of another origin has none.
    pub fn read(metadata: &Metadata) -> Self {
        let written = metadata.get(RUN_FACTS_KEY);
        let written = written.and_then(|text| serde_json::from_str::<Written>(text).ok());
        let written = written.unwrap_or_default();
        let compiled = written.compiled.into_iter();
        let compiled = compiled.map(|(function, file, line, times, time_ns, reason)| Compiled {
            function,
            file,
            line,
            times,
            time: Nanos(time_ns),
            reason,
        });
        Self {
            rest: Nanos(written.without_imports_ns),
            data_wait: Nanos(written.waited_for_data_ns),
            has_workers: written.has_workers,
            compiled: compiled.collect(),
        }
    }

    /// Returns the JSON that [`Self::read`] expects in the metadata.
    ///
    /// # Panics
    /// Never: numbers and strings are JSON.
    pub fn json(&self) -> String {
        let compiled = self.compiled.iter().cloned();
        let written = Written {
            without_imports_ns: self.rest.0,
            waited_for_data_ns: self.data_wait.0,
            has_workers: self.has_workers,
            compiled: compiled
                .map(|one| {
                    let Compiled { function, file, .. } = one;
                    (function, file, one.line, one.times, one.time.0, one.reason)
                })
                .collect(),
        };
        serde_json::to_string(&written).expect("numbers and strings are JSON")
    }

    /// Returns the time of all compilations.
    pub fn compile_time(&self) -> Nanos {
        let times = self.compiled.iter().map(|one| one.time);
        times.fold(Nanos::ZERO, Nanos::saturating_add)
    }

    /// Returns whether compilation takes so much of the time that it comes first.
    pub fn is_compiling(&self) -> bool {
        is_much(self.compile_time(), self.rest)
    }
}

/// The subject of the first sentence about a profile.
#[derive(Clone, Debug)]
pub enum Subject<'a> {
    /// Most of the time is compilation, mostly of this function.
    Compilation(&'a Compiled),
    /// The loop waits for workers, which spend most of their time in this function.
    Workers(&'a Elsewhere),
    /// The main thread waits for others, which spend most of their time in this function. The time
    /// is that of the wait.
    Threads(&'a Elsewhere, Nanos),
    /// Much of the time is double precision that surprises.
    WideFloats(&'a WideFloats),
    /// One of the user's functions.
    Function(Culprit),
    /// The most valuable finding of a profile without functions of the user's.
    Finding(&'a Finding),
    /// The operator with most time.
    Operator(&'a TopOperator),
    /// There is nothing to name.
    Nothing,
}

/// The basis of the first sentence about a profile.
#[derive(Clone, Debug)]
pub struct Headline {
    /// The facts of the launcher.
    pub run: RunFacts,
    /// The paths of the user's functions on the main thread.
    pub paths: CodePaths,
    /// How many operators the culprit calls in a step, if there are steps.
    pub step_operators: Option<StepOperators>,
    /// The function of workers that takes most of their time, if the loop waits for workers.
    pub elsewhere: Option<Elsewhere>,
    /// The function of other threads that takes most of their time, and the time for which the main
    /// thread waits for them, if that is much.
    pub threads: Option<(Elsewhere, Nanos)>,
    /// The operators by decreasing time, without the time that recording took.
    pub operators: Vec<TopOperator>,
    /// Double precision that surprises.
    pub wide: Option<WideFloats>,
    /// Whether the times of functions contain those of a device, which may overlap them.
    pub has_device: bool,
}

impl Headline {
    /// Collects what the first sentence rests on. `top` are the operators of the main thread, and
    /// `sources` the user's files, as far as they are known.
    pub(crate) fn build(
        analysis: &Analysis,
        charges: &AllCharges,
        top: TopOperators,
        steps: &[Step],
        known: Known<'_>,
    ) -> Self {
        let Known { own, sources, run } = known;
        let paths = CodePaths::build(analysis, &charges.main, own, sources);
        let is_waiting =
            run.has_workers && (is_much(run.data_wait, paths.total) || waits_for_data(&paths));
        let operators = unrecorded(analysis, top.operators, paths.total);
        let waited = thread_wait(&paths).filter(|&waited| is_much(waited, paths.total));
        let threads = waited.filter(|_| !is_waiting).and_then(|waited| {
            let others = CodePaths::build(analysis, &charges.others, own, sources);
            let found = elsewhere(&others)?;
            is_much(found.own, waited).then_some((found, waited))
        });
        Self {
            threads,
            step_operators: step_operators(analysis, charges, &paths, steps),
            paths,
            elsewhere: is_waiting
                .then(|| CodePaths::build(analysis, &charges.others, own, sources))
                .and_then(|paths| elsewhere(&paths)),
            operators,
            wide: top.wide,
            has_device: analysis.accelerator().is_some(),
            run,
        }
    }

    /// Returns what the first sentence names: what others than the user's functions on the main
    /// thread are to blame for, then the function to change first, then the best guess without one.
    pub fn subject<'a>(&'a self, advice: &'a Advice) -> Subject<'a> {
        if let Some(compiled) = self
            .run
            .compiled
            .first()
            .filter(|_| self.run.is_compiling())
        {
            return Subject::Compilation(compiled);
        }
        if let Some(worker) = &self.elsewhere {
            return Subject::Workers(worker);
        }
        let wide = self.wide.as_ref().filter(|wide| wide.first.is_some());
        if let Some(wide) = wide.filter(|wide| is_much(wide.time, self.paths.total)) {
            return Subject::WideFloats(wide);
        }
        if let Some((function, waited)) = &self.threads {
            return Subject::Threads(function, *waited);
        }
        if let Some(culprit) = self.paths.culprit() {
            return Subject::Function(self.caller_to_blame(&culprit, advice).unwrap_or(culprit));
        }
        // A finding without a price, such as growing memory, may be worth more than any time.
        let unpriced = advice.findings.iter().find(|one| one.share == 0.0);
        if let Some(finding) = worth_mending(advice).next().or(unpriced) {
            return Subject::Finding(finding);
        }
        self.operators
            .first()
            .map_or(Subject::Nothing, Subject::Operator)
    }
}

impl Headline {
    /// Returns the caller of the culprit if it is the one to change, because it calls a model for each
    /// sample.
    fn caller_to_blame(&self, culprit: &Culprit, advice: &Advice) -> Option<Culprit> {
        let first = advice.findings.first()?;
        if first.rule.id != "loop-over-batch" || first.share < MUCH {
            return None;
        }
        let mut callers = std::iter::successors(self.paths.caller(culprit.path), |&path| {
            self.paths.caller(path)
        });
        let path = callers.find(|&path| is_at(first, &self.paths.paths[path]))?;
        Some(Culprit {
            path,
            paths: vec![path],
            time: self.paths.paths[path].total,
            through: Some(culprit.path),
            larger: None,
        })
    }
}

/// Returns the findings that a first sentence goes with, at most two: the most valuable one, and the
/// one about the function that the sentence names, if that is worth mending too.
pub fn first_findings<'a>(headline: &Headline, advice: &'a Advice) -> Vec<&'a Finding> {
    let there = match headline.subject(advice) {
        Subject::Function(culprit) => Some(&headline.paths.paths[culprit.path]),
        Subject::Compilation(_)
        | Subject::Workers(_)
        | Subject::Threads(..)
        | Subject::WideFloats(_)
        | Subject::Finding(_)
        | Subject::Operator(_)
        | Subject::Nothing => None,
    };
    let first = advice.findings.first();
    let is_there = |finding: &&Finding| there.is_some_and(|path| is_at(finding, path));
    let other = worth_mending(advice).find(is_there);
    let other = other.filter(|_| first.is_some_and(|first| !is_there(&first)));
    first.into_iter().chain(other).collect()
}

/// Returns whether a finding blames the function of a path.
fn is_at(finding: &Finding, path: &CodePath) -> bool {
    // Sources tell the class of a method.
    let name = |function: &str| function.rsplit('.').next().map(str::to_owned);
    let place = finding.place.as_ref();
    place.is_some_and(|place| {
        place.file == path.file && name(&place.function) == name(&path.function)
    })
}

/// Returns whether the function to change first waits for a data loader more than for anything else, a
/// quarter of its time or more. The rest may be the start of the workers.
fn waits_for_data(paths: &CodePaths) -> bool {
    let Some(culprit) = paths.culprit() else {
        return false;
    };
    let path = &paths.paths[culprit.path];
    path.mostly.as_ref().is_some_and(|called| {
        called.name.starts_with("DataLoader.") && called.time.0 * 4 >= path.own.0
    })
}

/// The calls of libraries by which a thread waits for another one.
const THREAD_WAITS: [&str; 7] = [
    "threading.join",
    "threading.wait",
    "threading.acquire",
    "queue.get",
    "queue.put",
    "concurrent.futures._base.result",
    "concurrent.futures.thread.shutdown",
];

/// Returns for how long the function to change first waits for other threads, if it does nothing
/// else as long.
fn thread_wait(paths: &CodePaths) -> Option<Nanos> {
    let path = &paths.paths[paths.culprit()?.path];
    let called = path.mostly.as_ref()?;
    THREAD_WAITS
        .contains(&called.name.as_str())
        .then_some(called.time)
}

/// The facts about the origin of a profile.
#[derive(Clone, Debug)]
pub(crate) struct Known<'a> {
    pub(crate) own: &'a OwnCode,
    pub(crate) sources: &'a SourceFiles,
    pub(crate) run: RunFacts,
}

/// Returns the findings that save enough for a sentence, the most valuable first.
pub fn worth_mending(advice: &Advice) -> impl Iterator<Item = &Finding> {
    let findings = advice.findings.iter();
    findings.filter(|finding| finding.share >= WORTH)
}

/// Returns the findings of a first screen: those that are worth mending, then a program that records
/// graphs without training, for which no replay finds a price.
pub fn screen_findings(advice: &Advice) -> impl Iterator<Item = &Finding> {
    let graphs = advice.findings.iter();
    let graphs = graphs.filter(|finding| finding.rule.id == GRAPHS && finding.share < WORTH);
    worth_mending(advice).chain(graphs)
}

/// The rule about programs that record graphs without training.
const GRAPHS: &str = "inference-with-gradients";

fn is_much(part: Nanos, whole: Nanos) -> bool {
    part > Nanos::ZERO && part.0 as f64 >= MUCH * whole.0 as f64
}

/// Counts the operators that the culprit calls in each step.
fn step_operators(
    analysis: &Analysis,
    charges: &AllCharges,
    paths: &CodePaths,
    steps: &[Step],
) -> Option<StepOperators> {
    let culprit = paths.culprit()?;
    let mut by_start: Vec<(Step, u64)> = steps.iter().map(|&step| (step, 0)).collect();
    by_start.sort_by_key(|(step, _)| step.start);
    for &id in &charges.main_operators {
        let node = analysis.charged_stack(id).index();
        let path = paths.path_of_node.get(node).copied().flatten();
        if !path.is_some_and(|path| culprit.paths.contains(&path)) {
            continue;
        }
        let start = analysis.profile().event(id).start;
        let next = by_start.partition_point(|(step, _)| step.start <= start);
        if let Some((step, count)) = next.checked_sub(1).map(|last| &mut by_start[last])
            && start < step.start + step.duration
        {
            *count += 1;
        }
    }
    let mut counts: Vec<u64> = by_start.into_iter().map(|(_, count)| count).collect();
    counts.sort_unstable();
    Some(StepOperators {
        least: *counts.first()?,
        median: counts[(counts.len() - 1) / 2],
        most: *counts.last()?,
    })
}

/// Takes the time that recording took out of the times of operators, which are parts of `total`. About
/// half of it lies inside of the operators, the rest between them.
fn unrecorded(
    analysis: &Analysis,
    mut operators: Vec<TopOperator>,
    total: Nanos,
) -> Vec<TopOperator> {
    let recorder = RecorderCost::of_own(analysis);
    let each = recorder.per_event(Category::Operator, CostName::Other).0 / 2;
    for operator in &mut operators {
        let time = operator.called.time;
        let most = Nanos((time.0 as f64 * recorder.most()) as u64);
        let recording = Nanos(each * operator.calls).min(most);
        operator.called.time = time.saturating_sub(recording).min(total);
    }
    operators.sort_by_key(|operator| std::cmp::Reverse(operator.called.time));
    operators
}

fn elsewhere(paths: &CodePaths) -> Option<Elsewhere> {
    let culprit = paths.culprit()?;
    let path = &paths.paths[culprit.path];
    Some(Elsewhere {
        file: path.file.clone(),
        function: path.function.clone(),
        line: path.own_line,
        own: culprit.time,
        of: paths.total,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_facts_of_a_run_are_kept_in_a_trace() {
        let facts = RunFacts {
            rest: Nanos(10),
            data_wait: Nanos(3),
            has_workers: true,
            compiled: vec![Compiled {
                function: "f".into(),
                file: "a \"b\".py".into(),
                line: 7,
                times: 2,
                time: Nanos(4),
                reason: Some("size 1 != 2".into()),
            }],
        };
        let mut metadata = Metadata::default();
        metadata.set(RUN_FACTS_KEY, facts.json());
        assert_eq!(RunFacts::read(&metadata), facts);
        assert!(facts.is_compiling());
    }

    /// A finding that saves a share, in a function.
    fn finding(share: f64, function: &str) -> Finding {
        Finding {
            rule: crate::advice::RULES[0],
            share,
            low: share,
            high: share,
            time: Nanos::ZERO,
            confidence: crate::Confidence::High,
            place: Some(crate::CodePlace {
                file: "train.py".into(),
                line: 1,
                function: function.into(),
            }),
            module: None,
            events: Vec::new(),
            count: 1,
            per_step: 1.0,
            recorded: Nanos::ZERO,
            bytes: None,
            name: None,
            remedy: "",
            merged: Vec::new(),
        }
    }

    fn path(depth: usize, function: &str, own: u64, total: u64) -> CodePath {
        CodePath {
            depth,
            file: "train.py".into(),
            function: function.into(),
            definition: None,
            line: 1,
            own_line: 1,
            called_at: None,
            is_forward: false,
            own: Nanos(own),
            total: Nanos(total),
            mostly: None,
            operators: Nanos::ZERO,
            model: Nanos::ZERO,
            backward: Nanos::ZERO,
            operator_calls: 0,
        }
    }

    fn headline(paths: Vec<CodePath>) -> Headline {
        Headline {
            run: RunFacts::default(),
            paths: CodePaths {
                total: Nanos(10),
                paths,
                ..CodePaths::default()
            },
            step_operators: None,
            elsewhere: None,
            threads: None,
            operators: Vec::new(),
            wide: None,
            has_device: false,
        }
    }

    // The model's `forward` takes the time, but the loop around it is to change.
    #[test]
    fn a_loop_over_samples_is_named_instead_of_the_model() {
        let headline = headline(vec![path(0, "one_by_one", 1, 9), path(1, "forward", 8, 8)]);
        let named = |id: &str| {
            let rule = crate::advice::RULES.iter().find(|rule| rule.id == id);
            let advice = Advice {
                findings: vec![Finding {
                    rule: rule.unwrap(),
                    ..finding(0.5, "one_by_one")
                }],
                ..Advice::default()
            };
            match headline.subject(&advice) {
                Subject::Function(culprit) => (culprit.path, culprit.time, culprit.through),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(named("loop-over-batch"), (0, Nanos(9), Some(1)));
        assert_eq!(named("launch-bound"), (1, Nanos(8), None));
    }

    // Workers are asked for the cause if the loop does nothing but wait for them.
    #[test]
    fn a_function_that_mostly_waits_for_data_is_no_culprit() {
        let waiting = |name: &str, time: u64| {
            let mut path = path(0, "main", 9, 9);
            path.mostly = Some(crate::Called {
                name: name.into(),
                time: Nanos(time),
            });
            waits_for_data(&headline(vec![path]).paths)
        };
        assert!(waiting("DataLoader.__next__", 3));
        assert!(!waiting("DataLoader.__next__", 2));
        assert!(!waiting("aten::mm", 5));
    }

    #[test]
    fn a_finding_about_the_function_that_the_sentence_names_goes_with_it() {
        let headline = headline(vec![path(0, "Words.count", 9, 9)]);
        let first = |findings: &[(f64, &str)]| {
            let findings = findings.iter().map(|&(share, name)| finding(share, name));
            let advice = Advice {
                findings: findings.collect(),
                ..Advice::default()
            };
            let found = first_findings(&headline, &advice);
            found.iter().map(|one| one.share).collect::<Vec<_>>()
        };
        assert_eq!(
            first(&[(0.7, "forward"), (0.3, "backward"), (0.2, "count")]),
            [0.7, 0.2]
        );
        assert_eq!(first(&[(0.7, "count"), (0.2, "count")]), [0.7]);
        assert_eq!(first(&[(0.7, "forward"), (0.01, "count")]), [0.7]);
        assert!(first(&[]).is_empty());
    }

    #[test]
    fn a_profile_of_another_origin_has_no_facts_of_a_run() {
        let mut metadata = Metadata::default();
        assert_eq!(RunFacts::read(&metadata), RunFacts::default());
        metadata.set(RUN_FACTS_KEY, "{\"compiled\": 1}");
        assert_eq!(RunFacts::read(&metadata), RunFacts::default());
        assert!(!RunFacts::default().is_compiling());
    }
}
