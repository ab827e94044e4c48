//! The contexts that torch keeps for the observer between the begin and the end of a scope.
//!
//! torch owns a context through a pointer to a C++ object and destroys it through its virtual
//! table, so ours begin with one. Each thread has a free list, to which the thread that destroys a
//! context returns it: nothing is allocated per scope. The memory is never freed, because torch may
//! return a context long after the observer was removed.

#![expect(
    unsafe_code,
    reason = "torch holds contexts as raw pointers to C++ objects"
)]

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use mindprof_record::OpenScope;

use crate::threads;

/// The virtual table of a C++ object that has only a virtual destructor.
#[repr(C)]
struct Table {
    destroy: unsafe extern "C" fn(*mut Context),
    destroy_and_free: unsafe extern "C" fn(*mut Context),
}

static TABLE: Table = Table {
    destroy: keep,
    destroy_and_free: give_back,
};

/// A context: one open scope, behind a virtual table.
#[repr(C)]
pub(crate) struct Context {
    table: &'static Table,
    scope: Option<OpenScope>,
    /// The next context of a free list.
    next: *mut Self,
}

/// How many contexts are allocated at once: more than scopes nest.
const BLOCK: usize = 64;

/// The free contexts of threads that have ended.
static SPARE: AtomicPtr<Context> = AtomicPtr::new(ptr::null_mut());

impl Context {
    /// Returns a context that holds `scope`, as the pointer that torch keeps.
    #[inline]
    pub(crate) fn hold(scope: OpenScope, free: &FreeList) -> *mut c_void {
        let context = free.take();
        // SAFETY: `take` removed the context from the free list of this thread, so nobody else has
        // it.
        unsafe { (*context).scope = Some(scope) };
        context.cast()
    }

    /// Calls `action` with the scope that a context holds.
    ///
    /// # Safety
    /// As for [`Context::take`].
    pub(crate) unsafe fn change(context: *mut c_void, action: impl FnOnce(&mut OpenScope)) {
        // SAFETY: the caller guarantees that the pointer is null or a live context.
        let context = unsafe { context.cast::<Self>().as_mut() };
        if let Some(scope) = context.and_then(|context| context.scope.as_mut()) {
            action(scope);
        }
    }

    /// Takes out the scope that a context holds.
    ///
    /// # Safety
    /// The pointer is null, or came from [`Context::hold`] and has not been destroyed since.
    #[inline]
    pub(crate) unsafe fn take(context: *mut c_void) -> Option<OpenScope> {
        // SAFETY: the caller guarantees that the pointer is null or a live context. torch ends a
        // scope on one thread only, so the reference is unique.
        let context = unsafe { context.cast::<Self>().as_mut() };
        context.and_then(|context| context.scope.take())
    }
}

/// The free contexts of one thread.
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
        // SAFETY: contexts of the list belong to the list alone and are never freed.
        self.0.set(unsafe { (*first).next });
        first
    }

    #[inline]
    fn put(&self, context: *mut Context) {
        // SAFETY: torch has destroyed the context, so it belongs to the list from now on.
        unsafe { (*context).next = self.0.get() };
        self.0.set(context);
    }
}

impl Drop for FreeList {
    fn drop(&mut self) {
        let mut next = self.0.replace(ptr::null_mut());
        while !next.is_null() {
            let context = next;
            // SAFETY: contexts of the list belong to the list alone and are never freed.
            next = unsafe { (*context).next };
            spare(context);
        }
    }
}

/// Returns a list of contexts: those of threads that have ended, or new ones.
#[cold]
fn more() -> *mut Context {
    // Taken all at once, so that nobody else has any of them. Acquire: pairs with the release in
    // `spare`.
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

/// Gives a context to the next thread that runs out of them.
#[cold]
fn spare(context: *mut Context) {
    let mut first = SPARE.load(Ordering::Relaxed);
    loop {
        // SAFETY: the context belongs to this function until it is in the list.
        unsafe { (*context).next = first };
        // Release: the thread that takes the list sees the link. Single contexts are never taken
        // out, so a first context that reappears still has the same list behind it.
        match SPARE.compare_exchange_weak(first, context, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => first = now,
        }
    }
}

/// The destructor of an object that is not freed.
unsafe extern "C" fn keep(_context: *mut Context) {}

/// Called when torch destroys a context, on any thread.
unsafe extern "C" fn give_back(context: *mut Context) {
    let put = |state: &threads::ThreadState| {
        if ptr::eq(state.evaluation.get().cast(), context) {
            state.evaluation.set(ptr::null_mut());
        }
        state.contexts.put(context);
    };
    // A thread that is ending has no free list any more.
    if threads::with_state(put).is_none() {
        spare(context);
    }
}
