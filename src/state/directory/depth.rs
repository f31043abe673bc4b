//! How the directory becomes one bit deeper, got ready bit by bit so that it is no step in anybody's latency, or shallower. It does
//! not know when.

use super::{DEEPER, Deeper, Directory, HOLE, number};
use crate::page::PageId;

impl Directory {
    /// Gets so many further entries ready for one bit more. Not where there are deeper directories, or where an entry on the edge
    /// of the range is only half.
    pub(super) fn get_ready(&mut self, entries: usize) {
        let is_whole =
            self.shift > 0 && (self.first << self.shift, self.last()) == (self.range.start, self.range.end_inclusive);
        if is_whole && self.deeper.is_empty() {
            self.next.reserve_exact(2 * self.buckets.len() - self.next.len());
            let from = self.next.len() / 2;
            let entries = &self.buckets[from..self.buckets.len().min(from + entries)];
            self.next.extend(entries.iter().flat_map(|&bucket| [bucket; 2]));
        }
    }

    /// The last hash that has an entry.
    fn last(&self) -> u64 {
        ((self.first + self.buckets.len() as u64 - 1) << self.shift) | ((1 << self.shift) - 1)
    }

    /// One bit more.
    pub(super) fn deepen(&mut self) {
        self.get_ready(self.buckets.len());
        if self.next.len() == 2 * self.buckets.len() {
            self.buckets = std::mem::take(&mut self.next);
            (self.shift, self.first) = (self.shift - 1, 2 * self.first);
            return;
        }
        let mut next = Self::new(self.range, self.depth() + 1);
        for (prefix, &entry) in (self.first..).zip(&self.buckets) {
            let halves = match number(entry) {
                Some(number) => next.halves(std::mem::take(&mut self.deeper[number])),
                None => [entry; 2],
            };
            for (prefix, half) in (2 * prefix..).zip(halves) {
                // On the edge of the range one half may lie outside.
                let at = prefix.checked_sub(next.first).map(|at| at as usize);
                if let Some(place) = at.and_then(|at| next.buckets.get_mut(at)) {
                    *place = half;
                }
            }
        }
        *self = next;
    }

    /// Takes in what becomes of a deeper directory when this one has become a bit deeper itself.
    fn halves(&mut self, deeper: Deeper) -> [PageId; 2] {
        let (low, high) = deeper.buckets.split_at(deeper.buckets.len() / 2);
        [low, high].map(|half| match *half {
            [bucket] => bucket,
            _ => self.add(Deeper { shift: deeper.shift, buckets: half.to_vec(), merges: 0 }),
        })
    }

    /// One bit less, if both entries of each pair are the same bucket.
    pub(super) fn halve(&mut self) {
        let mut less = Self::new(self.range, self.depth() - 1);
        for (prefix, &bucket) in (self.first..).zip(&self.buckets) {
            let entry = &mut less.buckets[(prefix / 2 - less.first) as usize];
            if bucket >= DEEPER || (*entry != HOLE && *entry != bucket) {
                return;
            }
            *entry = bucket;
        }
        *self = less;
    }
}
