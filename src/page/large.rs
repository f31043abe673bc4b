//! Many values side by side, in huge pages if they are very many: where the system gives memory by small ones, that costs more
//! than what is then put into it. It does not know what that is.

#![allow(unsafe_code)]

use rustix::mm::{Advice, madvise};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// The size of a huge page of x86-64, and of aarch64 with pages of 4 KiB.
const HUGE_BYTES: usize = 2 << 20;

/// No page of the system is smaller.
const STEP_BYTES: usize = 4096;

/// Asks the system to give this memory, which somebody has allocated and not touched yet, in huge pages, as far as whole ones
/// lie in it. Where there are none, small ones do.
pub(super) fn in_huge_pages(first: NonNull<u8>, bytes: usize) {
    let before = first.addr().get() % STEP_BYTES;
    // SAFETY: the advice changes nothing in the pages that it is about, whoever's they are.
    let _ = unsafe { madvise(first.as_ptr().wrapping_sub(before).cast(), bytes + before, Advice::LinuxHugepage) };
}

/// As a boxed slice.
pub(crate) struct Large<T: Copy> {
    first: NonNull<T>,
    len: usize,
    layout: Layout,
}

// SAFETY: the values are its own.
unsafe impl<T: Copy + Send> Send for Large<T> {}
// SAFETY: as above; `&Large` only reads.
unsafe impl<T: Copy + Sync> Sync for Large<T> {}

impl<T: Copy> Large<T> {
    /// So many times the same.
    pub fn of(value: T, len: usize) -> Self {
        let layout = Layout::array::<T>(len).expect("there are addresses enough");
        // Whole huge pages, or none.
        let is_large = layout.size() > HUGE_BYTES / 2;
        let layout = match layout.align_to(HUGE_BYTES) {
            Ok(aligned) if is_large => aligned.pad_to_align(),
            _ => layout,
        };
        let first = match layout.size() {
            0 => NonNull::dangling(),
            // SAFETY: it is not empty.
            _ => NonNull::new(unsafe { alloc(layout) }.cast::<T>()).unwrap_or_else(|| handle_alloc_error(layout)),
        };
        if is_large {
            in_huge_pages(first.cast(), layout.size());
        }
        // SAFETY: there is room for so many, and nothing to drop.
        (0..len).for_each(|at| unsafe { first.add(at).write(value) });
        Self { first, len, layout }
    }
}

impl<T: Copy> From<Vec<T>> for Large<T> {
    fn from(values: Vec<T>) -> Self {
        let mut values = ManuallyDrop::new(values);
        let layout = Layout::array::<T>(values.capacity()).expect("it is there");
        // By its own address: that of the slice would be one of its first values only.
        Self { first: NonNull::new(values.as_mut_ptr()).expect("a vector has an address"), len: values.len(), layout }
    }
}

impl<T: Copy + Default> Default for Large<T> {
    fn default() -> Self {
        Self::of(T::default(), 0)
    }
}

impl<T: Copy> Deref for Large<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `of` has written so many.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.len) }
    }
}

impl<T: Copy> DerefMut for Large<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and `&mut` says that nobody else looks.
        unsafe { std::slice::from_raw_parts_mut(self.first.as_ptr(), self.len) }
    }
}

impl<T: Copy> Drop for Large<T> {
    fn drop(&mut self) {
        if self.layout.size() > 0 {
            // SAFETY: `alloc` gave it for this layout, and nobody can look any more.
            unsafe { dealloc(self.first.as_ptr().cast(), self.layout) };
        }
    }
}
