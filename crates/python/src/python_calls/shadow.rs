//! The stack of one thread as its calls and returns told of it, so that an operator finds its own
//! without a walk.
//!
//! What was told is never trusted further than it can be checked: that our hook is still there, and
//! that the frame which runs now, by its address and its code, is the one that was told last. Where
//! this fails (a generator that was thrown into, another tool's hook, a thread that is seen first),
//! the frames are walked, and what was missed is put right or counted.

use std::ffi::c_int;

use mindprof_record::{
    Name, OpenScope, Stack, count_deep_calls, count_unseen_calls, open_call, wants_stacks,
};
use pyo3::prelude::*;

use super::detached::DetachedFrame;
use super::interpreter::Frame;
use super::names::Names;
use super::thread_state::{HookOwner, ThreadState};
use super::{Key, Owner, deepest, modules, on_event};

/// How a thread is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// It was not seen in this recording.
    #[default]
    Unseen,
    /// Its calls and returns are told.
    Following,
    /// Another tool has the hook: operators walk the frames, calls are not seen.
    Foreign,
}

/// The calls that one thread is in.
#[derive(Default)]
pub(super) struct Shadow {
    key: Key,
    state: State,
    calls: Vec<Call>,
    /// How many more calls there are than are kept.
    beyond: u64,
    /// The stack of the last call that gave up the GIL, and when that was.
    noted: Option<(Key, Stack)>,
    /// Whether calls are not followed for a while, on purpose.
    is_paused: bool,
    names: Names,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Function,
    Module,
    Native,
}

/// One call that has not returned.
struct Call {
    kind: Kind,
    /// Which frame it is; of a native function, which frame called it. Compared, never followed.
    frame: usize,
    /// Which code that frame runs.
    code: usize,
    name: Name,
    /// Where it was called.
    callers: Stack,
    /// None if it is not recorded.
    scope: Option<OpenScope>,
    /// The last place in it where something was called, and the stack there.
    instruction: c_int,
    inside: Stack,
}

/// No instruction: nothing was called yet.
const NOWHERE: c_int = c_int::MIN;

impl Call {
    /// Returns whether `frame` is its own. The address alone would not do: a frame that returned
    /// untold leaves its place to the next.
    #[inline]
    fn is_of(&self, frame: Frame<'_>) -> bool {
        self.frame == frame.identity() && self.code == frame.code().as_ptr() as usize
    }

    fn close(self) {
        if let Some(scope) = self.scope {
            scope.close();
        }
    }
}

impl Shadow {
    /// Returns the stack that an operator of this thread is called in.
    #[inline]
    pub(super) fn operator_stack(&mut self) -> Stack {
        if self.state != State::Following || self.key != Key::now() {
            return self.find_stack();
        }
        let Some(call) = self.calls.last() else {
            return self.find_stack();
        };
        let Some(thread) = ThreadState::current() else {
            return self.find_stack();
        };
        if thread.hook_owner(on_event) != HookOwner::Us {
            return self.find_stack();
        }
        // The line that called the function is told rather than the function, whose name says what
        // the operator's says. It waits for the operator, with the GIL or without.
        if call.kind == Kind::Native && self.beyond == 0 {
            return call.callers;
        }
        let Some(attached) = thread.attached() else {
            return match self.detached_stack(thread) {
                Some(stack) => stack,
                None => self.find_stack(),
            };
        };
        match attached.current_frame() {
            Some(frame) if self.beyond == 0 && call.is_of(frame) => {
                // Mostly a line calls the same operator again.
                if call.kind == Kind::Function && call.instruction == frame.instruction() {
                    return call.inside;
                }
                self.stack_inside(frame)
            }
            Some(_) | None => self.find_stack(),
        }
    }

    /// Returns the stack of an operator that runs without the GIL, if it is called by the frame
    /// that was told last: an operator such as `a + b` is no call that the hook hears of.
    #[inline]
    fn detached_stack(&mut self, thread: ThreadState<'_>) -> Option<Stack> {
        if self.noted.is_some() || self.beyond > 0 {
            return None;
        }
        let frame = DetachedFrame::innermost(thread)?;
        let call = self.calls.last_mut()?;
        if call.frame != frame.identity() || call.code != frame.code() {
            return None;
        }
        let instruction = match call.kind {
            Kind::Function => frame.instruction()?,
            Kind::Module | Kind::Native => 0,
        };
        if call.instruction != instruction {
            let name = match call.kind {
                Kind::Function => self.names.detached_place(instruction, frame)?,
                Kind::Module | Kind::Native => call.name,
            };
            call.inside = call.callers.push(name);
            call.instruction = instruction;
        }
        Some(call.inside)
    }

    /// Follows a call of a Python function.
    pub(super) fn enter(&mut self, frame: Frame<'_>) {
        if self.is_stale() {
            self.begin(frame);
            return;
        }
        self.state = State::Following;
        if self.is_full() {
            self.beyond += 1;
            count_deep_calls(1);
            return;
        }
        let code = frame.code();
        let function = self.names.function(&code);
        if !wants_stacks() && !function.calls_module {
            return;
        }
        let callers = self.callers_of(frame);
        let module = function
            .calls_module
            .then(|| modules::name(frame))
            .flatten();
        self.calls.push(Call {
            kind: if module.is_some() {
                Kind::Module
            } else {
                Kind::Function
            },
            frame: frame.identity(),
            code: code.as_ptr() as usize,
            name: module.unwrap_or(function.name),
            callers,
            scope: open_call(module.unwrap_or(function.name), callers),
            instruction: NOWHERE,
            inside: Stack::NONE,
        });
    }

    /// Follows the return of a Python function, be it by an exception.
    pub(super) fn leave(&mut self, frame: Frame<'_>) {
        let is_it = |call: &Call| call.kind != Kind::Native && call.frame == frame.identity();
        let is_last = self.calls.last().is_some_and(is_it);
        if self.beyond > 0 && !is_last {
            self.beyond -= 1;
            return;
        }
        if is_last {
            self.beyond = 0;
            self.pop();
        } else if let Some(position) = self.calls.iter().rposition(is_it) {
            self.close_from(position);
        }
    }

    /// Follows a call of a function that is written in C.
    pub(super) fn enter_native(&mut self, frame: Frame<'_>, function: &Bound<'_, PyAny>) {
        if self.is_stale() {
            self.begin(frame);
        }
        if !wants_stacks() {
            return;
        }
        let Some(native) = self.names.native(function) else {
            return;
        };
        if self.is_full() {
            self.beyond += 1;
            count_deep_calls(1);
            return;
        }
        let callers = self.stack_at(frame);
        if native.is_switch {
            // Whether its return will be told is not known: it is recorded as over at once.
            let _ = open_call(native.name, callers).map(OpenScope::close);
            return;
        }
        self.calls.push(Call {
            kind: Kind::Native,
            frame: frame.identity(),
            code: self.calls.last().map_or(0, |caller| caller.code),
            name: native.name,
            callers,
            scope: open_call(native.name, callers),
            instruction: NOWHERE,
            inside: Stack::NONE,
        });
    }

    /// Follows the return of a function that is written in C, be it by an exception.
    pub(super) fn leave_native(&mut self, frame: Frame<'_>) {
        let is_it = |call: &Call| call.kind == Kind::Native && call.frame == frame.identity();
        if self.beyond > 0 {
            self.beyond -= 1;
        } else if self.calls.last().is_some_and(is_it) {
            self.pop();
        }
    }

    /// Begins to follow this thread, in which `frame` is the innermost.
    pub(super) fn begin(&mut self, frame: Frame<'_>) {
        self.forget();
        self.key = Key::now();
        self.state = State::Following;
        if wants_stacks() {
            self.catch_up(frame, Recorded::Yes);
        }
    }

    /// Stops to follow this thread.
    pub(super) fn forget(&mut self) {
        self.close_from(0);
        self.key = Key::default();
        self.state = State::Unseen;
        self.beyond = 0;
        self.names.clear();
    }

    /// Says whether calls are not followed from now on: operators have the stack that was known then.
    pub(super) fn set_paused(&mut self, is_paused: bool) {
        self.is_paused = is_paused;
    }

    /// Notes the stack of a call that gives up the GIL, for operators in it that find no frame to
    /// ask. Returns what was noted before.
    pub(super) fn note_stack(&mut self) -> Option<(Key, Stack)> {
        let stack = self.operator_stack();
        self.noted.replace((Key::now(), stack))
    }

    /// Notes again what was noted before.
    pub(super) fn restore_note(&mut self, noted: Option<(Key, Stack)>) {
        self.noted = noted;
    }

    /// Finds the stack where what was told does not say it.
    #[cold]
    fn find_stack(&mut self) -> Stack {
        if self.is_paused && !self.is_stale() {
            return self
                .calls
                .last()
                .map_or(Stack::NONE, |call| match call.kind {
                    Kind::Native => call.callers,
                    Kind::Function | Kind::Module => call.inside,
                });
        }
        let Some(thread) = ThreadState::current() else {
            return Stack::NONE;
        };
        let Some(attached) = thread.attached() else {
            return self.noted_stack();
        };
        let Some(frame) = attached.current_frame() else {
            return Stack::NONE;
        };
        match super::claim_hook(attached) {
            Owner::Us | Owner::New if self.is_stale() => self.begin(frame),
            Owner::Us if self.state == State::Foreign => self.begin(frame),
            Owner::Us if self.beyond > 0 => return self.stack_too_deep(frame),
            Owner::Us => {
                if let Some(call) = self.calls.last()
                    && call.kind == Kind::Native
                    && call.is_of(frame)
                {
                    return call.callers;
                }
                self.state = State::Following;
                self.catch_up(frame, Recorded::Yes);
            }
            Owner::New => self.look_at(frame, State::Following),
            Owner::Another => self.look_at(frame, State::Foreign),
        }
        if self.beyond > 0 {
            return self.stack_too_deep(frame);
        }
        self.stack_inside(frame)
    }

    /// Returns the stack that was noted in this recording. What has none is counted.
    fn noted_stack(&self) -> Stack {
        match self.noted {
            Some((key, stack)) if key == Key::now() => stack,
            Some(_) | None => {
                count_unseen_calls(1);
                Stack::NONE
            }
        }
    }

    /// Walks all frames, because another tool sees the calls, or saw them until now, and we do not.
    fn look_at(&mut self, frame: Frame<'_>, state: State) {
        if self.is_stale() {
            self.forget();
            self.key = Key::now();
        }
        self.state = state;
        let before: Vec<(usize, usize)> = self.calls.iter().map(|c| (c.frame, c.code)).collect();
        self.close_from(0);
        self.beyond = 0;
        let recorded = if state == State::Foreign {
            Recorded::No
        } else {
            Recorded::Yes
        };
        self.catch_up(frame, recorded);
        let now = self.calls.iter().map(|call| (call.frame, call.code));
        let known = now.zip(before).take_while(|(now, before)| now == before);
        let unseen = self.calls.len() - known.count();
        if unseen > 0 {
            count_unseen_calls(unseen as u64);
        }
    }

    /// Returns the stack inside of `frame`, which is the innermost but not among the calls that are
    /// kept.
    fn stack_too_deep(&mut self, frame: Frame<'_>) -> Stack {
        let callers = self.calls.last().map_or(Stack::NONE, |call| call.callers);
        let code = frame.code().as_ptr() as usize;
        callers.push(self.names.place(code, frame.instruction(), frame))
    }

    /// Returns the stack of what `frame` calls now, having caught up with it.
    fn stack_at(&mut self, frame: Frame<'_>) -> Stack {
        if !self.calls.last().is_some_and(|call| call.is_of(frame)) {
            self.catch_up(frame, Recorded::Yes);
        }
        self.stack_inside(frame)
    }

    fn callers_of(&mut self, frame: Frame<'_>) -> Stack {
        if !wants_stacks() {
            return Stack::NONE;
        }
        if let Some(back) = frame.back() {
            return self.stack_at(back);
        }
        self.close_from(0);
        Stack::NONE
    }

    /// Returns the stack of what the last call calls now; `frame` is its frame.
    fn stack_inside(&mut self, frame: Frame<'_>) -> Stack {
        let Some(call) = self.calls.last_mut() else {
            return Stack::NONE;
        };
        let instruction = match call.kind {
            Kind::Function => frame.instruction(),
            Kind::Module | Kind::Native => 0,
        };
        if call.instruction != instruction {
            let name = match call.kind {
                Kind::Function => self.names.place(call.code, instruction, frame),
                Kind::Module | Kind::Native => call.name,
            };
            call.inside = call.callers.push(name);
            call.instruction = instruction;
        }
        call.inside
    }

    /// Makes the calls those that `frame` is the innermost of: closes what has returned, adds what
    /// was not told.
    fn catch_up(&mut self, frame: Frame<'_>, recorded: Recorded) {
        let mut missing = Vec::new();
        let mut next = Some(frame);
        let mut kept = 0;
        while let Some(frame) = next {
            let is_it = |call: &Call| call.kind != Kind::Native && call.is_of(frame);
            if let Some(position) = self.calls.iter().rposition(is_it) {
                kept = position + 1;
                break;
            }
            missing.push(frame);
            next = frame.back();
        }
        self.close_from(kept);
        let mut caller = next;
        for frame in missing.into_iter().rev() {
            self.add(frame, caller, recorded);
            caller = Some(frame);
        }
    }

    /// Adds a call that was made before it could be told. It is called by the line that it is at.
    fn add(&mut self, frame: Frame<'_>, caller: Option<Frame<'_>>, recorded: Recorded) {
        if self.is_full() {
            self.beyond += 1;
            count_deep_calls(1);
            return;
        }
        let callers = caller.map_or(Stack::NONE, |caller| self.stack_inside(caller));
        let code = frame.code();
        let function = self.names.function(&code);
        let code = code.as_ptr() as usize;
        let module = function
            .calls_module
            .then(|| modules::name(frame))
            .flatten();
        let name = module.unwrap_or_else(|| self.names.place(code, frame.instruction(), frame));
        self.calls.push(Call {
            kind: if module.is_some() {
                Kind::Module
            } else {
                Kind::Function
            },
            frame: frame.identity(),
            code,
            name,
            callers,
            scope: match recorded {
                Recorded::Yes => open_call(name, callers),
                Recorded::No => None,
            },
            instruction: NOWHERE,
            inside: Stack::NONE,
        });
    }

    fn is_full(&self) -> bool {
        self.beyond > 0 || self.calls.len() >= deepest()
    }

    fn is_stale(&self) -> bool {
        self.key != Key::now()
    }

    fn pop(&mut self) {
        if let Some(call) = self.calls.pop() {
            call.close();
        }
    }

    fn close_from(&mut self, position: usize) {
        while self.calls.len() > position {
            self.pop();
        }
    }
}

/// Whether a call that is added becomes an event.
#[derive(Clone, Copy)]
enum Recorded {
    Yes,
    No,
}
