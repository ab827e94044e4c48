//! Which parts of a recording this engine made itself, as opposed to another collector.
//!
//! The cost of recording an event depends on it. It is an entry of the profile's
//! metadata, so that it survives a trace file.

use crate::{Metadata, Nanos};

const KEY: &str = "mindprof_recorder";

/// The key of the time that recording a scope took on the machine, in nanoseconds.
const PACE_KEY: &str = "mindprof_recorder_pace_ns";

/// How stacks were recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordedStacks {
    /// Not at all.
    #[default]
    None,
    /// By walking the frames of the thread.
    Sampled,
    /// By following every Python call.
    Traced,
}

/// The data that this engine's recorder noted of each operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recorder {
    /// Inputs: shapes, types and values.
    pub inputs: bool,
    /// Memory that is allocated and freed.
    pub memory: bool,
    /// Stacks.
    pub stacks: RecordedStacks,
    /// The time that a fixed loop took per scope on the machine and in the build that recorded.
    /// `None` in profiles that do not tell.
    pub pace: Option<Nanos>,
}

/// The names of the parts.
const INPUTS: &str = "inputs";
const MEMORY: &str = "memory";
const SAMPLED: &str = "sampled_stacks";
const TRACED: &str = "traced_stacks";

impl Recorder {
    /// Writes it to the metadata of a profile.
    pub fn write(self, metadata: &mut Metadata) {
        let stacks = match self.stacks {
            RecordedStacks::None => None,
            RecordedStacks::Sampled => Some(SAMPLED),
            RecordedStacks::Traced => Some(TRACED),
        };
        let parts = [
            self.inputs.then_some(INPUTS),
            self.memory.then_some(MEMORY),
            stacks,
        ];
        let parts = parts.into_iter().flatten();
        let parts: Vec<String> = parts.map(|part| format!("\"{part}\"")).collect();
        metadata.set(KEY, format!("[{}]", parts.join(",")));
        metadata.remove(PACE_KEY);
        if let Some(pace) = self.pace {
            metadata.set(PACE_KEY, pace.0.to_string());
        }
    }

    /// Notes in the metadata of a profile that another collector recorded the operators.
    pub fn forget(metadata: &mut Metadata) {
        metadata.remove(KEY);
        metadata.remove(PACE_KEY);
    }

    /// Reads it from metadata. Returns `None` if another collector recorded the operators.
    pub fn read(metadata: &Metadata) -> Option<Self> {
        let text = metadata.get(KEY)?;
        let has = |part: &str| text.contains(&format!("\"{part}\""));
        Some(Self {
            inputs: has(INPUTS),
            memory: has(MEMORY),
            stacks: if has(SAMPLED) {
                RecordedStacks::Sampled
            } else if has(TRACED) {
                RecordedStacks::Traced
            } else {
                RecordedStacks::None
            },
            pace: (metadata.get(PACE_KEY))
                .and_then(|pace| pace.trim().parse().ok())
                .filter(|&pace| pace > 0)
                .map(Nanos),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_survives_the_metadata() {
        let mut metadata = Metadata::default();
        assert_eq!(Recorder::read(&metadata), None);
        let recorder = Recorder {
            memory: true,
            stacks: RecordedStacks::Sampled,
            pace: Some(Nanos(57)),
            ..Recorder::default()
        };
        recorder.write(&mut metadata);
        assert_eq!(Recorder::read(&metadata), Some(recorder));
        Recorder::default().write(&mut metadata);
        assert_eq!(Recorder::read(&metadata), Some(Recorder::default()));
        recorder.write(&mut metadata);
        Recorder::forget(&mut metadata);
        assert_eq!(metadata, Metadata::default());
    }

    #[test]
    fn a_pace_that_is_no_time_is_ignored() {
        let mut metadata = Metadata::default();
        Recorder::default().write(&mut metadata);
        for text in ["0", "-3", "\"fast\"", ""] {
            metadata.set(PACE_KEY, text);
            assert_eq!(Recorder::read(&metadata), Some(Recorder::default()));
        }
    }
}
