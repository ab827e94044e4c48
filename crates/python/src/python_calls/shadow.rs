//! A shadow stack: the Python calls of one thread, maintained by the profile hook, so that an
//! operator finds its stack without walking frames.
//!
//! The shadow is trusted only as far as it can be verified: our hook must still be installed, and
//! the running frame must be the last known one by address and code. Otherwise (an exception was
//! thrown into a generator, another greenlet runs, another tool owns the hook, the thread is new)
//! the frames are walked, and missed calls are added or counted.

use std::ffi::c_int;

use mindprof_record::{
    Name, OpenScope, Stack, count_deep_calls, count_unseen_calls, open_call, wants_all_calls,
};
use pyo3::prelude::*;

use super::detached::DetachedFrame;
use super::interpreter::Frame;
use super::names::{Function, Names};
use super::parked::{Parked, greenlets_were_seen};
use super::thread_state::{HookOwner, ThreadState};
use super::{Key, Owner, deepest, modules, on_event};

/// The state of following a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// The thread was not seen in this recording yet.
    #[default]
    Unseen,
    /// Our hook reports its calls and returns.
    Following,
    /// Another tool owns the hook: operators walk the frames, and calls are not recorded.
    Foreign,
}

/// The calls that one thread is in. Each thread has one shadow, which its hook maintains.
#[derive(Default)]
pub(super) struct Shadow {
    key: Key,
    state: State,
    calls: Vec<Call>,
    /// The calls of the thread's greenlets that do not run now.
    parked: Parked,
    /// The number of calls beyond the maximum depth, which are not kept.
    beyond: u64,
    /// The stack noted by the last call that released the GIL, and the recording it belongs to.
    noted: Option<(Key, Stack)>,
    /// Whether following is paused on purpose.
    is_paused: bool,
    names: Names,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Function,
    Module,
    Native,
    /// A function of mindprof's own. It is followed, but is neither an event nor in stacks.
    Own,
}

impl Kind {
    const fn of(function: Function, module: Option<Name>) -> Self {
        if module.is_some() {
            Self::Module
        } else if function.is_own {
            Self::Own
        } else {
            Self::Function
        }
    }
}

/// A call that has not returned.
pub(super) struct Call {
    kind: Kind,
    /// The address of its frame, or for a C function that of the caller's frame. It is compared,
    /// never dereferenced.
    frame: usize,
    /// The address of that frame's code.
    code: usize,
    name: Name,
    /// The stack it was called from.
    callers: Stack,
    /// The open event, or `None` if the call is not recorded.
    scope: Option<OpenScope>,
    /// The last instruction in it that called something, and the stack at that place.
    instruction: c_int,
    inside: Stack,
}

/// An instruction offset that no frame has: nothing was called yet.
const NOWHERE: c_int = c_int::MIN;

impl Call {
    /// Returns whether `frame` is the call's frame. The address is not enough, because a new frame
    /// may reuse the address of one whose return was missed.
    #[inline]
    fn is_of(&self, frame: Frame<'_>) -> bool {
        self.frame == frame.identity() && self.code == frame.code().as_ptr() as usize
    }

    /// Begins the event of the call, unless the call is mindprof's own.
    fn begin_event(&mut self) {
        if self.kind != Kind::Own {
            self.scope = open_call(self.name, self.callers);
        }
    }

    fn close(mut self) {
        self.end_event();
    }

    fn end_event(&mut self) {
        if let Some(scope) = self.scope.take() {
            scope.close();
        }
    }
}

impl Shadow {
    /// Returns the Python stack of an operator that this thread calls.
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
        // The line that called the C function is used instead of the function, whose name would
        // only repeat the operator's. It waits for the operator, with or without the GIL.
        if call.kind == Kind::Native && self.beyond == 0 && waits_for_operator(call, thread) {
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
                // In most cases the same line calls an operator again.
                if call.kind == Kind::Function && call.instruction == frame.instruction() {
                    return call.inside;
                }
                self.stack_inside(frame)
            }
            Some(_) | None => self.find_stack(),
        }
    }

    /// Returns the stack of an operator that runs without the GIL if the last known frame has
    /// called it: the hook does not report operators such as `a + b` as calls.
    #[inline]
    fn detached_stack(&mut self, thread: ThreadState<'_>) -> Option<Stack> {
        if self.noted.is_some() || self.beyond > 0 {
            return None;
        }
        let frame = DetachedFrame::innermost(thread)?;
        let is_it = |call: &Call| call.frame == frame.identity() && call.code == frame.code();
        if !self.calls.last().is_some_and(is_it) {
            self.resume(|call| call.kind != Kind::Native && is_it(call))?;
        }
        let call = self.calls.last_mut()?;
        let instruction = match call.kind {
            Kind::Function => frame.instruction()?,
            Kind::Module | Kind::Native | Kind::Own => 0,
        };
        if call.instruction != instruction {
            let name = match call.kind {
                Kind::Function => Some(self.names.detached_place(instruction, frame)?),
                Kind::Module | Kind::Native => Some(call.name),
                Kind::Own => None,
            };
            call.inside = name.map_or(call.callers, |name| call.callers.push(name));
            call.instruction = instruction;
        }
        Some(call.inside)
    }

    /// Handles a call of a Python function.
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
        if !wants_all_calls() && !function.calls_module {
            return;
        }
        let callers = self.callers_of(frame);
        let module = function
            .calls_module
            .then(|| modules::name(frame))
            .flatten();
        let mut call = Call {
            kind: Kind::of(function, module),
            frame: frame.identity(),
            code: code.as_ptr() as usize,
            name: module.unwrap_or(function.name),
            callers,
            scope: None,
            instruction: NOWHERE,
            inside: Stack::NONE,
        };
        call.begin_event();
        self.calls.push(call);
        if function.is_step {
            modules::note_step(frame);
        }
    }

    /// Handles the return of a Python function, normally or by an exception.
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
        } else if let Some(caller) = frame.back() {
            self.follow_greenlet(caller);
        }
    }

    /// Handles a call of a C function.
    pub(super) fn enter_native(&mut self, frame: Frame<'_>, function: &Bound<'_, PyAny>) {
        if self.is_stale() {
            self.begin(frame);
        }
        if !wants_all_calls() {
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
        if self.calls.last().is_some_and(|call| call.kind == Kind::Own) {
            return;
        }
        if native.is_switch {
            // Its return may not be reported, so the event ends at once.
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

    /// Handles the return of a C function, normally or by an exception.
    pub(super) fn leave_native(&mut self, frame: Frame<'_>) {
        let is_it = |call: &Call| call.kind == Kind::Native && call.frame == frame.identity();
        if self.beyond > 0 {
            self.beyond -= 1;
        } else if self.calls.last().is_some_and(is_it) {
            self.pop();
        } else {
            self.follow_greenlet(frame);
        }
    }

    /// Begins to follow this thread, whose innermost frame is `frame`.
    pub(super) fn begin(&mut self, frame: Frame<'_>) {
        self.forget();
        self.key = Key::now();
        self.state = State::Following;
        if wants_all_calls() {
            self.catch_up(frame, Recorded::Yes);
        }
    }

    /// Stops following this thread and forgets all names.
    pub(super) fn forget(&mut self) {
        self.close_from(0);
        self.parked.clear();
        self.key = Key::default();
        self.state = State::Unseen;
        self.beyond = 0;
        self.names.clear();
    }

    /// Pauses or resumes following. While paused, operators get the stack known at the pause.
    pub(super) fn set_paused(&mut self, is_paused: bool) {
        self.is_paused = is_paused;
    }

    /// Notes the stack of a call that releases the GIL, for operators inside of it that have no
    /// frame to read. Returns the previous note.
    pub(super) fn note_stack(&mut self) -> Option<(Key, Stack)> {
        let stack = self.operator_stack();
        self.noted.replace((Key::now(), stack))
    }

    /// Restores the previous note.
    pub(super) fn restore_note(&mut self, noted: Option<(Key, Stack)>) {
        self.noted = noted;
    }

    /// Finds the stack if the shadow does not provide it.
    #[cold]
    fn find_stack(&mut self) -> Stack {
        if self.is_paused && !self.is_stale() {
            return self
                .calls
                .last()
                .map_or(Stack::NONE, |call| match call.kind {
                    Kind::Native | Kind::Own => call.callers,
                    Kind::Function | Kind::Module => call.inside,
                });
        }
        let Some(thread) = ThreadState::current() else {
            return Stack::NONE;
        };
        let Some(attached) = thread.attached() else {
            return self.noted_stack(thread);
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

    /// Returns the stack noted in this recording. Counts the operator as unseen if there is none,
    /// unless the thread runs no Python code.
    fn noted_stack(&self, thread: ThreadState<'_>) -> Stack {
        match self.noted {
            Some((key, stack)) if key == Key::now() => stack,
            Some(_) | None if DetachedFrame::has_none(thread) => Stack::NONE,
            Some(_) | None => {
                count_unseen_calls(1);
                Stack::NONE
            }
        }
    }

    /// Walks all frames, because another tool sees the calls instead of us, or did so until now.
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

    /// Returns the stack inside of `frame`, the innermost frame, which is beyond the maximum depth.
    fn stack_too_deep(&mut self, frame: Frame<'_>) -> Stack {
        let callers = self.calls.last().map_or(Stack::NONE, |call| call.callers);
        let code = frame.code().as_ptr() as usize;
        callers.push(self.names.place(code, frame.instruction(), frame))
    }

    /// Returns the stack of a call that `frame` makes now, after catching up with it.
    fn stack_at(&mut self, frame: Frame<'_>) -> Stack {
        if !self.calls.last().is_some_and(|call| call.is_of(frame)) {
            self.catch_up(frame, Recorded::Yes);
        }
        self.stack_inside(frame)
    }

    fn callers_of(&mut self, frame: Frame<'_>) -> Stack {
        if !wants_all_calls() {
            return Stack::NONE;
        }
        if let Some(back) = frame.back() {
            return self.stack_at(back);
        }
        self.park(frame.py());
        Stack::NONE
    }

    /// Returns the stack of a call that the last known call makes now; `frame` is its frame.
    fn stack_inside(&mut self, frame: Frame<'_>) -> Stack {
        let Some(call) = self.calls.last_mut() else {
            return Stack::NONE;
        };
        let instruction = match call.kind {
            Kind::Function => frame.instruction(),
            Kind::Module | Kind::Native | Kind::Own => 0,
        };
        if call.instruction != instruction {
            let name = match call.kind {
                Kind::Function => Some(self.names.place(call.code, instruction, frame)),
                Kind::Module | Kind::Native => Some(call.name),
                Kind::Own => None,
            };
            call.inside = name.map_or(call.callers, |name| call.callers.push(name));
            call.instruction = instruction;
        }
        call.inside
    }

    /// Makes `frame` the innermost known call: closes calls that have returned and adds missed
    /// ones.
    fn catch_up(&mut self, frame: Frame<'_>, recorded: Recorded) {
        let mut missing = Vec::new();
        let mut next = Some(frame);
        while let Some(frame) = next {
            let is_it = |call: &Call| call.kind != Kind::Native && call.is_of(frame);
            if let Some(position) = self.calls.iter().rposition(is_it) {
                self.close_from(position + 1);
                break;
            }
            if self.resume(is_it).is_some() {
                break;
            }
            missing.push(frame);
            next = frame.back();
        }
        if next.is_none() {
            self.park(frame.py());
        }
        let mut caller = next;
        for frame in missing.into_iter().rev() {
            self.add(frame, caller, recorded);
            caller = Some(frame);
        }
    }

    /// Follows a greenlet that was resumed, whose innermost frame is `frame`.
    fn follow_greenlet(&mut self, frame: Frame<'_>) {
        let is_known = self.calls.last().is_some_and(|call| call.is_of(frame));
        if greenlets_were_seen() && !is_known && !self.is_stale() && wants_all_calls() {
            self.catch_up(frame, Recorded::Yes);
        }
    }

    /// Parks all calls, because none of the thread's frames belongs to them.
    fn park(&mut self, py: Python<'_>) {
        self.end_events();
        self.parked.park(py, std::mem::take(&mut self.calls));
    }

    /// Parks all calls and continues with those of a parked greenlet, up to the one for which
    /// `is_it` holds. Their events begin anew: an event of a call covers one turn of its greenlet,
    /// so that events of a thread nest. Returns `None` if no greenlet is in such a call.
    fn resume(&mut self, is_it: impl Fn(&Call) -> bool) -> Option<()> {
        if self.parked.is_empty() {
            return None;
        }
        let (mut resumed, position) = self.parked.take(is_it)?;
        resumed.truncate(position + 1);
        self.end_events();
        self.parked.add(std::mem::replace(&mut self.calls, resumed));
        self.calls.iter_mut().for_each(Call::begin_event);
        Some(())
    }

    /// Ends the events of all calls, innermost first.
    fn end_events(&mut self) {
        self.calls.iter_mut().rev().for_each(Call::end_event);
    }

    /// Adds a call that began unseen. It is named after the line it is at, because the call itself
    /// was missed.
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
        let mut call = Call {
            kind: Kind::of(function, module),
            frame: frame.identity(),
            code,
            name,
            callers,
            scope: None,
            instruction: NOWHERE,
            inside: Stack::NONE,
        };
        match recorded {
            Recorded::Yes => call.begin_event(),
            Recorded::No => {}
        }
        self.calls.push(call);
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

/// Returns whether the frame that made a native call is the innermost one. It is, unless the call
/// switched to another greenlet.
#[inline]
fn waits_for_operator(call: &Call, thread: ThreadState<'_>) -> bool {
    if !greenlets_were_seen() {
        return true;
    }
    let innermost = match thread.attached() {
        Some(attached) => attached.current_frame().map(Frame::identity),
        None if !DetachedFrame::is_readable() => return true,
        None => DetachedFrame::innermost(thread).map(DetachedFrame::identity),
    };
    innermost == Some(call.frame)
}

/// Whether an added call becomes an event.
#[derive(Clone, Copy)]
enum Recorded {
    Yes,
    No,
}
