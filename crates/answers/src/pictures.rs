//! Which paths a picture of a program shows: its own work, apart from imports and from the profiler.

use mindprof_analyze::{Folded, PathPart};
use mindprof_model::Place;
use rustc_hash::FxHashSet;

use crate::work::Work;

/// The beginning of the frames in which Python imports a module.
const IMPORTING: &str = "<frozen importlib._bootstrap";

/// The beginnings of the frames and threads of the profiler itself.
const PROFILER: &str = "mindprof/";
const PROFILER_THREAD: &str = "mindprof-";

/// The paths of a profile in two pictures.
#[derive(Debug)]
pub struct Pictures<'a> {
    /// The work of the program.
    pub work: Folded<'a>,
    /// Its imports.
    pub imports: Folded<'a>,
}

impl<'a> Pictures<'a> {
    /// Separates the imports of a program from its work, and takes out the profiler's own frames.
    pub fn new(folded: &Folded<'a>, work: &Work) -> Self {
        let side = work.side_ranges();
        let imports: FxHashSet<&str> = side
            .into_iter()
            .flat_map(|side| side.imports.iter().map(String::as_str))
            .collect();
        let steps: FxHashSet<&str> = side
            .into_iter()
            .flat_map(|side| side.steps.iter().map(String::as_str))
            .collect();
        let (work, imports) = folded.parted(|name| {
            let is_import = imports.contains(name) || side.is_some() && name.starts_with(IMPORTING);
            if is_import {
                PathPart::Separate
            } else if is_profiler(name) || steps.contains(name) {
                PathPart::PassedOver
            } else {
                PathPart::Kept
            }
        });
        Self { work, imports }
    }
}

fn is_profiler(name: &str) -> bool {
    let file = Place::parse(name).map(|place| place.file);
    file.is_some_and(|file| file.starts_with(PROFILER)) || name.starts_with(PROFILER_THREAD)
}

#[cfg(test)]
mod tests {
    use mindprof_analyze::{Analysis, StackMetric};
    use mindprof_model::{Category, Timeline};

    use super::*;
    use crate::side_ranges::SideRanges;

    #[test]
    fn imports_are_a_picture_of_their_own() {
        let profile = Timeline::draw(|time| {
            let call = Category::PythonFunction;
            time.event(call, "train.py(1): <module>", |time| {
                time.idle(1);
                let find = "<frozen importlib._bootstrap>(9): _find_and_load";
                time.event(call, find, |time| {
                    time.event(call, "torch/__init__.py(1): <module>", |time| time.idle(7));
                });
                time.event(call, "mindprof/_run/optimizer_steps.py(5): step", |time| {
                    time.idle(2);
                    time.op("aten::mm", 3);
                });
            });
        });
        let analysis = Analysis::build(profile);
        let work = Work::without(SideRanges::default());
        let folded = Folded::build(&analysis, StackMetric::SelfCpuTime);
        let pictures = Pictures::new(&folded, &work);
        let lines = |folded: &Folded<'_>| -> Vec<(String, u64)> {
            let text = |frame| folded.strings().text(frame).to_owned();
            let path = |path| {
                folded
                    .frames(path)
                    .into_iter()
                    .map(text)
                    .collect::<Vec<_>>()
            };
            let lines = folded.iter();
            lines
                .map(|(at, weight)| (path(at).join(";"), weight.0))
                .collect()
        };
        let expected = [
            ("train.py(1): <module>".to_owned(), 3),
            ("train.py(1): <module>;aten::mm".to_owned(), 3),
        ];
        assert_eq!(lines(&pictures.work), expected);
        let imports = lines(&pictures.imports);
        assert!(
            imports[0].0.ends_with("torch/__init__.py(1): <module>"),
            "{imports:?}"
        );
        assert_eq!((imports.len(), imports[0].1), (1, 7));
    }
}
