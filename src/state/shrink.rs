//! Giving pages back when entries have gone (rule 6 at the head of the room). What cannot be done at once is left: the entry
//! that has gone is gone, and the next one that goes comes by here again.

use super::buckets::Buckets;
use super::head::{HEAD_BYTES, Head, next_of};
use super::layout::{Layout, in_proportion};
use super::room::{Load, Region};
use super::{StateError, chain::chain};
use crate::page::PageId;

/// A page is looked at about as often as this while a full one becomes empty.
const LOOKS: usize = 64;
/// So many entries are looked at one by one.
const FEW: u32 = 64;

impl Buckets {
    /// An entry has been taken out of a page of the bucket of `hash`, which takes `limit` entries and still has `count`.
    #[inline]
    pub fn one_less(&mut self, hash: u64, id: PageId, count: u32, limit: usize) {
        // Saturating: the number comes from a snapshot.
        self.len = self.len.saturating_sub(1);
        if count as usize & ((limit / LOOKS).next_power_of_two() - 1) == 0 {
            // The entry is gone, whatever becomes of its page: what is damaged will be met again, and told of, by who needs it.
            let _ = self.give_back(hash, id);
        }
    }

    /// Looks whether the pages of a bucket have become too many for what they hold. Two pages of a chain, or two buddies, become
    /// one if together they are half of what a page is filled with: so it takes as many new entries until they are two again,
    /// and each moves a constant number of times.
    #[inline(never)]
    fn give_back(&mut self, hash: u64, id: PageId) -> Result<(), StateError> {
        let mut next = Some(id);
        while let Some(id) = next {
            next = self.give_back_one(hash, id)?;
        }
        Ok(())
    }

    /// Says which page has become fuller, if one has: it may be due again.
    fn give_back_one(&mut self, hash: u64, id: PageId) -> Result<Option<PageId>, StateError> {
        let bucket = self.directory.bucket_of(hash);
        if next_of(self.pages.read(bucket)?).is_none() {
            let is_merged = self.merge_with_buddy(bucket)?;
            return Ok(is_merged.then(|| self.directory.bucket_of(hash)));
        }
        let chain = chain(&self.pages, bucket)?;
        let Some(at) = chain.iter().position(|&page| page == id) else { return Ok(None) };
        for at in [at.checked_sub(1), Some(at)].into_iter().flatten() {
            let (Some(&into), Some(&from)) = (chain.get(at), chain.get(at + 1)) else { continue };
            if self.absorb(into, from)? {
                let next = next_of(self.pages.read(from)?);
                let page = self.pages.write(into)?;
                Head { next, ..Head::load(page) }.store(page);
                self.pages.free(from);
                return Ok(Some(into));
            }
        }
        Ok(None)
    }

    /// Makes one bucket of two that differ in the last bit of their prefix. Both are of one page.
    fn merge_with_buddy(&mut self, bucket: PageId) -> Result<bool, StateError> {
        let head = Head::load(self.pages.read(bucket)?);
        let region = Region { prefix: head.prefix, depth: u32::from(head.depth) };
        let Some(buddy) = region.buddy().filter(|_| !region.hashes().covers(&self.range)) else { return Ok(false) };
        if !buddy.hashes().meets(&self.range) {
            return self.widen(bucket, region, buddy);
        }
        let other = self.directory.bucket_of(buddy.prefix.max(self.range.start));
        // One that is in the snapshot still is not fetched for this.
        if self.pages.is_absent(other) {
            return Ok(false);
        }
        let other_head = Head::load(self.pages.read(other)?);
        if other_head.depth != head.depth || other_head.next.is_some() {
            return Ok(false);
        }
        if !self.directory.may_merge(self.buckets - 1) {
            self.directory.halve_in_time(region, self.buckets);
            if !self.directory.may_merge(self.buckets - 1) {
                return Ok(false);
            }
        }
        // The fewer move.
        let is_smaller = head.count < other_head.count;
        let (into, from, moved) = if is_smaller { (other, bucket, region) } else { (bucket, other, buddy) };
        if !self.absorb(into, from)? {
            return Ok(false);
        }
        self.join(into, region, buddy)?;
        self.directory.point(moved.prefix, moved.depth, into);
        self.buckets -= 1;
        self.pages.free(from);
        self.directory.halve_in_time(region, self.buckets);
        Ok(true)
    }

    /// The buddy is no hash of this task's.
    fn widen(&mut self, bucket: PageId, region: Region, buddy: Region) -> Result<bool, StateError> {
        let is_half = self.is_half(self.most_of(self.pages.read(bucket)?));
        if is_half {
            self.join(bucket, region, buddy)?;
        }
        Ok(is_half)
    }

    /// The page is from now on for the hashes of both.
    fn join(&mut self, bucket: PageId, region: Region, buddy: Region) -> Result<(), StateError> {
        let page = self.pages.write(bucket)?;
        Head { prefix: region.prefix & buddy.prefix, depth: region.depth as u8 - 1, ..Head::load(page) }.store(page);
        Ok(())
    }

    /// Copies all entries of a page into another one, if together they fill half a page at most. If pages run out, nothing has
    /// changed.
    fn absorb(&mut self, into: PageId, from: PageId) -> Result<bool, StateError> {
        let (page, coming) = (self.pages.read(into)?, self.most_of(self.pages.read(from)?));
        let (shape, low) = (self.layout.shape_of(page), Head::load(page).heap_low as usize);
        let both = self.most_of(page) + coming;
        if !self.is_half(both) {
            return Ok(false);
        }
        // The only step that can fail.
        self.pages.write(into)?;
        if coming.count == 0 {
            return Ok(true);
        }
        if both.count > shape.limit() || low < shape.end() + coming.heap_live {
            self.compact(into, self.groups_for(both.count, both.heap_live))?;
        }
        let mut copy = std::mem::take(&mut self.scratch.page);
        copy.clear();
        copy.extend_from_slice(self.pages.read(from)?);
        let page = self.pages.write(into)?;
        for entry in self.layout.entries(&copy) {
            self.layout.add(page, entry.hash(&self.hasher), &entry.trimmed());
        }
        self.scratch.page = copy;
        Ok(true)
    }

    /// What a page holds, or somewhat more: who has many entries is not asked for the room that each has to spare.
    fn most_of(&self, page: &[u8]) -> Load {
        let head = Head::load(page);
        if self.layout != Layout::Heap || head.count <= FEW {
            return self.load_of(page);
        }
        Load { count: head.count as usize, heap_live: head.heap_live(page.len()) }
    }

    /// Whether so much fills half a page at most, and fits.
    fn is_half(&self, load: Load) -> bool {
        let page_bytes = self.pages.page_bytes();
        let shape = self.layout.shape(self.groups_for(load.count, load.heap_live));
        load.count <= shape.limit()
            && shape.end() + load.heap_live <= page_bytes
            && match self.layout {
                Layout::Fixed { .. } => load.count * 2 <= in_proportion(shape.limit(), self.is_near()),
                Layout::Heap => (shape.bytes_of(load.count) + load.heap_live) * 2 <= page_bytes - HEAD_BYTES,
            }
    }
}
