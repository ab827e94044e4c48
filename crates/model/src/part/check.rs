//! The invariants that every reader of a profile relies on.

use super::Part;
use crate::{Error, Event, EventId, InputsId, MemoryRecord, Result, RoleRecord, StackId, ThreadId};

impl Part {
    /// Checks that all ids are valid in the part's tables and that no event's end overflows.
    ///
    /// # Errors
    /// Fails if an event or record refers to a string, thread, input list or stack that is not
    /// there, or if an event ends after the largest representable time.
    pub fn check(&self) -> Result<()> {
        // The maxima prove all events sound at once; single events are only checked if they do not.
        if !self.events.extremes.are_within(self) {
            for (index, event) in self.events.events.iter().enumerate() {
                self.check_event(EventId::from_index(index), event)?;
            }
        }
        for record in self.memory.distinct() {
            self.check_memory(&record)?;
        }
        let roles = self.roles.iter().map(|record: &RoleRecord| record.thread);
        let records = self
            .passthrough
            .unknown_events()
            .iter()
            .map(|record| record.thread);
        for thread in roles.chain(records) {
            self.check_thread(thread)?;
        }
        for (index, list) in self.results.lists() {
            self.check_inputs(EventId::from_index(index), list)?;
        }
        Ok(())
    }

    fn check_memory(&self, record: &MemoryRecord) -> Result<()> {
        self.check_thread(record.thread)?;
        self.check_stack(record.stack)
    }

    fn check_thread(&self, thread: ThreadId) -> Result<()> {
        let threads = self.threads.len();
        if thread.index() < threads {
            return Ok(());
        }
        Err(Error::UnknownMemoryThread { thread, threads })
    }

    fn check_stack(&self, stack: StackId) -> Result<()> {
        let stacks = self.stacks.len();
        if stack.index() < stacks {
            return Ok(());
        }
        Err(Error::UnknownStack { stack, stacks })
    }

    fn check_inputs(&self, event: EventId, list: InputsId) -> Result<()> {
        let inputs = self.inputs.len();
        if list.index() < inputs {
            return Ok(());
        }
        Err(Error::UnknownInputs {
            event,
            list,
            inputs,
        })
    }

    fn check_event(&self, id: EventId, event: &Event) -> Result<()> {
        let strings = self.strings.len();
        if event.name.index() >= strings {
            return Err(Error::UnknownName {
                event: id,
                name: event.name,
                strings,
            });
        }
        if event.thread.index() >= self.threads.len() {
            return Err(Error::UnknownThread {
                event: id,
                thread: event.thread,
                threads: self.threads.len(),
            });
        }
        self.check_inputs(id, event.inputs)?;
        self.check_stack(event.stack)?;
        let end = event.start.0.checked_add(event.duration.0);
        end.map(drop).ok_or(Error::EndOverflow { event: id })
    }
}
