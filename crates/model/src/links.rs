//! Numbers by which events are tied together, and by which threads are told apart.
//!
//! Sources set them as they find them; only [`crate::ProfileBuilder`] changes them, when a profile
//! is made of several parts. What the ties mean is worked out in `mindprof-analyze`.

use crate::{Category, Event, ThreadId};

/// The identifiers of one event. Zero stands for "none".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Links {
    /// Of a host's scope, its own number; of what a device or its runtime did, the number of the
    /// scope that asked for it.
    pub external: u32,
    /// The number that a call of a device's runtime shares with what the device did for it.
    pub correlation: u32,
    /// See [`ForwardThread::to_raw`].
    pub(crate) forward: u32,
}

impl Links {
    /// Makes the identifiers of an event that is no backward node.
    pub const fn new(external: u32, correlation: u32) -> Self {
        Self {
            external,
            correlation,
            forward: 0,
        }
    }

    /// Returns where a backward node's forward operator ran.
    pub const fn forward_thread(&self) -> ForwardThread {
        ForwardThread::from_raw(self.forward)
    }

    /// Sets where a backward node's forward operator ran.
    pub const fn set_forward_thread(&mut self, thread: ForwardThread) {
        self.forward = thread.to_raw();
    }
}

/// Where the forward operator of a backward node ran. A sequence number counts on its thread alone,
/// so the two together name the operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardThread {
    /// It is not known, or the event is no backward node.
    #[default]
    Unknown,
    /// On a thread that has nothing in the profile.
    Elsewhere,
    /// On this thread.
    At(ThreadId),
}

impl ForwardThread {
    /// Returns it as a number: zero, the largest one, or one more than the thread.
    pub(crate) const fn to_raw(self) -> u32 {
        match self {
            Self::Unknown => 0,
            Self::Elsewhere => u32::MAX,
            Self::At(thread) => thread.to_raw() + 1,
        }
    }

    pub(crate) const fn from_raw(raw: u32) -> Self {
        match raw {
            0 => Self::Unknown,
            u32::MAX => Self::Elsewhere,
            _ => Self::At(ThreadId::from_raw(raw - 1)),
        }
    }

    /// Returns it where threads have other ids.
    #[must_use]
    pub fn map(self, thread: impl FnOnce(ThreadId) -> Self) -> Self {
        match self {
            Self::Unknown | Self::Elsewhere => self,
            Self::At(of) => thread(of),
        }
    }
}

/// The numbers that people know threads by: from one up, first the host's threads in the order in
/// which they began to work, then those that only called a device's runtime.
///
/// ```text
/// thread a        |--op--|   |--op--|        2
/// thread b   |--op--|                        1
/// thread c  |-cudaLaunch-|                   3, although it is the first
/// stream 7          |--kernel--|             1: what devices did counts to the first thread
/// ```
#[derive(Clone, Debug, Default)]
pub struct ThreadNumbers {
    /// By thread; one for streams.
    numbers: Vec<u32>,
    /// The host's threads by their numbers.
    hosts: Vec<ThreadId>,
}

impl ThreadNumbers {
    /// Numbers threads by events in start order; `is_host` says of each thread whether it is one of
    /// the host's.
    pub fn build<'a>(is_host: &[bool], events: impl IntoIterator<Item = &'a Event>) -> Self {
        const NONE: u32 = 0;
        let mut numbers = vec![NONE; is_host.len()];
        let mut hosts = Vec::new();
        let count = is_host.iter().filter(|&&is_host| is_host).count();
        for event in events {
            let index = event.thread.index();
            if is_host[index] && numbers[index] == NONE && is_scope(event.category) {
                hosts.push(event.thread);
                numbers[index] = hosts.len() as u32;
                if hosts.len() == count {
                    break;
                }
            }
        }
        for (index, number) in numbers.iter_mut().enumerate() {
            if is_host[index] && *number == NONE {
                hosts.push(ThreadId::from_index(index));
                *number = hosts.len() as u32;
            }
            *number = (*number).max(1);
        }
        Self { numbers, hosts }
    }

    /// Returns the number of a thread; that of the first for a stream.
    ///
    /// # Panics
    /// When `thread` is of another profile.
    pub fn number(&self, thread: ThreadId) -> u32 {
        self.numbers[thread.index()]
    }

    /// Returns the number of the thread that a forward operator ran on: zero where it is not known,
    /// and one that no thread has where it ran elsewhere.
    pub fn forward_number(&self, forward: ForwardThread) -> u32 {
        match forward {
            ForwardThread::Unknown => 0,
            ForwardThread::Elsewhere => self.hosts.len() as u32 + 1,
            ForwardThread::At(thread) => self.number(thread),
        }
    }

    /// Returns the thread with a number that a trace tells, the way back from
    /// [`Self::forward_number`].
    pub fn forward_thread(&self, number: u32) -> ForwardThread {
        let Some(index) = number.checked_sub(1) else {
            return ForwardThread::Unknown;
        };
        let thread = self.hosts.get(index as usize);
        thread.map_or(ForwardThread::Elsewhere, |&thread| {
            ForwardThread::At(thread)
        })
    }
}

/// Returns whether an event of this category shows that its thread is one that the program works
/// on.
const fn is_scope(category: Category) -> bool {
    match category {
        Category::Operator | Category::Annotation | Category::PythonFunction => true,
        Category::Runtime | Category::Kernel | Category::DeviceAnnotation | Category::Other => {
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Nanos, StringTable};

    fn event(category: Category, thread: u32, start: u64) -> Event {
        let thread = ThreadId::from_raw(thread);
        Event::new(category, StringTable::EMPTY, thread, Nanos(start), Nanos(1))
    }

    #[test]
    fn threads_are_numbered_as_they_begin_to_work() {
        let events = [
            event(Category::Runtime, 2, 0),
            event(Category::Operator, 1, 1),
            event(Category::Kernel, 3, 2),
            event(Category::Operator, 0, 3),
        ];
        let numbers = ThreadNumbers::build(&[true, true, true, false], &events);
        let found = [0, 1, 2, 3].map(|thread| numbers.number(ThreadId::from_raw(thread)));
        assert_eq!(found, [2, 1, 3, 1]);
    }

    #[test]
    fn a_forward_threads_number_leads_back_to_it() {
        let events = [
            event(Category::Operator, 1, 1),
            event(Category::Operator, 0, 3),
        ];
        let numbers = ThreadNumbers::build(&[true, true], &events);
        let threads = [0, 1].map(|thread| ForwardThread::At(ThreadId::from_raw(thread)));
        let forwards = [
            ForwardThread::Unknown,
            ForwardThread::Elsewhere,
            threads[0],
            threads[1],
        ];
        for forward in forwards {
            let number = numbers.forward_number(forward);
            assert_eq!(numbers.forward_thread(number), forward);
            assert_eq!(ForwardThread::from_raw(forward.to_raw()), forward);
        }
    }
}
