//! Sums over a whole recording of which a profile has only the last part.
//!
//! The recorder writes them when old records made room for new ones, and `mindprof run` reports
//! them. They are an entry of the profile's metadata, so that they survive a trace file.

use std::fmt::Write;

use crate::{Metadata, Nanos};

/// The sums over a recording that is longer than its profile. The profile has the last events; this
/// tells how many came before, and what all of them took by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WholeRun {
    /// The duration of the recording.
    pub duration: Nanos,
    /// The duration of the part at its end that the profile describes.
    pub kept: Nanos,
    /// The number of operators and ranges before that part, which are only in the sums.
    pub only_in_sums: u64,
    /// The number of memory records and Python calls before that part, which are in no sum.
    pub in_no_sum: u64,
    /// The names with the most self time, of operators and ranges, most first.
    pub names: Vec<NameSums>,
}

/// The sums over all events of one name in a [`WholeRun`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameSums {
    /// The name of the events.
    pub name: String,
    /// The number of events.
    pub calls: u64,
    /// The time of the events.
    pub total: Nanos,
    /// The time of the events outside of the events inside.
    pub own: Nanos,
}

impl WholeRun {
    /// The metadata key of the sums.
    pub const KEY: &'static str = "mindprof_whole_run";

    /// The largest number of names, and the longest name that is written as it is.
    const MOST_NAMES: usize = 200;
    const LONGEST_NAME: usize = 200;

    /// The metadata key of the number of records that other processes, such as data loader workers,
    /// gave up. They are in no sum of the profile.
    pub const ELSEWHERE_KEY: &'static str = "mindprof_given_up_elsewhere";

    /// Takes the sums out of the metadata of another process, whose sums are not those of the
    /// program, and returns the number of its records that are not in its profile.
    pub fn take_count(metadata: &mut Metadata) -> u64 {
        let text = metadata.remove(Self::KEY).unwrap_or_default();
        let compact: String = text.split_whitespace().collect();
        let number = |key: &str| -> u64 {
            let rest = compact.split_once(key).map_or("", |(_, rest)| rest);
            let end = rest.find(|letter: char| !letter.is_ascii_digit());
            rest[..end.unwrap_or(rest.len())].parse().unwrap_or(0)
        };
        number("\"only_in_sums\":") + number("\"in_no_sum\":")
    }

    /// Writes it to the metadata of a profile, as JSON with times in microseconds.
    pub fn write(&self, metadata: &mut Metadata) {
        let mut text = format!(
            "{{\"duration_us\":{},\"kept_us\":{},\"only_in_sums\":{},\"in_no_sum\":{},\"names\":[",
            self.duration.0 / 1000,
            self.kept.0 / 1000,
            self.only_in_sums,
            self.in_no_sum
        );
        for (index, sums) in self.names.iter().take(Self::MOST_NAMES).enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let name = quoted(&sums.name, Self::LONGEST_NAME);
            let (calls, total, own) = (sums.calls, sums.total.0 / 1000, sums.own.0 / 1000);
            let _ = write!(
                text,
                "{comma}{{\"name\":{name},\"calls\":{calls},\"total_us\":{total},\"self_us\":{own}}}"
            );
        }
        let others = self.names.iter().skip(Self::MOST_NAMES);
        let (calls, own) = others.fold((0, 0), |(calls, own), sums| {
            (calls + sums.calls, own + sums.own.0)
        });
        let _ = write!(
            text,
            "],\"other_names\":{{\"calls\":{calls},\"self_us\":{}}}}}",
            own / 1000
        );
        metadata.set(Self::KEY, text);
    }
}

/// Returns the first characters of a text as a JSON string.
fn quoted(text: &str, longest: usize) -> String {
    let mut json = String::from('"');
    for letter in text.chars().take(longest) {
        match letter {
            '"' | '\\' => json.extend(['\\', letter]),
            control if control < ' ' => {
                let _ = write!(json, "\\u{:04x}", u32::from(control));
            }
            other => json.push(other),
        }
    }
    json.push('"');
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_json_with_escaped_names() {
        let whole = WholeRun {
            duration: Nanos(5_000_000),
            kept: Nanos(2_000_000),
            only_in_sums: 7,
            in_no_sum: 2,
            names: vec![NameSums {
                name: "a \"b\"\n\\".to_owned(),
                calls: 3,
                total: Nanos(9_000),
                own: Nanos(4_999),
            }],
        };
        let mut metadata = Metadata::default();
        whole.write(&mut metadata);
        assert_eq!(
            metadata.get(WholeRun::KEY).unwrap(),
            "{\"duration_us\":5000,\"kept_us\":2000,\"only_in_sums\":7,\"in_no_sum\":2,\"names\":[\
             {\"name\":\"a \\\"b\\\"\\u000a\\\\\",\"calls\":3,\"total_us\":9,\"self_us\":4}],\
             \"other_names\":{\"calls\":0,\"self_us\":0}}"
        );
    }

    #[test]
    fn names_beyond_the_first_are_one_sum() {
        let name = |index: u64| NameSums {
            name: format!("name {index}"),
            calls: 2,
            total: Nanos(1_000),
            own: Nanos(1_000),
        };
        let whole = WholeRun {
            names: (0..WholeRun::MOST_NAMES as u64 + 3).map(name).collect(),
            ..WholeRun::default()
        };
        let mut metadata = Metadata::default();
        whole.write(&mut metadata);
        let text = metadata.get(WholeRun::KEY).unwrap();
        assert!(text.ends_with("],\"other_names\":{\"calls\":6,\"self_us\":3}}"));
    }

    #[test]
    fn sums_of_another_process_become_a_count() {
        let whole = WholeRun {
            only_in_sums: 7,
            in_no_sum: 2,
            ..WholeRun::default()
        };
        let mut metadata = Metadata::default();
        whole.write(&mut metadata);
        assert_eq!(WholeRun::take_count(&mut metadata), 9);
        assert_eq!(metadata.get(WholeRun::KEY), None);
        assert_eq!(WholeRun::take_count(&mut metadata), 0);
    }
}
