//! The columns that events alone have: when and where they ran, and what ties them together.

use mindprof_analyze::{Analysis, Item, event_number, microseconds};
use mindprof_answers::Steps;
use mindprof_model::{Category, DeviceKind, EventId, ThreadId, activity_name};

use super::texts::TextColumn;
use super::{Column, Values, column};
use crate::place::Place;

/// The columns while they are filled.
pub(super) struct EventColumns<'a> {
    analysis: &'a Analysis,
    step_numbers: Steps,
    places: Vec<Place<'a>>,
    categories: OptionalTexts,
    threads: Vec<i64>,
    starts: Vec<f64>,
    ends: Vec<f64>,
    sequences: Vec<i64>,
    steps: Vec<i64>,
    correlations: Vec<Option<i64>>,
    externals: Vec<Option<i64>>,
    threads_of: Vec<ThreadId>,
}

impl<'a> EventColumns<'a> {
    pub(super) fn new(analysis: &'a Analysis) -> Self {
        Self {
            analysis,
            step_numbers: Steps::build(analysis.profile()),
            places: Place::all(analysis.profile()),
            categories: OptionalTexts::default(),
            threads: Vec::new(),
            starts: Vec::new(),
            ends: Vec::new(),
            sequences: Vec::new(),
            steps: Vec::new(),
            correlations: Vec::new(),
            externals: Vec::new(),
            threads_of: Vec::new(),
        }
    }

    /// Adds an item.
    pub(super) fn add(&mut self, item: Item) {
        let (analysis, profile) = (self.analysis, self.analysis.profile());
        let start = match item {
            Item::Event(id) => {
                let event = profile.event(id);
                self.threads.push(i64::from(analysis.thread_number(id)));
                self.sequences.push(event.sequence().map_or(-1, i64::from));
                self.ends.push(microseconds(event.end()));
                self.threads_of.push(event.thread);
                event.start
            }
            Item::Memory(number) => {
                let record = profile.memory().at(number as usize);
                let thread = analysis.memory_thread_number(&record);
                self.threads.push(i64::from(thread));
                self.sequences.push(-1);
                self.ends.push(microseconds(record.time));
                self.threads_of.push(record.thread);
                record.time
            }
        };
        self.starts.push(microseconds(start));
        self.steps.push(self.step_numbers.at(start) as i64);
        // The moment at which memory was not to be had is a memory record that a trace writes as an
        // event.
        let event = match item {
            Item::Event(id) if !analysis.is_out_of_memory(id) => Some(id),
            Item::Event(_) | Item::Memory(_) => None,
        };
        self.add_ties(event);
    }

    fn add_ties(&mut self, event: Option<EventId>) {
        let profile = self.analysis.profile();
        let known = |number: u32| (number != 0).then_some(i64::from(number));
        let Some(id) = event else {
            self.categories.add(None);
            self.correlations.push(None);
            self.externals.push(None);
            return;
        };
        let event = profile.event(id);
        let name = activity_name(
            event.category,
            profile.name(event),
            self.analysis.accelerator(),
        );
        self.categories.add(Some(name));
        let links = profile.links(id).unwrap_or_default();
        self.correlations.push(known(links.correlation));
        self.externals.push(known(external_id(self.analysis, id)));
    }

    /// Returns the columns, in their order.
    pub(super) fn finish(self) -> Vec<Column> {
        let numbers = |of: fn(&Place<'_>) -> Option<i64>| {
            let places = self.threads_of.iter().map(|id| &self.places[id.index()]);
            places.map(of).collect::<Vec<_>>()
        };
        let mut names = OptionalTexts::default();
        for thread in &self.threads_of {
            names.add(self.places[thread.index()].thread_name);
        }
        vec![
            column("thread", Values::Int(self.threads)),
            column("start_us", Values::Float(self.starts)),
            column("end_us", Values::Float(self.ends)),
            column("sequence_nr", Values::Int(self.sequences)),
            self.categories.finish("category"),
            optional("process", &numbers(|place| place.process)),
            optional("thread_id", &numbers(|place| place.thread_id)),
            names.finish("thread_name"),
            optional("device_index", &numbers(|place| place.device_index)),
            optional("stream", &numbers(|place| place.stream)),
            optional("correlation", &self.correlations),
            optional("external_id", &self.externals),
            column("step", Values::Int(self.steps)),
            optional("rank", &numbers(|place| place.rank)),
        ]
    }
}

/// Returns the number of the scope that an event is, or that it was done for; zero for none.
pub fn external_id(analysis: &Analysis, id: EventId) -> u32 {
    let event = analysis.profile().event(id);
    let is_host = analysis.device(id) == DeviceKind::Cpu;
    if is_host && event.category != Category::Runtime {
        return event_number(analysis, id);
    }
    analysis.profile().links(id).unwrap_or_default().external
}

fn optional(name: &str, values: &[Option<i64>]) -> Column {
    let known: Vec<bool> = values.iter().map(Option::is_some).collect();
    let values = values.iter().map(|value| value.unwrap_or_default());
    Column {
        known: Some(known),
        ..column(name, Values::Int(values.collect()))
    }
}

/// A column of texts that some items do not have.
#[derive(Default)]
struct OptionalTexts {
    texts: TextColumn,
    known: Vec<bool>,
}

impl OptionalTexts {
    fn add(&mut self, text: Option<&str>) {
        self.texts.add(text.unwrap_or_default());
        self.known.push(text.is_some());
    }

    fn finish(self, name: &str) -> Column {
        Column {
            known: Some(self.known),
            ..column(name, self.texts.finish())
        }
    }
}
