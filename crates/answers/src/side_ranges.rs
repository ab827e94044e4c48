//! The ranges by which `mindprof run` describes the run itself: imports and steps.
//!
//! The launcher lists them in the metadata of the trace, so that every reader of the trace omits
//! them from its rows, as the run itself did.

use mindprof_analyze::Keys;
use mindprof_model::{Category, Profile};
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

/// The metadata key under which a trace of `mindprof run` lists its side ranges.
pub const RUN_KEY: &str = "mindprof_run";

/// The prefix of the name of an import's range. The name of the module follows.
pub const IMPORT_PREFIX: &str = "import ";

/// The keys of ranges that are not work of the program.
///
/// Imports would dominate every table, and steps cover everything that runs in them, so neither
/// shows what the program spends its time on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SideRanges {
    /// Imports of modules. An import inside another import has no separate range.
    pub imports: Vec<String>,
    /// Steps, and the ranges before the first and after the last one.
    pub steps: Vec<String>,
    /// The begin and the end of each step that the launcher recorded as a range, in nanoseconds
    /// since the Unix epoch. The program's own profilers may record ranges of the same names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub step_times: Vec<(u64, u64)>,
}

impl SideRanges {
    /// Returns the ranges that the metadata of a profile lists, or `None` if the profile is not a
    /// trace of `mindprof run`.
    pub fn read(profile: &Profile) -> Option<Self> {
        serde_json::from_str(profile.metadata().get(RUN_KEY)?).ok()
    }

    /// Finds the side ranges of a recording.
    ///
    /// The program itself may name a range `import x`, so only imports of `modules` count. `steps`
    /// are the keys of the launcher's ranges around and beside steps.
    pub fn find(profile: &Profile, modules: &[String], steps: &[&str]) -> Self {
        let modules: FxHashSet<&str> = modules.iter().map(String::as_str).collect();
        let mut is_range = vec![false; profile.strings().len()];
        for event in profile.events() {
            is_range[event.name.index()] |= event.category == Category::Annotation;
        }
        let mut found = Self::default();
        let mut seen = FxHashSet::default();
        for (name, _) in profile
            .strings()
            .iter()
            .zip(is_range)
            .filter(|(_, is_range)| *is_range)
        {
            let key = Keys::text(name);
            if !seen.insert(key) {
                continue;
            }
            let module = key.strip_prefix(IMPORT_PREFIX);
            if module.is_some_and(|module| modules.contains(module)) {
                found.imports.push(key.to_owned());
            } else if steps.contains(&key) {
                found.steps.push(key.to_owned());
            }
        }
        found
    }

    /// Returns the JSON that [`Self::read`] expects in the metadata.
    ///
    /// # Panics
    /// Never: lists of strings are JSON.
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("lists of strings are JSON")
    }

    /// Returns the keys of all side ranges.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.imports.iter().chain(&self.steps).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use mindprof_model::{Part, Timeline};

    use super::*;

    #[test]
    fn only_a_trace_of_a_run_names_side_ranges() {
        let mut part = Part::new();
        for (text, expected) in [
            ("1", None),
            ("{\"imports\":[]}", None),
            (
                "{\"imports\":[],\"steps\":[],\"later\":1}",
                Some(SideRanges::default()),
            ),
        ] {
            part.metadata.set(RUN_KEY, text);
            let profile = part.clone().into_profile().expect("nothing was added");
            assert_eq!(SideRanges::read(&profile), expected, "{text}");
        }
    }

    #[test]
    fn ranges_of_the_program_are_not_side_ranges() {
        let profile = Timeline::draw(|time| {
            time.annotation("import torch", |time| time.idle(1));
            time.annotation("import mine", |time| time.idle(1));
            time.annotation("ProfilerStep#3", |time| time.idle(1));
            time.annotation("ProfilerStep#4", |time| time.idle(1));
            time.op("import torch.nn", 1);
        });
        let modules = ["torch".to_owned(), "torch.nn".to_owned()];
        let found = SideRanges::find(&profile, &modules, &["ProfilerStep*"]);
        assert_eq!(found.imports, ["import torch"]);
        assert_eq!(found.steps, ["ProfilerStep*"]);
        assert_eq!(found.keys().count(), 2);
        let mut part = Part::new();
        part.metadata.set(RUN_KEY, found.json());
        let profile = part.into_profile().expect("nothing was added");
        assert_eq!(SideRanges::read(&profile), Some(found));
    }
}
