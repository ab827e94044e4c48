//! The choice of some steps, or of the times within ranges of a name, for questions about a part of
//! a profile.

use mindprof_analyze::{Cut, Keys};
use mindprof_model::{Category, DeviceKind, Nanos, Place, Profile};

use crate::called::{MODULE_PREFIX, module_class};
use crate::steps::Steps;

/// A part of a profile by time.
///
/// The command line fills it in from `--steps` and `--within`; [`Self::cut`] finds the times in a
/// profile, and `mindprof_analyze::slim` makes the cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeSelection {
    /// The first and the last step.
    pub steps: Option<(u64, u64)>,
    /// The name of ranges, operators, Python functions or modules. `#N` at its end selects the Nth
    /// time that it ran, counted from 1.
    pub within: Option<String>,
}

/// The reason why a profile does not have the selected part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotSelected {
    /// The profile has no steps.
    NoSteps,
    /// The profile has steps, but none of these.
    OtherSteps {
        /// The number of its first step.
        first: u64,
        /// The number of its last step.
        last: u64,
    },
    /// Nothing has this name.
    NoName {
        /// The name.
        name: String,
        /// The most similar name, if there is one.
        similar: Option<String>,
    },
    /// It ran fewer times.
    FewerTimes {
        /// The name.
        name: String,
        /// The number of times that it ran.
        times: usize,
    },
}

impl TimeSelection {
    /// Returns whether everything is selected.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Finds the times of the selection in a profile.
    ///
    /// # Errors
    /// If the profile has none of the steps or nothing of the name.
    pub fn cut(&self, profile: &Profile) -> Result<Cut, NotSelected> {
        let window = self.steps.map(|steps| step_window(profile, steps));
        let within = self.within.as_deref().map(|name| times_of(profile, name));
        Ok(Cut {
            window: window.transpose()?,
            within: within.transpose()?,
            ..Cut::default()
        })
    }
}

fn step_window(
    profile: &Profile,
    (first, last): (u64, u64),
) -> Result<(Nanos, Nanos), NotSelected> {
    let steps = Steps::build(profile);
    steps.window(first, last).ok_or_else(|| {
        let all = steps.complete();
        match (all.first(), steps.open().as_ref().or(all.last())) {
            (Some(first), Some(last)) => NotSelected::OtherSteps {
                first: first.number,
                last: last.number,
            },
            _ => NotSelected::NoSteps,
        }
    })
}

fn times_of(profile: &Profile, name: &str) -> Result<Vec<(Nanos, Nanos)>, NotSelected> {
    let times = spans(profile, name);
    if !times.is_empty() {
        return Ok(times);
    }
    let numbered = name.rsplit_once('#');
    let numbered = numbered.and_then(|(name, number)| Some((name, number.parse::<usize>().ok()?)));
    let Some((name, number)) = numbered else {
        return Err(no_name(profile, name));
    };
    let times = spans(profile, name);
    if times.is_empty() {
        return Err(no_name(profile, name));
    }
    let chosen = number.checked_sub(1).and_then(|index| times.get(index));
    chosen
        .map(|&time| vec![time])
        .ok_or_else(|| NotSelected::FewerTimes {
            name: name.into(),
            times: times.len(),
        })
}

/// Returns when something of this name ran, in order and apart. Calls of itself are part of the
/// outermost one.
fn spans(profile: &Profile, name: &str) -> Vec<(Nanos, Nanos)> {
    let is_named: Vec<bool> = profile
        .strings()
        .iter()
        .map(|text| is_called(text, name))
        .collect();
    let mut spans: Vec<(Nanos, Nanos)> = Vec::new();
    for event in profile.events() {
        let device = profile.threads()[event.thread.index()].device;
        if !is_named[event.name.index()] || device != DeviceKind::Cpu {
            continue;
        }
        match spans.last_mut() {
            Some((_, end)) if event.start < *end => *end = (*end).max(event.end()),
            Some(_) | None => spans.push((event.start, event.end())),
        }
    }
    spans
}

/// Returns whether users may call an event by this name.
fn is_called(text: &str, name: &str) -> bool {
    text == name
        || Keys::text(text) == name
        || Place::parse(text).is_some_and(|place| place.function == name)
        || module_class(text) == Some(name)
        || text.strip_prefix(MODULE_PREFIX) == Some(name)
}

fn no_name(profile: &Profile, name: &str) -> NotSelected {
    let mut is_offered = vec![false; profile.strings().len()];
    for event in profile.events() {
        is_offered[event.name.index()] |= matches!(
            event.category,
            Category::Annotation | Category::PythonFunction
        );
    }
    let texts = profile.strings().iter().zip(is_offered);
    let texts = texts.filter_map(|(text, is_offered)| is_offered.then_some(text));
    let names = texts.map(|text| Place::parse(text).map_or(text, |place| place.function));
    let nearest = names
        .filter(|known| known.len().abs_diff(name.len()) <= 3)
        .map(|known| (distance(known, name), known))
        .min();
    NotSelected::NoName {
        name: name.into(),
        similar: nearest
            .filter(|(distance, known)| *distance * 3 <= known.len().max(3))
            .map(|(_, known)| known.into()),
    }
}

/// Returns the number of letters to insert, remove or replace to get from one name to the other.
pub(crate) fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (done, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = done + 1;
        for (index, &other) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != other);
            diagonal = row[index + 1];
            row[index + 1] = replaced.min(row[index] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use mindprof_model::Timeline;

    use super::*;

    // load   |--|      |--|
    // step       |----|    |----|
    fn profile() -> Profile {
        Timeline::draw(|time| {
            for _ in 0..2 {
                time.annotation("load", |time| time.op("aten::cat", 10));
                time.annotation("step#5", |time| time.op("aten::mm", 30));
            }
        })
    }

    fn within(name: &str) -> Result<Vec<(u64, u64)>, NotSelected> {
        let selection = TimeSelection {
            within: Some(name.into()),
            ..TimeSelection::default()
        };
        let cut = selection.cut(&profile())?;
        let times = cut.within.unwrap_or_default().into_iter();
        Ok(times.map(|(begin, end)| (begin.0, end.0)).collect())
    }

    #[test]
    fn a_name_selects_all_times_and_a_number_one_of_them() {
        assert_eq!(within("load"), Ok(vec![(0, 10), (40, 50)]));
        assert_eq!(within("load#2"), Ok(vec![(40, 50)]));
        // The number may be part of the name.
        assert_eq!(within("step#5"), Ok(vec![(10, 40), (50, 80)]));
        assert_eq!(within("step#5#1"), Ok(vec![(10, 40)]));
        assert_eq!(within("aten::mm#1"), Ok(vec![(10, 40)]));
    }

    #[test]
    fn wrong_names_get_the_nearest_one() {
        let missing = |name: &str, similar: Option<&str>| {
            Err(NotSelected::NoName {
                name: name.into(),
                similar: similar.map(Into::into),
            })
        };
        assert_eq!(within("laod"), missing("laod", None));
        assert_eq!(within("loads"), missing("loads", Some("load")));
        let fewer = NotSelected::FewerTimes {
            name: "load".into(),
            times: 2,
        };
        assert_eq!(within("load#0"), Err(fewer.clone()));
        assert_eq!(within("load#3"), Err(fewer));
    }

    #[test]
    fn a_profile_without_steps_has_none_to_select() {
        let selection = TimeSelection {
            steps: Some((1, 2)),
            ..TimeSelection::default()
        };
        assert_eq!(selection.cut(&profile()), Err(NotSelected::NoSteps));
        assert!(!selection.is_all() && TimeSelection::default().is_all());
    }
}
