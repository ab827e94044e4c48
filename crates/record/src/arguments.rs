//! The arguments of scopes beside their inputs: a text, and the numbers in it.
//!
//! A framework sets them while a scope is open. The text is a name of the recording, which scopes
//! share; the numbers are records of the thread's buffer, so that a long recording forgets them
//! together with their scopes. They become passthrough arguments of the events.

use mindprof_model::{Part, PassthroughKind};
use rustc_hash::FxHashMap;

use crate::capture::ThreadCapture;
use crate::gate::Gate;
use crate::local;
use crate::name::{self, Name, NameKind};
use crate::raw::Record;

/// Stands for the next number in the text of arguments. JSON contains no such character.
pub const ARGUMENT_NUMBER: char = '\0';

/// Records arguments of the scope that began at `start` in this recording.
pub(crate) fn set(gate: Gate, start: u64, text: &str, numbers: &[u64]) {
    let name = Name::of_recording(text, NameKind::Annotation, gate.epoch());
    if name.is_refused() {
        return;
    }
    let mut named = name.raw();
    // A text without numbers needs a record too.
    for place in (0..numbers.len().max(1)).step_by(2) {
        let number = |place: usize| numbers.get(place).copied().unwrap_or(0);
        let pair = [number(place), number(place + 1)];
        local::push_side_record(gate, Record::arguments(start, named, pair));
        named = 0;
    }
}

/// The arguments of a thread's scopes, by the starts of the scopes.
#[derive(Default)]
pub(crate) struct Arguments(FxHashMap<u64, RawArguments>);

/// The name of a text, zero if its record is lost, and the numbers in pairs: the last may be none.
#[derive(Default)]
struct RawArguments {
    name: u32,
    numbers: Vec<u64>,
}

impl Arguments {
    pub(crate) fn of_thread(thread: &ThreadCapture) -> Self {
        let mut found: FxHashMap<u64, RawArguments> = FxHashMap::default();
        let records = thread.records();
        for record in records.filter(|record| record.name == Record::ARGUMENTS) {
            let arguments = found.entry(record.start).or_default();
            if record.inputs != 0 {
                arguments.name = record.inputs;
                arguments.numbers.clear();
            }
            arguments.numbers.extend([record.end, record.third()]);
        }
        Self(found)
    }

    /// Adds the arguments of the scopes that come in this order, the first of which is the part's
    /// event `first`.
    pub(crate) fn add_to<'a>(
        &self,
        scopes: impl Iterator<Item = &'a Record>,
        first: usize,
        part: &mut Part,
    ) {
        let passthrough = &mut part.passthrough;
        for (index, scope) in (first..).zip(scopes) {
            let text = self.0.get(&scope.start).and_then(RawArguments::text);
            if let Some(text) = text.and_then(|text| passthrough.texts.add(&text)) {
                passthrough.set(PassthroughKind::Arguments, index, text);
            }
        }
    }
}

impl RawArguments {
    /// Returns the whole text, or `None` if a part of it is lost.
    fn text(&self) -> Option<String> {
        let table = name::table();
        let (text, _) = table.get(self.name)?;
        let mut pieces = text.split(ARGUMENT_NUMBER);
        let mut whole = pieces.next()?.to_owned();
        let mut numbers = self.numbers.iter();
        for piece in pieces {
            whole.push_str(&numbers.next()?.to_string());
            whole.push_str(piece);
        }
        Some(whole)
    }
}
