//! One event: something that ran, from when to when, on which thread.

use crate::{InputsId, Nanos, StackId, StringId, ThreadId};

/// What kind of thing an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Category {
    /// An operator of the host framework, or a node of its backward graph.
    Operator,
    /// A range that the user named.
    Annotation,
    /// A call of a Python function.
    PythonFunction,
    /// A call into a device's runtime or driver, made by a host thread.
    Runtime,
    /// A kernel, copy or fill that a device ran.
    Kernel,
    /// A user's range as a device saw it.
    DeviceAnnotation,
    /// Something else that a trace file holds.
    Other,
}

/// Which part of the program opened the scope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ScopeKind {
    /// An operator.
    #[default]
    Function,
    /// A node of the backward graph.
    Backward,
    /// The user.
    User,
}

/// Properties of an event that are either there or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Flags(u8);

impl Flags {
    /// No property.
    pub const NONE: Self = Self(0);
    /// The scope was still open when the window closed; its end is the window's.
    pub const UNFINISHED: Self = Self(1);
    /// It ended on another thread than it began on.
    pub const ASYNC: Self = Self(2);
    /// It is the tracer's own work or noise: kept in files, left out of every analysis.
    pub const HIDDEN: Self = Self(4);
    /// It is a moment: it has no duration, not even one of zero.
    pub const INSTANT: Self = Self(8);

    /// Returns whether all properties of `other` are there.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns both sets of properties together.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// One event of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When it began, since the profile's reference time.
    pub start: Nanos,
    /// How long it took.
    pub duration: Nanos,
    /// Its name.
    pub name: StringId,
    /// The thread it ran on.
    pub thread: ThreadId,
    /// What it was given.
    pub inputs: InputsId,
    /// Who called it.
    pub stack: StackId,
    sequence: u32,
    /// What kind of thing it is.
    pub category: Category,
    /// Which part of the program opened it.
    pub scope: ScopeKind,
    /// Its further properties.
    pub flags: Flags,
}

/// An event is held once per scope of a recording, so its size is a promise.
const _: () = assert!(size_of::<Event>() <= 40);

const NO_SEQUENCE: u32 = u32::MAX;

impl Event {
    /// Makes an event without inputs, stack, sequence number or flags.
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

    /// Returns when it ended.
    pub fn end(&self) -> Nanos {
        self.start + self.duration
    }

    /// Returns the number that links a forward operator with its backward node, if it has one.
    pub const fn sequence(&self) -> Option<u32> {
        if self.sequence == NO_SEQUENCE {
            None
        } else {
            Some(self.sequence)
        }
    }

    /// Sets the number that links a forward operator with its backward node.
    pub const fn set_sequence(&mut self, sequence: Option<u32>) {
        self.sequence = match sequence {
            Some(number) => number,
            None => NO_SEQUENCE,
        };
    }
}
