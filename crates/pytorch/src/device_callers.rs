//! Finds the threads that made the runtime calls of a collection of devices.
//!
//! We name a thread by its handle and CUPTI by the low half of it, which is used again once the
//! thread has ended. Kineto replaces it by the system's id of a thread that had the handle when Kineto first saw
//! one, if it ever did. Either number thus stands for a handle, and the threads of the window that
//! have it, one after the other, made the calls.

use std::cell::OnceCell;
use std::sync::{Mutex, PoisonError};

use mindprof_model::{Category, DeviceKind, Event, Part, Thread, ThreadId};
use mindprof_record::{ThreadHandle, WindowEvents};
use rustc_hash::FxHashMap;

/// The threads on which Kineto collected for us before, by the system's ids.
static NOTED: Mutex<Vec<(u64, ThreadHandle)>> = Mutex::new(Vec::new());

/// Notes that Kineto is collecting on the calling thread, whose id it will report for its handle.
pub fn note_collecting_thread(native: u64) {
    let mut noted = NOTED.lock().unwrap_or_else(PoisonError::into_inner);
    noted.push((native, ThreadHandle::current()));
}

/// The meaning of the numbers of threads that made runtime calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallerNumbers {
    /// Handles, or their low halves, as CUPTI writes them.
    Handles,
    /// Those, or what Kineto put in their place.
    Kineto,
}

/// Moves the runtime calls of devices to the threads of the window that made them.
pub(crate) fn move_calls(window: &WindowEvents, devices: &mut Part, numbers: CallerNumbers) {
    let callers = Callers::of(window);
    let threads: Vec<Thread> = devices.threads().to_vec();
    let lives: Vec<Vec<Life>> = (0..threads.len())
        .map(|thread| callers.lives(devices, ThreadId::from_index(thread), numbers))
        .collect();
    let moved: Vec<ThreadId> = window
        .part
        .threads()
        .iter()
        .map(|thread| {
            let name = window.part.strings.text(thread.name);
            let name = devices.strings.intern(name);
            devices.add_thread(Thread { name, ..*thread })
        })
        .collect();
    let zero = devices.reference_unix_ns;
    devices.move_events(|event| {
        let lives = &lives[event.thread.index()];
        nearest(lives, zero + event.start.0).map(|life| moved[life.thread])
    });
}

/// The time from the first event of a thread to its last, in nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug)]
struct Life {
    start: u64,
    end: u64,
    /// The index among the window's threads.
    thread: usize,
}

/// Returns the life that is nearest to a time. Threads have a handle one after the other, so only
/// two can be.
///
/// ```text
/// handle 7    ──thread 3──      ───thread 5───
/// call                      ^ thread 5
/// ```
fn nearest(lives: &[Life], time: u64) -> Option<&Life> {
    let next = lives.partition_point(|life| life.start <= time);
    let near = &lives[next.saturating_sub(1)..lives.len().min(next + 1)];
    near.iter().min_by_key(|life| {
        let after = life.start.saturating_sub(time);
        after.max(time.saturating_sub(life.end))
    })
}

/// The threads of a window, by their handles.
struct Callers<'a> {
    window: &'a WindowEvents,
    /// The lives of the threads with each handle, in the order of their starts.
    by_handle: Vec<(ThreadHandle, Vec<Life>)>,
    /// See [`Callers::operators`].
    operators: OnceCell<Vec<Spans>>,
}

impl<'a> Callers<'a> {
    fn of(window: &'a WindowEvents) -> Self {
        let part = &window.part;
        let zero = part.reference_unix_ns;
        let mut lives: Vec<Option<Life>> = vec![None; part.threads().len()];
        for event in part.events() {
            let thread = event.thread.index();
            let (start, end) = (zero + event.start.0, zero + event.end().0);
            let life = lives[thread].get_or_insert(Life { start, end, thread });
            life.start = life.start.min(start);
            life.end = life.end.max(end);
        }
        let mut places: FxHashMap<ThreadHandle, usize> = FxHashMap::default();
        let mut by_handle: Vec<(ThreadHandle, Vec<Life>)> = Vec::new();
        for (life, handle) in lives.into_iter().zip(&window.handles) {
            let place = *places.entry(*handle).or_insert_with(|| {
                by_handle.push((*handle, Vec::new()));
                by_handle.len() - 1
            });
            by_handle[place].1.extend(life);
        }
        for (_, lives) in &mut by_handle {
            lives.sort_unstable_by_key(|life| life.start);
        }
        Self {
            window,
            by_handle,
            operators: OnceCell::new(),
        }
    }

    /// Returns the lives of the threads that a thread of the collection stands for: an empty list for
    /// a stream, and for a number that nothing explains.
    fn lives(&self, devices: &Part, thread: ThreadId, numbers: CallerNumbers) -> Vec<Life> {
        let Thread { native, device, .. } = devices.threads()[thread.index()];
        // The collector's own work has the number zero.
        if device != DeviceKind::Cpu || native == 0 {
            return Vec::new();
        }
        let guess = || {
            let known = self.with_id(native);
            known.or_else(|| self.around_calls(devices, thread))
        };
        let found = match numbers {
            CallerNumbers::Handles => self.with_number(native),
            CallerNumbers::Kineto => self.with_number(native).or_else(guess),
        };
        found.map_or_else(Vec::new, <[Life]>::to_vec)
    }

    fn with_number(&self, number: u64) -> Option<&[Life]> {
        self.find(|handle| handle.is_meant_by(number))
    }

    /// Returns the threads that have the handle of the thread with this id, now or earlier.
    fn with_id(&self, native: u64) -> Option<&[Life]> {
        let threads = self.window.part.threads().iter();
        let mut known = threads.zip(&self.window.handles);
        let known = known.find(|(thread, _)| thread.native == native);
        let handle = known.map(|(_, handle)| *handle).or_else(|| {
            let noted = NOTED.lock().unwrap_or_else(PoisonError::into_inner);
            let noted = noted.iter().rev().find(|(id, _)| *id == native);
            noted.map(|(_, handle)| *handle)
        })?;
        self.find(|other| other == handle)
    }

    fn find(&self, is_meant: impl Fn(ThreadHandle) -> bool) -> Option<&[Life]> {
        let found = self.by_handle.iter().find(|(handle, _)| is_meant(*handle));
        found.map(|(_, lives)| lives.as_slice())
    }

    /// Returns the threads whose operators are around the calls, if they are clearly so for one
    /// handle only. Another profiler has collected on a thread that is gone.
    ///
    /// ```text
    /// handle 7   |---|   |---|     |---|
    /// handle 8      |---|     |---|
    /// calls        ^      ^          ^       of handle 7
    /// ```
    fn around_calls(&self, devices: &Part, thread: ThreadId) -> Option<&[Life]> {
        const MOST_CALLS: usize = 256;
        let zero = devices.reference_unix_ns;
        let is_call =
            |event: &&Event| event.thread == thread && event.category == Category::Runtime;
        let calls: Vec<u64> = devices
            .events()
            .iter()
            .filter(is_call)
            .take(MOST_CALLS)
            .map(|event| zero + event.start.0)
            .collect();
        let counts = self
            .operators()
            .iter()
            .enumerate()
            .map(|(place, operators)| {
                let inside = calls.iter().filter(|time| operators.contain(**time));
                (inside.count(), place)
            });
        let mut counts: Vec<(usize, usize)> = counts.collect();
        counts.sort_unstable();
        let (best, place) = counts.pop()?;
        let second = counts.last().map_or(0, |(count, _)| *count);
        // Half of the calls are inside of operators, and a quarter more than for another handle.
        let is_clear = 2 * best >= calls.len() && 4 * best > 5 * second && best > 0;
        is_clear.then(|| self.by_handle[place].1.as_slice())
    }

    /// Returns the operators of the threads with each handle.
    fn operators(&self) -> &[Spans] {
        self.operators.get_or_init(|| {
            let part = &self.window.part;
            let mut places: Vec<Option<usize>> = vec![None; part.threads().len()];
            for (place, (_, lives)) in self.by_handle.iter().enumerate() {
                for life in lives {
                    places[life.thread] = Some(place);
                }
            }
            let mut spans = vec![Vec::new(); self.by_handle.len()];
            let operators = part.events().iter();
            for event in operators.filter(|event| event.category == Category::Operator) {
                if let Some(place) = places[event.thread.index()] {
                    let zero = part.reference_unix_ns;
                    spans[place].push((zero + event.start.0, zero + event.end().0));
                }
            }
            spans.into_iter().map(Spans::new).collect()
        })
    }
}

/// Intervals in the order of their starts, each with the last end so far.
struct Spans(Vec<(u64, u64)>);

impl Spans {
    fn new(mut spans: Vec<(u64, u64)>) -> Self {
        spans.sort_unstable();
        let mut last = 0;
        for (_, end) in &mut spans {
            last = last.max(*end);
            *end = last;
        }
        Self(spans)
    }

    fn contain(&self, time: u64) -> bool {
        let next = self.0.partition_point(|(start, _)| *start <= time);
        next > 0 && time < self.0[next - 1].1
    }
}

#[cfg(test)]
mod tests {
    use mindprof_model::{Links, Nanos, StringTable};

    use super::*;

    type Row = (Category, u64, std::ops::Range<u64>);

    /// A part with events on the CPU threads of these ids.
    fn part(rows: &[Row]) -> Part {
        let mut part = Part::new();
        for (category, native, times) in rows {
            let known = part.threads().iter().position(|it| it.native == *native);
            let thread = known.map(ThreadId::from_index);
            let thread = thread.unwrap_or_else(|| {
                part.add_thread(Thread {
                    process: 1,
                    native: *native,
                    name: StringTable::EMPTY,
                    device: DeviceKind::Cpu,
                })
            });
            let name = part.strings.intern("name");
            let (start, duration) = (Nanos(times.start), Nanos(times.end - times.start));
            let event = Event::new(*category, name, thread, start, duration);
            part.add_linked_event(event, Links::new(0, 1));
        }
        part
    }

    fn window(rows: &[Row], handles: &[u64]) -> WindowEvents {
        WindowEvents {
            part: part(rows),
            handles: handles
                .iter()
                .map(|&raw| ThreadHandle::from_raw(raw))
                .collect(),
        }
    }

    fn callers(window: &WindowEvents, calls: &[(u64, u64)]) -> Vec<u64> {
        callers_by(window, calls, CallerNumbers::Kineto)
    }

    fn callers_by(window: &WindowEvents, calls: &[(u64, u64)], numbers: CallerNumbers) -> Vec<u64> {
        let row = |&(number, time): &(u64, u64)| (Category::Runtime, number, time..time + 1);
        let mut devices = part(&calls.iter().map(row).collect::<Vec<_>>());
        move_calls(window, &mut devices, numbers);
        devices.check().unwrap();
        let events = devices.events().iter();
        let callers = events.map(|event| devices.threads()[event.thread.index()].native);
        callers.collect()
    }

    const OPERATOR: Category = Category::Operator;
    /// A handle of 64 bits, and how CUPTI and Kineto cut it and extend its sign.
    const HANDLE: u64 = 0x7f11_b420_8040;
    const CUT: u64 = 0xffff_ffff_b420_8040;

    // handle     thread 50 |100───200|       thread 51 |400───500|
    // calls                     ^150      ^250     ^380              ^600
    #[test]
    fn a_call_is_of_the_thread_that_was_nearest_with_its_handle() {
        let window = window(
            &[(OPERATOR, 50, 100..200), (OPERATOR, 51, 400..500)],
            &[HANDLE, HANDLE],
        );
        let times = [150, 250, 380, 600];
        assert_eq!(
            callers(&window, &times.map(|time| (CUT, time))),
            [50, 50, 51, 51]
        );
        // The id of the first thread stands for the handle too.
        assert_eq!(
            callers(&window, &times.map(|time| (50, time))),
            [50, 50, 51, 51]
        );
    }

    #[test]
    fn threads_whose_handles_have_the_same_low_half_are_told_apart_by_whole_handles() {
        let other = HANDLE + (1 << 32);
        let rows = [(OPERATOR, 50, 100..200), (OPERATOR, 51, 100..200)];
        let window = window(&rows, &[other, HANDLE]);
        let calls = [(HANDLE, 150), (other, 160)];
        let found = callers_by(&window, &calls, CallerNumbers::Handles);
        assert_eq!(found, [51, 50]);
    }

    #[test]
    fn an_id_of_a_thread_that_collected_before_stands_for_its_handle() {
        let mine = ThreadHandle::current();
        let mut window = window(&[(OPERATOR, 50, 100..200)], &[0]);
        window.handles = vec![mine];
        assert_eq!(callers(&window, &[(77, 300)]), [77]);
        note_collecting_thread(77);
        assert_eq!(callers(&window, &[(77, 300)]), [50]);
    }

    // thread 50   |100─110|  |120─130|           |140─150|
    // thread 51       |105───115|   |125───────────────145|
    // number 9       ^104       ^121   ^128          ^146
    #[test]
    fn calls_of_an_unknown_number_are_of_the_threads_with_operators_around_them() {
        let rows = [
            (OPERATOR, 50, 100..110),
            (OPERATOR, 51, 105..115),
            (OPERATOR, 50, 120..130),
            (OPERATOR, 51, 125..145),
            (OPERATOR, 50, 140..150),
        ];
        let window = window(&rows, &[1, 2]);
        let calls = [104, 121, 128, 146].map(|time| (9, time));
        assert_eq!(callers(&window, &calls), [50; 4]);
        // As likely of either thread, or of none.
        assert_eq!(callers(&window, &[(9, 108), (9, 128)]), [9, 9]);
        assert_eq!(callers(&window, &[(9, 10), (9, 200)]), [9, 9]);
        // A handle that no thread of the window has is that of a thread without operators.
        let of_handles = callers_by(&window, &calls, CallerNumbers::Handles);
        assert_eq!(of_handles, [9; 4]);
    }
}
