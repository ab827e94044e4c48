//! The arguments that a collector writes beside device work: launch geometry, bytes and rates.
//!
//! A profile has no columns for them. They are read from the texts that a trace reader keeps for
//! round-tripping, so a recording that never was a trace file has none.

use mindprof_model::{PassthroughKind, PassthroughWalk, Profile, TextPiece};

/// The arguments of one kernel, copy or fill. Each is `None` if the collector did not write it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct WorkArguments {
    /// The thread blocks of the launch divided by the multiprocessors of the device.
    pub(crate) blocks_per_sm: Option<f64>,
    /// The estimated occupancy, as a percentage.
    pub(crate) occupancy: Option<f64>,
    /// The bytes that a copy or a fill moved.
    pub(crate) bytes: Option<u64>,
}

impl WorkArguments {
    /// The blocks per multiprocessor from which on an occupancy rounds to one percent at least: a
    /// block has a warp or more.
    const FILLED: f64 = 0.5;

    /// Returns the occupancy, or `None` if it is the zero that collectors write for kernels whose
    /// occupancy they cannot estimate.
    pub(crate) fn known_occupancy(&self) -> Option<f64> {
        let is_filled = self
            .blocks_per_sm
            .is_some_and(|blocks| blocks >= Self::FILLED);
        self.occupancy
            .filter(|&occupancy| occupancy > 0.0 || !is_filled)
    }
}

/// An argument that is looked for.
#[derive(Clone, Copy, Debug)]
enum Argument {
    BlocksPerSm,
    Occupancy,
    Bytes,
}

impl Argument {
    fn of(key: &str) -> Option<Self> {
        match key {
            "blocks per SM" => Some(Self::BlocksPerSm),
            "est. achieved occupancy %" => Some(Self::Occupancy),
            "bytes" => Some(Self::Bytes),
            _ => None,
        }
    }
}

/// A walk over the arguments of events, in the order of the profile. Texts that differ in their
/// numbers alone share a pattern, in which the numbers are looked for once.
pub(crate) struct ArgumentsWalk<'a> {
    profile: &'a Profile,
    walk: PassthroughWalk<'a>,
    /// By pattern, the numbers behind known keys.
    known: Vec<Option<Vec<(Argument, TextPiece)>>>,
    text: String,
}

impl<'a> ArgumentsWalk<'a> {
    pub(crate) fn new(profile: &'a Profile) -> Self {
        Self {
            profile,
            walk: profile.passthrough().walk(PassthroughKind::Arguments),
            known: Vec::new(),
            text: String::new(),
        }
    }

    /// Returns the arguments of the event at `index`. Each call must pass a larger index than the
    /// one before.
    pub(crate) fn at(&mut self, index: usize) -> WorkArguments {
        let texts = &self.profile.passthrough().texts;
        let Some(id) = self.walk.at(index) else {
            return WorkArguments::default();
        };
        let pattern = texts.pattern_of(id);
        let place = pattern.0.index();
        if place >= self.known.len() {
            self.known.resize(place + 1, None);
        }
        let pieces = self.known[place].get_or_insert_with(|| {
            let found = find_numbers(pattern.1).into_iter();
            found
                .map(|(argument, begin)| (argument, TextPiece::find(pattern, begin, is_in_number)))
                .collect()
        });
        let mut arguments = WorkArguments::default();
        for (argument, piece) in pieces {
            self.text.clear();
            texts.push_piece_to(id, piece, &mut self.text);
            arguments.set(*argument, &self.text);
        }
        arguments
    }
}

impl WorkArguments {
    fn set(&mut self, argument: Argument, value: &str) {
        let value = number(value);
        match argument {
            Argument::BlocksPerSm => self.blocks_per_sm = value,
            Argument::Occupancy => self.occupancy = value,
            Argument::Bytes => self.bytes = value.map(|bytes| bytes as u64),
        }
    }
}

/// Finds the values behind known keys: `"bytes":512,"memory bandwidth (GB/s)":0.3`. Returns where
/// each begins.
fn find_numbers(text: &str) -> Vec<(Argument, usize)> {
    let known = values(text).filter_map(|(key, begin)| Some((Argument::of(key)?, begin)));
    known.collect()
}

/// Returns where the value behind a key begins. A text that is a value itself is no key.
pub(crate) fn value_of(text: &str, key: &str) -> Option<usize> {
    let mut values = values(text);
    values
        .find(|(known, _)| *known == key)
        .map(|(_, begin)| begin)
}

/// Returns the keys of a text, and where the value of each begins.
fn values(text: &str) -> impl Iterator<Item = (&str, usize)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let begin = rest.find('"')?;
            let key_and_more = &rest[begin + 1..];
            let end = key_and_more.find('"')?;
            let (key, after) = (&key_and_more[..end], &key_and_more[end + 1..]);
            rest = after;
            if let Some(value) = after.trim_start().strip_prefix(':') {
                return Some((key, text.len() - value.trim_start().len()));
            }
        }
    })
}

/// Returns the number that a text begins with, if it is neither negative nor infinite.
fn number(text: &str) -> Option<f64> {
    let end = text.find(|c| !is_in_number(c)).unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number)
}

/// Returns whether a character may be part of a number.
pub(crate) const fn is_in_number(c: char) -> bool {
    c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-')
}

#[cfg(test)]
mod tests {
    use mindprof_model::{Category, DeviceKind, Event, Nanos, Part, Thread};

    use super::*;

    /// Returns the arguments in a text.
    fn parse(text: &str) -> WorkArguments {
        let mut arguments = WorkArguments::default();
        for (argument, begin) in find_numbers(text) {
            arguments.set(argument, &text[begin..]);
        }
        arguments
    }

    #[test]
    fn known_keys_have_their_numbers() {
        let kernel = parse(
            r#""queued":0,"blocks per SM":0.625,"grid":[50,1,1],"est. achieved occupancy %": 8"#,
        );
        assert_eq!(kernel.blocks_per_sm, Some(0.625));
        assert_eq!(kernel.occupancy, Some(8.0));
        assert_eq!(kernel.bytes, None);
        let copy = parse(r#""kind":"bytes","bytes":19267584,"memory bandwidth (GB/s)":9.9"#);
        assert_eq!(copy.bytes, Some(19_267_584));
    }

    #[test]
    fn the_occupancy_of_a_kernel_that_fills_the_device_is_not_zero() {
        let occupancy = |text| parse(text).known_occupancy();
        let unknown = r#""blocks per SM":0.97,"est. achieved occupancy %": 0"#;
        assert_eq!(occupancy(unknown), None);
        let small = r#""blocks per SM":0.0075,"est. achieved occupancy %": 0"#;
        assert_eq!(occupancy(small), Some(0.0));
        let known = r#""blocks per SM":0.97,"est. achieved occupancy %": 6"#;
        assert_eq!(occupancy(known), Some(6.0));
    }

    #[test]
    fn a_text_that_is_a_value_is_no_key() {
        let text = r#""kind":"bytes", "note":"blocks per SM","bytes": 512"#;
        assert_eq!(value_of(text, "bytes"), Some(text.len() - 3));
        assert_eq!(value_of(text, "blocks per SM"), None);
        assert_eq!(value_of(text, "kind"), Some(7));
    }

    #[test]
    fn numbers_that_make_no_sense_are_unknown() {
        assert_eq!(
            parse(r#""blocks per SM":-1,"bytes":"many","est. achieved occupancy %":inf"#),
            WorkArguments::default()
        );
        assert_eq!(parse(r#""bytes"#), WorkArguments::default());
    }

    #[test]
    fn texts_with_one_pattern_have_their_own_numbers() {
        let texts = [
            r#""queued":0,"blocks per SM":12.7407,"grid":[50,1,1],"est. achieved occupancy %": 8"#,
            r#""queued":0,"blocks per SM":3.062e1,"grid":[9,1,1],"est. achieved occupancy %": 100"#,
            r#""queued":0,"blocks per SM":0.0040,"grid":[50,1,1],"est. achieved occupancy %": 0"#,
            r#""stream":7,"bytes":19267584,"kind":"ab12cd34ef56","bytes":17"#,
            r#""stream":7,"bytes":"many""#,
        ];
        let mut part = Part::new();
        let name = part.strings.intern("gemm");
        let thread = part.add_thread(Thread {
            process: 0,
            native: 7,
            name,
            device: DeviceKind::Cuda,
        });
        for (index, text) in texts.iter().enumerate() {
            let event = Event::new(
                Category::Kernel,
                name,
                thread,
                Nanos(index as u64),
                Nanos(1),
            );
            part.add_event(event);
            let text = part.passthrough.texts.add(text).expect("texts are short");
            part.passthrough
                .set(PassthroughKind::Arguments, index, text);
        }
        let profile = part.into_profile().expect("ids are in range");
        let mut walk = ArgumentsWalk::new(&profile);
        for (index, text) in texts.iter().enumerate() {
            assert_eq!(walk.at(index), parse(text), "{text}");
        }
    }
}
