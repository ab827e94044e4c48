//! The tasks of CPU threads that depend on more than the task before them, and those that others
//! depend on. They are few, so that all others can be replayed as one stretch of time.

use super::tasks::NONE;

/// The dependencies of a task, besides its place on its thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Joint {
    /// The task without whose end it cannot begin, or [`NONE`]: for backward work on a thread of its
    /// own the one before the thread that waits for it, for a task of a queue the one before it was
    /// queued.
    pub(super) released_by: u32,
    /// Whether it takes a task from a queue.
    pub(super) is_queued: bool,
    /// The task without whose end it cannot end, or [`NONE`]: what a synchronization waits for.
    pub(super) waits_for: u32,
    /// Whether others depend on it.
    pub(super) is_needed: bool,
}

/// The joints of tasks.
#[derive(Clone, Debug, Default)]
pub(super) struct Joints {
    /// By task, the number of its joint or [`NONE`].
    of_tasks: Vec<u32>,
    joints: Vec<Joint>,
}

impl Joints {
    /// Returns no joints between so many tasks.
    pub(super) fn new(tasks: usize) -> Self {
        Self {
            of_tasks: vec![NONE; tasks],
            joints: Vec::new(),
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.joints.len()
    }

    /// Returns the number of a task's joint, or [`NONE`].
    pub(super) fn number(&self, task: u32) -> u32 {
        self.of_tasks[task as usize]
    }

    pub(super) fn get(&self, task: u32) -> Option<&Joint> {
        self.joints.get(self.number(task) as usize)
    }

    pub(super) fn get_mut(&mut self, task: u32) -> Option<&mut Joint> {
        let number = self.number(task);
        self.joints.get_mut(number as usize)
    }

    /// Returns the joint of a task, which is added if it has none.
    pub(super) fn of(&mut self, task: u32) -> &mut Joint {
        let number = &mut self.of_tasks[task as usize];
        if *number == NONE {
            *number = self.joints.len() as u32;
            self.joints.push(Joint {
                released_by: NONE,
                is_queued: false,
                waits_for: NONE,
                is_needed: false,
            });
        }
        &mut self.joints[*number as usize]
    }

    /// Notes that others depend on the tasks that joints name.
    pub(super) fn need_each_other(&mut self) {
        for number in 0..self.joints.len() {
            let Joint {
                released_by,
                waits_for,
                ..
            } = self.joints[number];
            for task in [released_by, waits_for] {
                if (task as usize) < self.of_tasks.len() {
                    self.of(task).is_needed = true;
                }
            }
        }
    }
}
