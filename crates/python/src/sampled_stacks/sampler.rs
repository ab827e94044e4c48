//! The sampler: a thread that reads the frames of all threads at intervals.
//!
//! It takes no lock of the interpreter and stops nobody. A stack that cannot be read, because it
//! changes too much meanwhile, is tried again and then dropped and counted.

use std::mem;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mindprof_frames::{Activity, Checked, ForeignThread, Layout, RawFrame, threads};
use mindprof_model::WAITING_FRAME;
use mindprof_record::{Name, NameKind, SAMPLE_INTERVAL, add_sample, count_dropped_sample};

use rustc_hash::FxHashMap;

use super::places::{Named, Places};
use super::{calls_module, is_paused};

/// How often a stack is tried to be read.
const ATTEMPTS: usize = 3;

/// The most frames of a stack that are read; the outermost are left out.
const MOST_FRAMES: usize = 1024;

/// The sampler rests at least this many times as long as it works. If there are many threads, it
/// leaves out all but the main one at times, so that the shares of that one stay as exact.
const REST: u32 = 30;

/// A running sampler. It ends when it is dropped.
pub(super) struct Sampler {
    /// The process that has the thread; a forked child has none.
    process: u32,
    /// Closed to end the thread.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Sampler {
    /// Starts the sampler. Returns `None` if the system refuses a thread: operators then have
    /// stacks, and nothing is known of the time between them.
    pub(super) fn start(layout: &'static Layout) -> Option<Self> {
        let (end, ended) = mpsc::channel::<()>();
        let run = move || {
            let mut sampling = State::new(layout);
            let mut pause = SAMPLE_INTERVAL;
            let mut all_at = Instant::now();
            while ended.recv_timeout(sampling.jittered(pause)) == Err(RecvTimeoutError::Timeout) {
                let begin = Instant::now();
                if begin >= all_at {
                    sampling.sample_threads(|_| true);
                    all_at = Instant::now() + begin.elapsed() * REST;
                } else {
                    let main = u64::from(std::process::id());
                    sampling.sample_threads(|native| native == main);
                    pause = SAMPLE_INTERVAL.max(begin.elapsed() * REST);
                }
            }
        };
        let thread = thread::Builder::new().name("mindprof-sampler".to_owned());
        Some(Self {
            process: std::process::id(),
            end: Some(end),
            thread: Some(thread.spawn(run).ok()?),
        })
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            // Ending or joining it would touch the state of a thread that does not exist here.
            mem::forget((self.end.take(), self.thread.take()));
            return;
        }
        self.end = None;
        if let Some(thread) = self.thread.take() {
            // It fails only if the sampler panicked, and the recording holds what it saw until then.
            let _ = thread.join();
        }
    }
}

fn waiting_frame() -> Name {
    Name::intern(WAITING_FRAME, NameKind::Function)
}

struct State {
    layout: &'static Layout,
    /// The remembered facts of each thread, by the address of its state.
    known: FxHashMap<u64, ForeignThread>,
    /// The activity of each thread, by the number that the kernel has for it.
    activities: FxHashMap<u64, Activity>,
    frames: Vec<RawFrame>,
    names: Vec<Name>,
    places: Places,
    /// The state of a generator of pseudo-random numbers.
    random: u64,
}

impl State {
    fn new(layout: &'static Layout) -> Self {
        Self {
            layout,
            known: FxHashMap::default(),
            activities: FxHashMap::default(),
            frames: Vec::new(),
            names: Vec::new(),
            places: Places::default(),
            random: 0x9e37_79b9_7f4a_7c15,
        }
    }

    /// Returns a time between half and one and a half of `pause`, so that a program that repeats
    /// itself is not always met at the same place.
    fn jittered(&mut self, pause: Duration) -> Duration {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let share = (self.random >> 40) as u32;
        pause / 2 + pause.mul_f64(f64::from(share) / f64::from(1 << 24))
    }

    fn sample_threads(&mut self, is_wanted: impl Fn(u64) -> bool) {
        let Some(found) = threads(&Checked, &self.layout.threads) else {
            count_dropped_sample();
            return;
        };
        if self.known.len() > 2 * found.len() + 64 {
            self.known.clear();
            self.activities.clear();
        }
        let is_taken = |&(_, native): &(u64, u64)| is_wanted(native) && !is_paused(native);
        for (state, native) in found.into_iter().filter(is_taken) {
            match self.sample(state) {
                Some(()) if self.names.is_empty() => {}
                Some(()) => {
                    let frames = self.names.iter().rev().copied();
                    let activity = self.activities.entry(native).or_default();
                    let waiting = activity.is_waiting(native).then(waiting_frame);
                    add_sample(native, frames.chain(waiting));
                }
                None => count_dropped_sample(),
            }
        }
    }

    /// Fills `names` with the frames of a thread, innermost first. Returns `None` if they cannot be
    /// read.
    fn sample(&mut self, state: u64) -> Option<()> {
        for _ in 0..ATTEMPTS {
            let known = self.known.entry(state).or_default();
            let layout = &self.layout.frames;
            let found = known.walk(layout, state, calls_module, MOST_FRAMES, &mut self.frames);
            if found.and_then(|()| self.name_frames()).is_some() {
                return Some(());
            }
        }
        None
    }

    fn name_frames(&mut self) -> Option<()> {
        self.names.clear();
        for frame in &self.frames {
            match self.places.name(self.layout, &Checked, frame)? {
                Named::As(name) => self.names.push(name),
                Named::Hidden => {}
            }
        }
        Some(())
    }
}
