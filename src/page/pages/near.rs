//! Where the pages of a short list lie, for loops over records whose pages are all in the cache: an address in place of an id
//! and what stands behind it. Only pages that have been written to in this epoch have one; whatever is not simply there is for
//! others to find.
//!
//! The addresses are forgotten whenever one of them might no longer be true, or another page might have one: when an epoch
//! begins, and when a page is first written to in it, allocated or freed.

use super::Pages;
use crate::page::PageId;
use std::marker::PhantomData;
use std::ptr;

/// Of a page that has been written to in this epoch; else null.
#[derive(Clone, Copy)]
struct Address(*mut u8);

// SAFETY: an address alone gives access to nothing. Who follows it has the `Pages` that has the page, which is `Send` itself.
unsafe impl Send for Address {}

/// What is remembered from one time to the next.
#[derive(Default)]
pub(super) struct NearList {
    /// Empty: forgotten.
    addresses: Vec<Address>,
    /// Which list it is.
    number: u64,
}

impl NearList {
    pub fn forget(&mut self) {
        self.addresses.clear();
    }
}

/// A list of pages: see [`Pages::near`].
pub struct Near<'a> {
    addresses: &'a [Address],
    head_bytes: usize,
    part_bytes: usize,
    /// Of each page.
    parts: usize,
    pages: PhantomData<&'a mut Pages>,
}

/// A part of a page, to be changed. As far as the compiler knows its address may be null, so that to have found one takes no
/// further compare.
pub struct Part<'a> {
    first: *mut u8,
    len: usize,
    page: PhantomData<&'a mut [u8]>,
}

impl Pages {
    /// The pages of a list, each made of a head of so many bytes and as many parts of this size as fit behind it. Two lists have
    /// the same number only if they are the same; ids that no page has may be among them.
    ///
    /// # Panics
    /// No part fits in a page, or parts have no bytes.
    #[inline]
    pub fn near(&mut self, number: u64, ids: &[PageId], head_bytes: usize, part_bytes: usize) -> Near<'_> {
        if self.near.addresses.is_empty() || self.near.number != number {
            self.find_near(number, ids);
        }
        assert!(head_bytes <= self.page_bytes && part_bytes <= self.page_bytes - head_bytes);
        let parts = (self.page_bytes - head_bytes) / part_bytes;
        Near { addresses: &self.near.addresses, head_bytes, part_bytes, parts, pages: PhantomData }
    }

    #[inline(never)]
    fn find_near(&mut self, number: u64, ids: &[PageId]) {
        let mut addresses = std::mem::take(&mut self.near.addresses);
        addresses.clear();
        // That of the buffer, not one out of a slice: who reads or writes the page by another way makes no end of it.
        let start = |id: PageId| {
            let written = self.entries.get(id as usize).filter(|entry| entry.epoch == self.now);
            written.and_then(|entry| entry.buffer.get()).map_or(ptr::null_mut(), |buffer| buffer.start().as_ptr())
        };
        addresses.extend(ids.iter().map(|&id| Address(start(id))));
        self.near = NearList { addresses, number };
    }
}

impl Near<'_> {
    /// The part that lies at a fraction (in 2⁻³²) of the parts of the page that stands at `index` in the list. None if that page
    /// has not been written to in this epoch, or there is none.
    #[inline(always)]
    pub fn part(&mut self, index: usize, fraction: u32) -> Option<Part<'_>> {
        let Address(page) = *self.addresses.get(index)?;
        if page.is_null() {
            return None;
        }
        let number = ((u64::from(fraction) * self.parts as u64) >> 32) as usize;
        // SAFETY: the page is still where it was, or its address would have been forgotten. A fraction is less than the whole,
        // so `number` is less than `parts`; and so many lie in a page, whose size `near` has divided.
        let first = unsafe { page.add(self.head_bytes + number * self.part_bytes) };
        Some(Part { first, len: self.part_bytes, page: PhantomData })
    }
}

impl<'a> Part<'a> {
    /// Its bytes.
    #[inline(always)]
    pub fn bytes(self) -> &'a mut [u8] {
        // SAFETY: `len` bytes of a page, as found. That nobody else reaches them is as in `Pages::written`: the page's epoch is
        // now, for as long as the `Pages` are borrowed; and for `'a` so is the `Near`, by which other parts could be found.
        unsafe { std::slice::from_raw_parts_mut(self.first, self.len) }
    }
}

#[cfg(all(test, not(snapring_loom)))]
mod tests;
