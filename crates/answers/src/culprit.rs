//! The function to name first: the one whose change promises most.
//!
//! It is not always the one with the most time. A program that trains a model is expected to
//! spend its time in the model, so such work counts less than work that nobody expects.

use std::collections::hash_map::Entry;

use mindprof_model::Nanos;
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::code_paths::{CodePath, CodePaths};
use crate::questions::micros;

/// The expected work of a model counts for a quarter of its time.
const EXPECTED: u64 = 4;

/// The function to change first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Culprit {
    /// The position of the path with most of its time.
    pub path: usize,
    /// The positions of all its paths, one for each caller.
    pub paths: Vec<usize>,
    /// Its own time on all paths, or its total time if `through` is given.
    #[serde(rename = "time_us", serialize_with = "micros")]
    pub time: Nanos,
    /// The position of the `forward` that takes most of its time. Other functions call that one
    /// too, so that the culprit is who calls it for so long.
    pub through: Option<usize>,
    /// The position of a path that takes more time by itself, if that is the expected work of a
    /// model.
    pub larger: Option<usize>,
}

impl Culprit {
    /// Finds the culprit among the paths of a program.
    pub(crate) fn find(paths: &CodePaths) -> Option<Self> {
        let callers = callers(&paths.paths);
        let contexts = contexts(&paths.paths, &callers, &helpers(&paths.paths, &callers));
        let candidates = Candidates::build(&paths.paths, &contexts);
        let found = candidates.into_largest()?;
        let largest = |list: &[usize]| {
            let list = list.iter().copied();
            list.max_by_key(|&path| (paths.paths[path].own, std::cmp::Reverse(path)))
        };
        let mut culprit = Self {
            path: found.head,
            time: found.time,
            through: None,
            larger: None,
            paths: found.paths,
        };
        let head = &paths.paths[culprit.path];
        if let Some(through) = largest(&found.passed_up) {
            // Nine tenths: then the whole call of the function is to blame.
            if found.time.0 * 10 >= head.total.0 * 9 {
                culprit.time = head.total;
                culprit.through = Some(through);
            } else {
                let all = [culprit.path, through];
                culprit.path = largest(&all).unwrap_or(through);
                culprit.time = paths.paths[culprit.path].own;
                culprit.paths = vec![culprit.path];
            }
        } else {
            culprit.path = largest(&culprit.paths).unwrap_or(culprit.path);
        }
        let all: Vec<usize> = (0..paths.paths.len()).collect();
        culprit.larger = largest(&all).filter(|&path| paths.paths[path].own > culprit.time);
        Some(culprit)
    }
}

/// A function, for all of its callers: its file, its name and the line of its definition.
type Name<'a> = (&'a str, &'a str, Option<u32>);

fn name(path: &CodePath) -> Name<'_> {
    (&path.file, &path.function, path.definition)
}

/// Returns the position of the caller of each path.
fn callers(paths: &[CodePath]) -> Vec<Option<usize>> {
    let mut open: Vec<usize> = Vec::new();
    let mut callers = Vec::with_capacity(paths.len());
    for (index, path) in paths.iter().enumerate() {
        open.truncate(path.depth);
        callers.push(open.last().copied());
        open.push(index);
    }
    callers
}

/// Returns for each path whether it is that of a helper around the model, which some callers train
/// with and others do not: a training step and a validation may share it.
fn helpers(paths: &[CodePath], callers: &[Option<usize>]) -> Vec<bool> {
    let is_training = trainings(paths);
    let mut has_forward: Vec<bool> = paths.iter().map(|path| path.is_forward).collect();
    for index in (0..paths.len()).rev() {
        if let Some(caller) = callers[index].filter(|_| has_forward[index]) {
            has_forward[caller] = true;
        }
    }
    let is_around = |index: &usize| {
        let path = &paths[*index];
        has_forward[*index] && !path.is_forward && path.total > Nanos::ZERO
    };
    let mut found: FxHashMap<Name<'_>, [bool; 2]> = FxHashMap::default();
    for index in (0..paths.len()).filter(is_around) {
        found.entry(name(&paths[index])).or_default()[usize::from(is_training[index])] = true;
    }
    (0..paths.len())
        .map(|index| is_around(&index) && found[&name(&paths[index])] == [true, true])
        .collect()
}

/// Returns for each path the function that runs the model: itself, or its nearest caller that is no
/// `forward` and no helper.
fn contexts(paths: &[CodePath], callers: &[Option<usize>], is_helper: &[bool]) -> Vec<usize> {
    let mut contexts: Vec<usize> = Vec::with_capacity(paths.len());
    for (index, path) in paths.iter().enumerate() {
        let caller = callers[index].filter(|_| path.is_forward || is_helper[index]);
        contexts.push(caller.map_or(index, |caller| contexts[caller]));
    }
    contexts
}

/// A function while its paths are collected.
struct Candidate {
    /// The first path, or the context that others are passed up to.
    head: usize,
    paths: Vec<usize>,
    passed_up: Vec<usize>,
    time: Nanos,
    weight: u64,
}

struct Candidates {
    list: Vec<Candidate>,
}

impl Candidates {
    fn build(paths: &[CodePath], contexts: &[usize]) -> Self {
        let is_training = trainings(paths);
        let is_any = is_training.contains(&true);
        let is_shared = shared(paths, contexts);
        let mut list: Vec<Candidate> = Vec::new();
        let mut known: FxHashMap<Name<'_>, usize> = FxHashMap::default();
        for (index, path) in paths.iter().enumerate() {
            let context = contexts[index];
            let is_passed_up = context != index && is_shared[index];
            let head = if is_passed_up { context } else { index };
            let candidate = match known.entry(name(&paths[head])) {
                Entry::Occupied(entry) => &mut list[*entry.get()],
                Entry::Vacant(entry) => {
                    entry.insert(list.len());
                    list.push(Candidate {
                        head,
                        paths: Vec::new(),
                        passed_up: Vec::new(),
                        time: Nanos::ZERO,
                        weight: 0,
                    });
                    list.last_mut().expect("one was added")
                }
            };
            if is_passed_up {
                candidate.passed_up.push(index);
            } else {
                candidate.paths.push(index);
            }
            candidate.time = candidate.time + path.own;
            // A forward pass that nothing is trained by is no expected work, if others are.
            let expected = if is_training[context] || !is_any {
                path.model.min(path.own).0
            } else {
                0
            };
            candidate.weight += path.own.0 - expected + expected / EXPECTED;
        }
        Self { list }
    }

    fn into_largest(self) -> Option<Candidate> {
        let found = self.list.into_iter();
        let found = found.max_by_key(|one| (one.weight, std::cmp::Reverse(one.head)));
        found.filter(|one| one.time > Nanos::ZERO)
    }
}

/// Returns by path whether it or what it calls has backward work.
fn trainings(paths: &[CodePath]) -> Vec<bool> {
    let mut is_training: Vec<bool> = paths.iter().map(|p| p.backward > Nanos::ZERO).collect();
    let callers = callers(paths);
    for index in (0..paths.len()).rev() {
        if let Some(caller) = callers[index].filter(|_| is_training[index]) {
            is_training[caller] = true;
        }
    }
    is_training
}

/// Returns by path whether it is a `forward` or a helper that several functions run.
fn shared(paths: &[CodePath], contexts: &[usize]) -> Vec<bool> {
    let mut first: FxHashMap<Name<'_>, (Name<'_>, bool)> = FxHashMap::default();
    let is_used = |index: &usize| contexts[*index] != *index && paths[*index].total > Nanos::ZERO;
    for index in (0..paths.len()).filter(is_used) {
        let context = name(&paths[contexts[index]]);
        let (known, is_several) = first.entry(name(&paths[index])).or_insert((context, false));
        *is_several |= *known != context;
    }
    (0..paths.len())
        .map(|index| {
            first
                .get(&name(&paths[index]))
                .is_some_and(|(_, several)| *several)
        })
        .collect()
}

#[cfg(test)]
mod tests;
