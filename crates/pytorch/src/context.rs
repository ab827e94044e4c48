//! What torch keeps for us between the begin and the end of a scope.
//!
//! torch owns a context by a pointer to a C++ object and destroys it through its table of virtual
//! functions; ours begins with such a table. Contexts are taken from a list of the thread and given
//! back to that of the thread that destroys them, so that nothing is allocated per scope, and their
//! memory is never freed: torch may come back with one long after the observer was removed.

#![expect(
    unsafe_code,
    reason = "torch holds contexts as raw pointers to objects of C++"
)]

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use mindprof_record::OpenScope;

use crate::threads;

/// The functions that C++ calls for an object with a virtual destructor alone.
#[repr(C)]
struct Table {
    destroy: unsafe extern "C" fn(*mut Context),
    destroy_and_free: unsafe extern "C" fn(*mut Context),
}

static TABLE: Table = Table {
    destroy: keep,
    destroy_and_free: give_back,
};

/// One open scope.
#[repr(C)]
pub(crate) struct Context {
    table: &'static Table,
    scope: Option<OpenScope>,
    /// The next one of a list of those that are not in use.
    next: *mut Self,
}

/// How many contexts are made at once: more than scopes nest.
const BLOCK: usize = 64;

/// Contexts of threads that have ended.
static SPARE: AtomicPtr<Context> = AtomicPtr::new(ptr::null_mut());

impl Context {
    /// Returns a context that holds `scope`, as torch will hold it.
    #[inline]
    pub(crate) fn hold(scope: OpenScope, free: &FreeList) -> *mut c_void {
        let context = free.take();
        // SAFETY: a context of a list is in nobody else's hands.
        unsafe { (*context).scope = Some(scope) };
        context.cast()
    }

    /// Calls `action` with the scope that a context holds.
    ///
    /// # Safety
    /// As of [`Context::take`].
    pub(crate) unsafe fn change(context: *mut c_void, action: impl FnOnce(&mut OpenScope)) {
        // SAFETY: by the caller's word.
        let context = unsafe { context.cast::<Self>().as_mut() };
        if let Some(scope) = context.and_then(|context| context.scope.as_mut()) {
            action(scope);
        }
    }

    /// Takes out the scope that a context holds.
    ///
    /// # Safety
    /// The pointer is null, or came from [`Context::hold`] and was not destroyed since.
    #[inline]
    pub(crate) unsafe fn take(context: *mut c_void) -> Option<OpenScope> {
        // SAFETY: by the caller's word; torch ends a scope on one thread only.
        let context = unsafe { context.cast::<Self>().as_mut() };
        context.and_then(|context| context.scope.take())
    }
}

/// The contexts of one thread that are not in use.
#[derive(Debug)]
pub(crate) struct FreeList(Cell<*mut Context>);

impl FreeList {
    pub(crate) const fn new() -> Self {
        Self(Cell::new(ptr::null_mut()))
    }

    #[inline]
    fn take(&self) -> *mut Context {
        let mut first = self.0.get();
        if first.is_null() {
            first = more();
        }
        // SAFETY: contexts of the list are the list's alone, and never freed.
        self.0.set(unsafe { (*first).next });
        first
    }

    #[inline]
    fn put(&self, context: *mut Context) {
        // SAFETY: torch has destroyed it, so that it is the list's from now on.
        unsafe { (*context).next = self.0.get() };
        self.0.set(context);
    }
}

impl Drop for FreeList {
    fn drop(&mut self) {
        let mut next = self.0.replace(ptr::null_mut());
        while !next.is_null() {
            let context = next;
            // SAFETY: as in `take`.
            next = unsafe { (*context).next };
            spare(context);
        }
    }
}

/// Returns a list of contexts: those of threads that have ended, or new ones.
#[cold]
fn more() -> *mut Context {
    // All at once, so that nobody else has any of them. Acquire: pairs with the release in `spare`.
    let spare = SPARE.swap(ptr::null_mut(), Ordering::Acquire);
    if !spare.is_null() {
        return spare;
    }
    let block = Box::leak(Box::new(std::array::from_fn::<_, BLOCK, _>(|_| Context {
        table: &TABLE,
        scope: None,
        next: ptr::null_mut(),
    })));
    let mut next = ptr::null_mut();
    for context in block.iter_mut().rev() {
        context.next = next;
        next = context;
    }
    next
}

/// Gives a context to the next thread that needs some.
#[cold]
fn spare(context: *mut Context) {
    let mut first = SPARE.load(Ordering::Relaxed);
    loop {
        // SAFETY: the context is ours until it is in the list.
        unsafe { (*context).next = first };
        // Release: who takes the list sees the link. Nobody takes single contexts out, so that a
        // first one that is the same again has the same list behind it.
        match SPARE.compare_exchange_weak(first, context, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => first = now,
        }
    }
}

/// Ends the life of an object that is not freed.
unsafe extern "C" fn keep(_context: *mut Context) {}

/// Is called when torch is done with a context, on whichever thread.
unsafe extern "C" fn give_back(context: *mut Context) {
    let put = |state: &threads::ThreadState| {
        if ptr::eq(state.evaluation.get().cast(), context) {
            state.evaluation.set(ptr::null_mut());
        }
        state.contexts.put(context);
    };
    // A thread that is ending has no list any more.
    if threads::with_state(put).is_none() {
        spare(context);
    }
}
