//! How far the emission at the end of the input has come: what makes it resumable, and happen once (protocols, rules 33
//! and 34). It knows hashes only.

use crate::state::HashRange;

/// Which keys have been emitted, as ranges of their hash: so that it means the same at any parallelism.
pub(super) struct Emitted {
    /// What this task is for.
    range: HashRange,
    /// Sorted, apart, and within the range.
    done: Vec<(u64, u64)>,
}

impl Emitted {
    pub fn nothing(range: HashRange) -> Self {
        Self { range, done: Vec::new() }
    }

    pub fn ranges(&self) -> Vec<(u64, u64)> {
        self.done.clone()
    }

    /// Takes in ranges, as far as they are this task's.
    pub fn add(&mut self, ranges: Vec<(u64, u64)>) {
        let within = |(start, end): (u64, u64)| (start.max(self.range.start), end.min(self.range.end_inclusive));
        self.done.extend(ranges.into_iter().map(within).filter(|(start, end)| start <= end));
        self.done.sort_unstable();
        // Ranges that touch become one, so that the list stays as short as the number of restores.
        self.done.dedup_by(|next, before| {
            let touches = before.1.checked_add(1).is_none_or(|after| next.0 <= after);
            if touches {
                before.1 = before.1.max(next.1);
            }
            touches
        });
    }

    /// The first range that has not been emitted.
    pub fn next_gap(&self) -> Option<HashRange> {
        let mut start = self.range.start;
        for (first, last) in &self.done {
            if start < *first {
                return Some(HashRange { start, end_inclusive: first - 1 });
            }
            start = last.checked_add(1)?;
        }
        (start <= self.range.end_inclusive).then_some(HashRange { start, end_inclusive: self.range.end_inclusive })
    }

    /// A gap has been emitted up to `next`, or to the end of the table.
    pub fn add_to(&mut self, gap: HashRange, next: Option<u64>) {
        let last = next.map_or(gap.end_inclusive, |next| (next - 1).min(gap.end_inclusive));
        self.add(vec![(gap.start, last)]);
    }
}

#[cfg(all(test, not(snapring_loom)))]
mod tests {
    use super::*;

    fn range(start: u64, end_inclusive: u64) -> HashRange {
        HashRange { start, end_inclusive }
    }

    #[test]
    fn gaps_are_what_no_range_covers() {
        let mut emitted = Emitted::nothing(range(10, 99));
        assert_eq!(emitted.next_gap(), Some(range(10, 99)));
        emitted.add(vec![(0, 19), (50, 59), (99, 200)]);
        assert_eq!(emitted.next_gap(), Some(range(20, 49)));
        emitted.add_to(range(20, 49), Some(30));
        assert_eq!(emitted.ranges(), [(10, 29), (50, 59), (99, 99)]);
        emitted.add_to(range(30, 49), Some(55));
        assert_eq!(emitted.next_gap(), Some(range(60, 98)));
        emitted.add_to(range(60, 98), None);
        assert_eq!((emitted.next_gap(), emitted.ranges()), (None, vec![(10, 99)]));
    }

    #[test]
    fn the_last_hash_is_a_hash() {
        let mut emitted = Emitted::nothing(range(u64::MAX - 1, u64::MAX));
        emitted.add_to(range(u64::MAX - 1, u64::MAX), Some(u64::MAX));
        assert_eq!(emitted.next_gap(), Some(range(u64::MAX, u64::MAX)));
        emitted.add_to(range(u64::MAX, u64::MAX), None);
        assert_eq!(emitted.next_gap(), None);
    }
}
