//! Whether a thread runs or waits, as the kernel tells it.

#![cfg_attr(
    target_os = "linux",
    expect(unsafe_code, reason = "the kernel is asked for the time of a thread")
)]

use std::fs::File;
use std::io::Read;
use std::time::{Duration, Instant};

/// A thread that gives up the processor sooner than this did not use up its turn: it went to wait.
const SHORT_TURN: Duration = Duration::from_micros(200);

/// A thread that waits runs for less than this part of the time.
const LITTLE: u32 = 10;

/// The activity of a thread of this process, as far as it was seen.
///
/// A thread whose sleep is over must often wait for a processor, on a busy machine for longer than
/// it slept. The kernel calls it runnable although it has not run since. So such a thread still
/// waits if it ran for next to nothing since it was last seen, and always left the processor soon.
#[derive(Clone, Copy, Debug, Default)]
pub struct Activity {
    last: Option<Seen>,
    was_waiting: bool,
}

/// How much a thread has run until a moment.
#[derive(Clone, Copy, Debug)]
struct Seen {
    at: Instant,
    ran: Duration,
    /// How often it got a processor.
    turns: u32,
}

impl Activity {
    /// Returns whether a thread of this process sleeps, or waits for a lock, a file or another
    /// process. The kernel's number of the thread tells which one, and is the same at each call.
    /// Returns `false` if the kernel does not say.
    pub fn is_waiting(&mut self, thread: u64) -> bool {
        let is_asleep = is_asleep(thread);
        self.meet(is_asleep, Seen::now(thread))
    }

    fn meet(&mut self, is_asleep: bool, now: Option<Seen>) -> bool {
        let has_waited = match (self.last, now) {
            (Some(last), Some(now)) => {
                let ran = now.ran.saturating_sub(last.ran);
                let turns = now.turns.saturating_sub(last.turns);
                if turns == 0 && ran.is_zero() {
                    self.was_waiting
                } else {
                    ran < SHORT_TURN.saturating_mul(turns)
                        && ran.saturating_mul(LITTLE) < now.at.saturating_duration_since(last.at)
                }
            }
            (None, _) | (_, None) => false,
        };
        self.last = now;
        self.was_waiting = is_asleep || has_waited;
        self.was_waiting
    }
}

impl Seen {
    fn now(thread: u64) -> Option<Self> {
        let mut text = [0; 128];
        let length = read(thread, "schedstat", &mut text)?;
        // The time on a processor, the time in its queue, and the number of turns.
        let text = std::str::from_utf8(&text[..length]).ok()?;
        let turns: u64 = text.split_whitespace().nth(2)?.parse().ok()?;
        Some(Self {
            at: Instant::now(),
            ran: time_of(thread)?,
            turns: turns as u32,
        })
    }
}

/// Returns how long a thread has run, the turn that it is in included, which `schedstat` may lack.
#[cfg(target_os = "linux")]
fn time_of(thread: u64) -> Option<Duration> {
    // The kernel's encoding of the clock of a thread: `CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED`.
    let clock = (!libc::clockid_t::try_from(thread).ok()? << 3) | 6;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes to `time`, which is ours, and refuses clocks that do not exist.
    let failed = unsafe { libc::clock_gettime(clock, &raw mut time) } != 0;
    if failed {
        return None;
    }
    let seconds = u64::try_from(time.tv_sec).ok()?;
    Some(Duration::new(seconds, u32::try_from(time.tv_nsec).ok()?))
}

#[cfg(not(target_os = "linux"))]
fn time_of(_: u64) -> Option<Duration> {
    None
}

/// Reads a file of the kernel about a thread of this process, and returns its length.
fn read(thread: u64, name: &str, text: &mut [u8]) -> Option<usize> {
    // The file is opened for each question: a program may close descriptors that it did not open.
    let mut file = File::open(format!("/proc/self/task/{thread}/{name}")).ok()?;
    file.read(text).ok()
}

fn is_asleep(thread: u64) -> bool {
    let mut text = [0; 128];
    let length = read(thread, "stat", &mut text);
    length.is_some_and(|length| is_waiting_state(&text[..length]))
}

/// The state follows the name of the thread, which may itself contain parentheses.
fn is_waiting_state(text: &[u8]) -> bool {
    let name_end = text.iter().rposition(|&byte| byte == b')');
    let state = name_end.and_then(|end| text.get(end + 2));
    matches!(state, Some(b'S' | b'D'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_follows_the_name() {
        assert!(is_waiting_state(b"12 (python) S 1 12 12"));
        assert!(is_waiting_state(b"12 (a) R (b) D 1 12 12"));
        assert!(!is_waiting_state(b"12 (pool) S) R 1 12 12"));
        assert!(!is_waiting_state(b"12 (python)"));
        assert!(!is_waiting_state(b""));
    }

    #[test]
    fn a_thread_that_asks_does_not_wait() {
        let own = std::fs::read_link("/proc/thread-self").ok();
        let own = own.as_ref().and_then(|path| path.file_name()?.to_str());
        if let Some(own) = own.and_then(|number| number.parse().ok()) {
            assert!(!Activity::default().is_waiting(own));
        }
        let is_waiting = Activity::default().is_waiting(0);
        assert!(!is_waiting, "there is no such thread");
    }

    /// Returns whether a runnable thread is taken to wait, each time that it is seen: after so many
    /// milliseconds, with this time on a processor in microseconds, in this many turns.
    fn verdicts(is_first_asleep: bool, seen: &[(u64, u64, u32)]) -> Vec<bool> {
        let begin = Instant::now();
        let mut activity = Activity::default();
        let moment = |&(at, ran, turns)| Seen {
            at: begin + Duration::from_millis(at),
            ran: Duration::from_micros(ran),
            turns,
        };
        activity.meet(is_first_asleep, Some(moment(&(0, 0, 0))));
        let seen = seen.iter();
        seen.map(|seen| activity.meet(false, Some(moment(seen))))
            .collect()
    }

    #[test]
    fn a_thread_that_queues_for_a_processor_after_a_sleep_still_waits() {
        // It slept twice, then not even once: it has not run at all.
        assert_eq!(verdicts(false, &[(10, 60, 2), (22, 60, 2)]), [true, true]);
        assert_eq!(verdicts(true, &[(10, 0, 0)]), [true]);
    }

    #[test]
    fn a_thread_that_computes_does_not_wait_while_others_have_the_processor() {
        // A turn of 4 ms, its last 0.1 ms after it was seen, and none at all.
        let seen = [(10, 3900, 1), (20, 4000, 1), (30, 4000, 1)];
        assert_eq!(verdicts(false, &seen), [false; 3]);
        // Short turns that fill most of the time.
        assert_eq!(verdicts(true, &[(10, 8000, 80)]), [false]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_of_this_process_has_a_clock() {
        // SAFETY: the function has no preconditions.
        let own = u64::try_from(unsafe { libc::gettid() }).unwrap();
        assert!(time_of(own).is_some());
    }
}
