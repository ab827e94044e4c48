//! Events: what ran, when, and on which thread.

use crate::{InputsId, Nanos, StackId, StringId, ThreadId};

/// The category of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Category {
    /// An operator of the framework, or an autograd node.
    Operator,
    /// A range that the user named.
    Annotation,
    /// A call of a Python function.
    PythonFunction,
    /// A call into a device's runtime or driver, made by a CPU thread.
    Runtime,
    /// A kernel, copy or fill that a device ran.
    Kernel,
    /// A user's range, projected onto a device stream.
    DeviceAnnotation,
    /// Any other event of a trace file.
    Other,
}

/// The part of the program that opened a scope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ScopeKind {
    /// An operator.
    #[default]
    Function,
    /// An autograd node.
    Backward,
    /// The user.
    User,
}

/// A set of boolean properties of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Flags(u8);

impl Flags {
    /// No property.
    pub const NONE: Self = Self(0);
    /// The scope was still open when the window closed; its end is the window's.
    pub const UNFINISHED: Self = Self(1);
    /// The scope ended on another thread than it began on.
    pub const ASYNC: Self = Self(2);
    /// The event is the tracer's own work or noise: kept in files, left out of every analysis.
    pub const HIDDEN: Self = Self(4);
    /// The event is an instant: it has no duration, not even zero.
    pub const INSTANT: Self = Self(8);

    /// Returns whether all properties of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the union of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// One event of a profile: a named interval on a thread. Names, inputs and stacks are ids into the
/// tables of the profile, which keeps an event at 40 bytes; links to other events lie in columns of
/// their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The start, since the profile's reference time.
    pub start: Nanos,
    /// The duration.
    pub duration: Nanos,
    /// Its name.
    pub name: StringId,
    /// The thread it ran on.
    pub thread: ThreadId,
    /// Its inputs.
    pub inputs: InputsId,
    /// Its call stack.
    pub stack: StackId,
    sequence: u32,
    /// Its category.
    pub category: Category,
    /// The part of the program that opened it.
    pub scope: ScopeKind,
    /// Its further properties.
    pub flags: Flags,
}

/// The documentation promises this size, since a profile holds one event per scope.
const _: () = assert!(size_of::<Event>() <= 40);

const NO_SEQUENCE: u32 = u32::MAX;

impl Event {
    /// Returns an event without inputs, stack, sequence number or flags.
    pub fn new(
        category: Category,
        name: StringId,
        thread: ThreadId,
        start: Nanos,
        duration: Nanos,
    ) -> Self {
        let scope = match category {
            Category::Annotation => ScopeKind::User,
            Category::Operator
            | Category::PythonFunction
            | Category::Runtime
            | Category::Kernel
            | Category::DeviceAnnotation
            | Category::Other => ScopeKind::Function,
        };
        Self {
            start,
            duration,
            name,
            thread,
            inputs: InputsId::NONE,
            stack: StackId::NONE,
            sequence: NO_SEQUENCE,
            category,
            scope,
            flags: Flags::NONE,
        }
    }

    /// Returns the end.
    pub fn end(&self) -> Nanos {
        self.start + self.duration
    }

    /// Returns the sequence number, which links a forward operator with its backward node, if there
    /// is one.
    pub const fn sequence(&self) -> Option<u32> {
        if self.sequence == NO_SEQUENCE {
            None
        } else {
            Some(self.sequence)
        }
    }

    /// Sets the sequence number, which links a forward operator with its backward node.
    pub const fn set_sequence(&mut self, sequence: Option<u32>) {
        self.sequence = match sequence {
            Some(number) => number,
            None => NO_SEQUENCE,
        };
    }
}
