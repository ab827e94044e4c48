//! The program's and the native module's allocator: the system's, with huge pages for large blocks.
//!
//! A profile of 300,000 events takes 20 MB in a few blocks that are filled at once. In pages of
//! 4 KiB the page faults alone took as long as all that is computed; `benchmarks/huge_pages.py`
//! shows what they cost on a machine. Small blocks go straight to the system.
//!
//! It is for Linux alone: elsewhere a block has to be given back with the alignment that it was
//! taken with.

#![cfg(target_os = "linux")]
#![expect(
    unsafe_code,
    reason = "an allocator hands out raw memory; every call is passed on to the system's"
)]

use std::alloc::{GlobalAlloc, Layout, LayoutError, System};

const HUGE_PAGE: usize = 2 << 20;

/// From here on a block is large: it takes most of a huge page, which then costs less than the small
/// ones.
const LARGE: usize = HUGE_PAGE / 2;

/// Above this a block has a mapping of its own, which the system makes longer without a copy as long
/// as all of it was advised alike.
const MAPPED: usize = 32 << 20;

const PAGE: usize = 4 << 10;

/// The system's allocator, with huge pages.
#[derive(Debug)]
pub struct HugePages;

// SAFETY: memory comes from the system's allocator and goes back to it; a larger size and alignment
// than asked for are allowed, since on Linux `free` and `realloc` need neither; advice changes no
// content.
unsafe impl GlobalAlloc for HugePages {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if (LARGE..=MAPPED).contains(&layout.size())
            && let Ok(layout) = whole_pages(layout)
        {
            // SAFETY: the size is above zero.
            let block = unsafe { System.alloc(layout) };
            advise(block, layout.size());
            return block;
        }
        // SAFETY: the caller's promises, passed on.
        let block = unsafe { System.alloc(layout) };
        advise(block, layout.size());
        block
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // The system knows which of its blocks are zero already: one with another alignment it
        // would have to fill.
        // SAFETY: the caller's promises, passed on.
        let block = unsafe { System.alloc_zeroed(layout) };
        advise(block, layout.size());
        block
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promises, passed on. The system frees and grows blocks of every
        // alignment alike.
        let block = unsafe { System.realloc(block, layout, size) };
        advise(block, size);
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as in `realloc`.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Returns a layout that begins at a huge page, and ends at the end of one if at least half of that
/// is used.
fn whole_pages(layout: Layout) -> Result<Layout, LayoutError> {
    let size = layout.size();
    let size = if size % HUGE_PAGE >= HUGE_PAGE / 2 {
        size.next_multiple_of(HUGE_PAGE)
    } else {
        size
    };
    Layout::from_size_align(size, layout.align().max(HUGE_PAGE))
}

/// Asks for huge pages, if the block is large: under what lies whole within it, or under all of its
/// mapping.
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
        // SAFETY: the pages are those of the block, and advice changes no content. If it is not
        // taken, they stay small.
        let _ = unsafe {
            libc::madvise(
                block.with_addr(begin).cast(),
                end - begin,
                libc::MADV_HUGEPAGE,
            )
        };
    }
}
