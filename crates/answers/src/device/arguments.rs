//! The arguments that a collector writes beside device work: launch geometry, bytes and rates.
//!
//! A profile has no columns for them. They are read from the texts that a trace reader keeps for
//! round-tripping, so a recording that never was a trace file has none.

use mindprof_model::{PassthroughKind, PassthroughWalk, Profile};

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

/// A walk over the arguments of events, in the order of the profile. It reuses one text, so that it
/// does not allocate for each event.
pub(crate) struct ArgumentsWalk<'a> {
    profile: &'a Profile,
    walk: PassthroughWalk<'a>,
    text: String,
}

impl<'a> ArgumentsWalk<'a> {
    pub(crate) fn new(profile: &'a Profile) -> Self {
        Self {
            profile,
            walk: profile.passthrough().walk(PassthroughKind::Arguments),
            text: String::new(),
        }
    }

    /// Returns the arguments of the event at `index`. Each call must pass a larger index than the
    /// one before.
    pub(crate) fn at(&mut self, index: usize) -> WorkArguments {
        let Some(id) = self.walk.at(index) else {
            return WorkArguments::default();
        };
        self.text.clear();
        self.profile.passthrough().texts.push_to(id, &mut self.text);
        parse(&self.text)
    }
}

/// Reads the numbers behind known keys: `"bytes":512,"memory bandwidth (GB/s)":0.3`.
fn parse(text: &str) -> WorkArguments {
    let mut arguments = WorkArguments::default();
    let mut rest = text;
    while let Some(begin) = rest.find('"') {
        let key_and_more = &rest[begin + 1..];
        let Some(end) = key_and_more.find('"') else {
            break;
        };
        let (key, after) = (&key_and_more[..end], &key_and_more[end + 1..]);
        rest = after;
        let Some(value) = after.trim_start().strip_prefix(':') else {
            continue;
        };
        match key {
            "blocks per SM" => arguments.blocks_per_sm = number(value),
            "est. achieved occupancy %" => arguments.occupancy = number(value),
            "bytes" => arguments.bytes = number(value).map(|bytes| bytes as u64),
            _ => {}
        }
    }
    arguments
}

/// Returns the number that a text begins with, if it is neither negative nor infinite.
fn number(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-');
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn numbers_that_make_no_sense_are_unknown() {
        assert_eq!(
            parse(r#""blocks per SM":-1,"bytes":"many","est. achieved occupancy %":inf"#),
            WorkArguments::default()
        );
        assert_eq!(parse(r#""bytes"#), WorkArguments::default());
    }
}
