//! The events of a profile in the order in which a page draws them: track by track, by start.
//!
//! A track is a thread, a stream, or an additional lane of either for events that overlap without
//! nesting. Positions in this order are how findings, links and the critical path name events.

use mindprof_analyze::{Analysis, Lanes};
use mindprof_formats::shapes_text;
use mindprof_model::{
    Category, DeviceKind, Event, EventId, Flags, Input, InputsId, InputsIter, Nanos, Profile,
    StackId,
};
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::columns::Columns;
use super::markup::shown;
use super::stacks::Stacks;
use super::strings::Strings;

/// The largest number of events that a page draws. Beyond it the shortest ones are left out.
const MOST_EVENTS: usize = 5_000_000;

/// A position that no event has.
const NOWHERE: u32 = u32::MAX;

/// A row of the timeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Track {
    pub(super) name: String,
    /// Whether it is a stream of a device.
    pub(super) is_stream: bool,
    /// The process of the thread, or the device of the stream.
    pub(super) process: i64,
    /// The number of the thread or stream.
    pub(super) thread: i64,
    /// The position of its first event.
    pub(super) first: usize,
    /// The number of its events.
    pub(super) count: usize,
}

/// The events that a page draws.
#[derive(Debug)]
pub(super) struct DrawnEvents {
    pub(super) tracks: Vec<Track>,
    /// The events in the order of positions.
    order: Vec<EventId>,
    /// The position of each event of the profile.
    positions: Vec<u32>,
    /// The duration below which events were left out, and their number.
    pub(super) left_out: Option<(Nanos, usize)>,
}

impl DrawnEvents {
    /// Puts the events of a profile in order.
    pub(super) fn build(analysis: &Analysis) -> Self {
        Self::build_at_most(analysis, MOST_EVENTS)
    }

    fn build_at_most(analysis: &Analysis, most: usize) -> Self {
        let profile = analysis.profile();
        let lanes = Lanes::build(profile);
        let threads = profile.threads().len();
        let least = shortest_drawn(profile, most);
        let mut by_track: Vec<Vec<EventId>> = vec![Vec::new(); threads + lanes.overflow().len()];
        let mut left_out = 0;
        for (index, event) in profile.events().iter().enumerate() {
            let id = EventId::from_index(index);
            if event.flags.contains(Flags::HIDDEN) {
                continue;
            }
            if event.duration < least {
                left_out += 1;
                continue;
            }
            let track = match lanes.moved_to(id) {
                Some(lane) => threads + lane,
                None => event.thread.index(),
            };
            by_track[track].push(id);
        }
        let mut drawn = Self {
            tracks: Vec::new(),
            order: Vec::with_capacity(profile.events().len() - left_out),
            positions: vec![NOWHERE; profile.events().len()],
            left_out: (left_out > 0).then_some((least, left_out)),
        };
        let naming = Naming::of(profile);
        for (thread, lane, track) in track_order(profile, &lanes) {
            drawn.add_track(profile, naming, (thread, lane), &by_track[track]);
        }
        drawn
    }

    fn add_track(
        &mut self,
        profile: &Profile,
        naming: Naming,
        (thread, lane): (usize, usize),
        events: &[EventId],
    ) {
        if events.is_empty() {
            return;
        }
        let about = &profile.threads()[thread];
        let mut name = thread_name(profile, naming, thread);
        if lane > 0 {
            name = format!("{name}, events that overlap ({lane})");
        }
        self.tracks.push(Track {
            name: shown(&name).into_owned(),
            is_stream: about.device != DeviceKind::Cpu,
            process: about.process.cast_signed(),
            thread: about.native.cast_signed(),
            first: self.order.len(),
            count: events.len(),
        });
        for &id in events {
            self.positions[id.index()] = self.order.len() as u32;
            self.order.push(id);
        }
    }

    /// Returns the position of an event, or `None` if it is not drawn.
    pub(super) fn position(&self, id: EventId) -> Option<u32> {
        let position = self.positions[id.index()];
        (position != NOWHERE).then_some(position)
    }

    /// Returns the number of events that are drawn.
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// Iterates over the events in the order of positions.
    pub(super) fn ids(&self) -> impl Iterator<Item = EventId> {
        self.order.iter().copied()
    }

    /// Writes the columns of the events: start, duration, name, category, inputs and stack.
    pub(super) fn write(&self, analysis: &Analysis, columns: &mut Columns, strings: &mut Strings) {
        let profile = analysis.profile();
        let events = || self.ids().map(|id| profile.event(id));
        let collect = |value: &dyn Fn(&Event) -> u64| events().map(value).collect::<Vec<u64>>();
        self.write_starts(profile, columns);
        columns.push("duration", &collect(&|event| event.duration.0));
        columns.push("category", &collect(&|event| event.category as u64));
        let mut names: Vec<u32> = vec![NOWHERE; profile.strings().len()];
        let names: Vec<u64> = events()
            .map(|event| {
                let number = &mut names[event.name.index()];
                if *number == NOWHERE {
                    *number = strings.number(profile.strings().text(event.name));
                }
                u64::from(*number)
            })
            .collect();
        columns.push("name", &names);
        self.write_inputs(profile, columns, strings);
        self.write_stacks(analysis, columns, strings);
        self.write_own_times(analysis, columns);
        self.write_merged(analysis, columns);
    }

    /// Writes where events begin, relative to the event before on the track: to its start if they
    /// begin inside of it, otherwise to its end. Durations are written anyway, so that this leaves
    /// only the gaps, which are a quarter smaller than the differences of starts.
    ///
    /// ```text
    /// a  |-------------|
    /// b    |---|             gap from the start of a
    /// c          |--|        gap from the end of b
    /// ```
    fn write_starts(&self, profile: &Profile, columns: &mut Columns) {
        let (mut gaps, mut insides) = (Vec::new(), Vec::new());
        for track in &self.tracks {
            let ids = &self.order[track.first..track.first + track.count];
            let (mut start, mut end) = (Nanos::ZERO, Nanos::ZERO);
            for &id in ids {
                let event = profile.event(id);
                let is_inside = event.start < end;
                let before = if is_inside { start } else { end };
                gaps.push(event.start.saturating_sub(before).0);
                insides.push(u64::from(is_inside));
                (start, end) = (event.start, event.end());
            }
        }
        columns.push("gap", &gaps);
        columns.push("inside", &insides);
    }

    fn write_inputs(&self, profile: &Profile, columns: &mut Columns, strings: &mut Strings) {
        if profile.inputs().is_empty() {
            return;
        }
        let mut known: FxHashMap<InputsId, u32> = FxHashMap::default();
        let mut texts: Vec<(u64, u64)> = vec![(0, 0)];
        let numbers: Vec<u64> = self
            .ids()
            .map(|id| {
                let inputs = profile.event(id).inputs;
                if inputs == InputsId::NONE {
                    return 0;
                }
                let number = *known.entry(inputs).or_insert_with(|| {
                    let shapes = strings.number(&shapes_text(profile.inputs(), inputs));
                    let dtypes = strings.number(&dtypes_text(profile.inputs().inputs(inputs)));
                    texts.push((u64::from(shapes), u64::from(dtypes)));
                    texts.len() as u32 - 1
                });
                u64::from(number)
            })
            .collect();
        columns.push("inputs", &numbers);
        let (shapes, dtypes): (Vec<u64>, Vec<u64>) = texts.into_iter().unzip();
        columns.push("input_shapes", &shapes);
        columns.push("input_dtypes", &dtypes);
    }

    fn write_stacks(&self, analysis: &Analysis, columns: &mut Columns, strings: &mut Strings) {
        let profile = analysis.profile();
        if profile.stacks().is_empty() {
            return;
        }
        let mut stacks = Stacks::new(profile);
        let numbers: Vec<u64> = self
            .ids()
            .map(|id| match profile.event(id).category {
                // The calls around a call are drawn around it.
                Category::PythonFunction => 0,
                Category::Operator
                | Category::Annotation
                | Category::Runtime
                | Category::Kernel
                | Category::DeviceAnnotation
                | Category::Other => match analysis.stack(id) {
                    StackId::NONE => 0,
                    stack => u64::from(stacks.number(stack, strings)),
                },
            })
            .collect();
        columns.push("stack", &numbers);
        stacks.write(columns);
    }

    /// Writes the own times that differ from the duration without the events drawn directly inside,
    /// which is what the scripts compute for the others.
    ///
    /// ```text
    /// a  |-----------|      own: the duration of a without b and c
    /// b    |--|
    /// c         |--|
    /// ```
    fn write_own_times(&self, analysis: &Analysis, columns: &mut Columns) {
        let profile = analysis.profile();
        let (mut positions, mut times) = (Vec::new(), Vec::new());
        for track in &self.tracks {
            let ids = &self.order[track.first..track.first + track.count];
            let drawn = drawn_own_times(profile, ids);
            for (offset, (&id, drawn)) in ids.iter().zip(drawn).enumerate() {
                let own = analysis.tree().self_time(id).0;
                if own != drawn {
                    positions.push((track.first + offset) as u64);
                    times.push(own);
                }
            }
        }
        columns.push_differences("own_at", &positions);
        columns.push("own", &times);
    }

    /// Writes the positions of calls that tables count together with the call around them.
    fn write_merged(&self, analysis: &Analysis, columns: &mut Columns) {
        let merged = self.ids().enumerate();
        let merged = merged.filter(|&(_, id)| analysis.tree().is_merged(id));
        let positions: Vec<u64> = merged.map(|(position, _)| position as u64).collect();
        columns.push_differences("merged_at", &positions);
    }
}

/// Returns the duration of each event of a track without the events directly inside of it.
fn drawn_own_times(profile: &Profile, ids: &[EventId]) -> Vec<u64> {
    let mut own: Vec<u64> = Vec::with_capacity(ids.len());
    let mut open: Vec<(usize, u64)> = Vec::new();
    for (index, &id) in ids.iter().enumerate() {
        let event = profile.event(id);
        own.push(event.duration.0);
        while open.last().is_some_and(|(_, end)| *end <= event.start.0) {
            open.pop();
        }
        if let Some((parent, _)) = open.last() {
            own[*parent] = own[*parent].saturating_sub(event.duration.0);
        }
        if event.duration > Nanos::ZERO {
            open.push((index, event.end().0));
        }
    }
    own
}

/// Returns the shortest duration of events that are drawn.
fn shortest_drawn(profile: &Profile, most: usize) -> Nanos {
    let events = profile.events();
    if events.len() <= most {
        return Nanos::ZERO;
    }
    let mut durations: Vec<u64> = events.iter().map(|event| event.duration.0).collect();
    let left_out = durations.len() - most;
    let (_, longest, _) = durations.select_nth_unstable(left_out - 1);
    // Events as long as the longest one that is left out go with it.
    Nanos(*longest + 1)
}

/// Returns the tracks from top to bottom, each as its thread, its lane and its number: streams, which
/// are shallow and would get lost below, and then CPU threads, each followed by its other lanes.
fn track_order(profile: &Profile, lanes: &Lanes) -> Vec<(usize, usize, usize)> {
    let threads = profile.threads().len();
    let own = (0..threads).map(|thread| (thread, 0, thread));
    let moved = lanes.overflow().iter().enumerate();
    let moved = moved.map(|(index, lane)| (lane.thread.index(), lane.number, threads + index));
    let mut order: Vec<_> = own.chain(moved).collect();
    let is_stream = |thread: usize| profile.threads()[thread].device != DeviceKind::Cpu;
    order.sort_by_key(|&(thread, lane, _)| (!is_stream(thread), thread, lane));
    order
}

/// Whether the names of threads begin with their process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Naming {
    /// Not if there is only one.
    Thread,
    ProcessAndThread,
}

impl Naming {
    fn of(profile: &Profile) -> Self {
        let threads = profile.threads().iter();
        let mut on_cpu = threads.filter(|thread| thread.device == DeviceKind::Cpu);
        let first = on_cpu.next().map(|thread| thread.process);
        if on_cpu.any(|thread| Some(thread.process) != first) {
            Self::ProcessAndThread
        } else {
            Self::Thread
        }
    }
}

/// Returns the name of a thread or stream as the timeline shows it.
fn thread_name(profile: &Profile, naming: Naming, thread: usize) -> String {
    let about = &profile.threads()[thread];
    let name = profile.strings().text(about.name);
    let rank = profile.rank(mindprof_model::ThreadId::from_index(thread));
    let rank = rank.map_or_else(String::new, |rank| format!("rank {rank}, "));
    let process = match naming {
        Naming::ProcessAndThread => format!("process {}, ", about.process.cast_signed()),
        Naming::Thread => String::new(),
    };
    if about.device != DeviceKind::Cpu {
        let device = format!("{}:{}", profile.device_name(about.device), about.process);
        return match about.number() {
            Some(number) => format!("{rank}{device} stream {number}"),
            None => format!("{rank}{device} {name}"),
        };
    }
    let number = about.native as i64;
    match name {
        "" => format!("{rank}{process}thread {number}"),
        name if name.contains(&number.to_string()) => format!("{rank}{process}{name}"),
        name => format!("{rank}{process}{name} ({number})"),
    }
}

/// Returns the dtypes of inputs, such as `float32, int64`; other values have none.
fn dtypes_text(inputs: InputsIter<'_>) -> String {
    let mut names: Vec<&str> = Vec::new();
    for input in inputs {
        if let Input::Tensor { dtype, .. } = input {
            names.push(dtype.name());
        }
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use mindprof_model::Timeline;

    use super::*;

    #[test]
    fn threads_of_several_processes_are_named_with_them() {
        let one = Timeline::draw(|time| time.op("aten::mm", 30));
        assert_eq!(Naming::of(&one), Naming::Thread);
        assert!(!thread_name(&one, Naming::of(&one), 0).contains("process"));
        let name = thread_name(&one, Naming::ProcessAndThread, 0);
        assert!(name.starts_with("process "), "{name}");
    }

    #[test]
    fn positions_follow_tracks_and_starts() {
        let analysis = Analysis::build(Timeline::draw(|time| {
            time.scope("step", |time| {
                time.op("aten::mm", 30);
                time.op("aten::add", 10);
            });
        }));
        let drawn = DrawnEvents::build(&analysis);
        assert_eq!(drawn.tracks.len(), 1);
        assert_eq!((drawn.tracks[0].first, drawn.tracks[0].count), (0, 3));
        let positions = (0..3).map(|index| drawn.position(EventId::from_index(index)));
        assert_eq!(positions.collect::<Vec<_>>(), [Some(0), Some(1), Some(2)]);
    }

    /// ```text
    /// step |------------------------|
    /// mm     |------------|  add |--|
    /// ```
    #[test]
    fn the_shortest_events_are_left_out_and_counted() {
        let analysis = Analysis::build(Timeline::draw(|time| {
            time.scope("step", |time| {
                time.op("aten::mm", 30);
                time.op("aten::add", 10);
            });
        }));
        let drawn = DrawnEvents::build_at_most(&analysis, 2);
        assert_eq!(drawn.len(), 2);
        assert_eq!(drawn.left_out, Some((Nanos(11), 1)));
        assert_eq!(drawn.position(EventId::from_index(2)), None);
    }
}
