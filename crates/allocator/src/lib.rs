//! The allocator of the `mindprof` program and the native module: the system's, with huge pages
//! under large blocks.
//!
//! A profile of 300,000 events takes 20 MB in a few blocks that are filled at once. With 4-KiB pages, the page faults alone take as long as the whole computation; `benchmarks/huge_pages.py`
//! measures their cost on a machine. Small blocks go straight to the system.
//!
//! It only works on Linux: other systems require that a block is freed with the alignment it was
//! allocated with.

#![cfg(target_os = "linux")]
#![expect(
    unsafe_code,
    reason = "an allocator hands out raw memory; every call is forwarded to the system's"
)]

use std::alloc::{GlobalAlloc, Layout, LayoutError, System};

const HUGE_PAGE: usize = 2 << 20;

/// The size from which a block is large: it fills most of a huge page, which then costs less than
/// the small pages it replaces.
const LARGE: usize = HUGE_PAGE / 2;

/// The size above which a block has a mapping of its own. The system extends a mapping without a
/// copy as long as all of it has the same advice.
const MAPPED: usize = 32 << 20;

const PAGE: usize = 4 << 10;

/// The system's allocator, with huge pages under large blocks. Declare it as the
/// `#[global_allocator]` of a program or a loaded library.
#[derive(Debug)]
pub struct HugePages;

// SAFETY: every block comes from the system's allocator and returns to it. Blocks may be larger and
// more aligned than requested, since `free` and `realloc` on Linux need neither value, and
// `madvise` does not change their contents.
unsafe impl GlobalAlloc for HugePages {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if (LARGE..=MAPPED).contains(&layout.size())
            && let Ok(layout) = whole_pages(layout)
        {
            // SAFETY: the size is at least `LARGE`, so it is not zero.
            let block = unsafe { System.alloc(layout) };
            advise(block, layout.size());
            return block;
        }
        // SAFETY: the caller of this trait method guarantees what the system's method requires.
        let block = unsafe { System.alloc(layout) };
        advise(block, layout.size());
        block
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // The alignment stays as requested: the system knows which of its blocks are zero already,
        // and would have to fill one that it aligns itself.
        // SAFETY: the caller of this trait method guarantees what the system's method requires.
        let block = unsafe { System.alloc_zeroed(layout) };
        advise(block, layout.size());
        block
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller guarantees that the block came from this allocator and so from the
        // system's, whose `realloc` ignores the alignment.
        let block = unsafe { System.realloc(block, layout, size) };
        advise(block, size);
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as in `realloc`; the system's `free` ignores the layout.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Returns a layout that begins at a huge page, and that ends at one if at least half of the last
/// page is used.
fn whole_pages(layout: Layout) -> Result<Layout, LayoutError> {
    let size = layout.size();
    let size = if size % HUGE_PAGE >= HUGE_PAGE / 2 {
        size.next_multiple_of(HUGE_PAGE)
    } else {
        size
    };
    Layout::from_size_align(size, layout.align().max(HUGE_PAGE))
}

/// Asks for huge pages if the block is large: under the pages that lie entirely within it or, if it
/// has a mapping of its own, under all of that.
#[inline]
fn advise(block: *mut u8, size: usize) {
    if size >= LARGE && !block.is_null() {
        advise_large(block, size);
    }
}

#[cold]
fn advise_large(block: *mut u8, size: usize) {
    let (begin, end) = (block.addr(), block.addr() + size);
    let (begin, end) = if size > MAPPED {
        (begin / PAGE * PAGE, end.next_multiple_of(PAGE))
    } else {
        let end = end / HUGE_PAGE * HUGE_PAGE;
        (begin.next_multiple_of(HUGE_PAGE).min(end), end)
    };
    if begin < end {
        // SAFETY: the range lies within the block's own pages, and `madvise` does not change their
        // contents. If the system ignores the advice, the pages stay small.
        let _ = unsafe {
            libc::madvise(
                block.with_addr(begin).cast(),
                end - begin,
                libc::MADV_HUGEPAGE,
            )
        };
    }
}
