//! `fold`, `fold_to_end`, `reduce` and `count`: one value per key, changed by each record with that key.

use super::kept::{check_schema, value};
use super::operating::{Open, Operator};
use super::pipe::Out;
use super::stage::Closure;
use super::{Emit, KeyOf, Progress};
use crate::channel::Records;
use crate::error::{Error, Failed};
use crate::record::{Record, Schema};
use crate::snapshot::{Entry, RestoredEntry};
use crate::state::{HashRange, Part, Table, range_of};

/// How records change the value of their key.
pub(crate) trait Step<T>: Send + 'static {
    /// The value.
    type Value: Record;
    /// The value after the first record of a key.
    fn first(&self, record: T) -> Self::Value;
    /// Takes a further record in.
    fn next(&self, value: &mut Self::Value, record: T);
}

/// From an initial value, by a closure.
pub(crate) struct FromInitial<S, F>(pub(crate) S, pub(crate) Closure<F>);

impl<T, S: Record + Clone, F: Fn(&mut S, T) + Send + Sync + 'static> Step<T> for FromInitial<S, F> {
    type Value = S;
    #[inline]
    fn first(&self, record: T) -> S {
        let mut value = self.0.clone();
        self.next(&mut value, record);
        value
    }
    #[inline]
    fn next(&self, value: &mut S, record: T) {
        self.1.call(|f| f(value, record));
    }
}

/// The first record is the value; a closure joins the others to it.
pub(crate) struct Reducing<F>(pub(crate) Closure<F>);

impl<T: Record, F: Fn(&mut T, T) + Send + Sync + 'static> Step<T> for Reducing<F> {
    type Value = T;
    #[inline]
    fn first(&self, record: T) -> T {
        record
    }
    #[inline]
    fn next(&self, value: &mut T, record: T) {
        self.0.call(|f| f(value, record));
    }
}

/// Counts.
pub(crate) struct Counting;

impl<T> Step<T> for Counting {
    type Value = u64;
    #[inline]
    fn first(&self, _: T) -> u64 {
        1
    }
    #[inline]
    fn next(&self, value: &mut u64, _: T) {
        *value += 1;
    }
}

/// One value per key, in a table.
pub(crate) struct Fold<T, B: KeyOf<T>, S: Step<T>> {
    open: Open,
    key: Closure<B>,
    step: S,
    table: Table<B::Key, S::Value>,
    /// Records on their way into the table, with hash and key: looked up together.
    window: Vec<(u64, B::Key, T)>,
    /// None: values are emitted after each record. Else once per key, when the input has ended.
    emitted: Option<Emitted>,
}

/// Records that are looked up together.
const WINDOW: usize = 64;

/// The names of what is kept.
const TABLE: &str = "table";
const EMITTED: &str = "emitted";

impl<T, B: KeyOf<T>, S: Step<T>> Fold<T, B, S> {
    /// Opens the state of a task: empty, or its range of what the tasks of a snapshot have left.
    pub(crate) fn open<'a>(
        open: Open,
        key: Closure<B>,
        step: S,
        at_end: bool,
        restored: impl Iterator<Item = &'a RestoredEntry>,
    ) -> Result<Self, Error> {
        let range = range_of(open.task, open.tasks);
        let mut parts = Vec::new();
        let mut emitted = at_end.then(|| Emitted::nothing(range));
        for entry in restored {
            match (entry.state.as_str(), &mut emitted) {
                (EMITTED, Some(emitted)) => emitted.add(value(entry, open.epoch)?),
                _ => {
                    check_schema(entry, &Self::schema(), open.epoch)?;
                    parts.push(Part { root: &entry.root, pages: entry.pages().collect() });
                }
            }
        }
        let table = Table::restore(&open.pool, open.hasher, range, &parts).map_err(|error| open.failed(error))?;
        Ok(Self { open, key, step, table, window: Vec::with_capacity(WINDOW), emitted })
    }

    fn schema() -> Schema {
        <(B::Key, S::Value)>::schema()
    }
}

impl<T: Send, B: KeyOf<T, Key: Clone>, S: Step<T, Value: Clone>> Operator for Fold<T, B, S> {
    type In = T;
    type Out = (B::Key, S::Value);

    fn batch(&mut self, records: &mut Records<'_, T>, out: &mut Out<Self::Out>) -> Result<(), Failed> {
        while records.len() > 0 {
            for record in records.by_ref().take(WINDOW) {
                let key = self.key.call(|key| key.owned(&record));
                self.window.push((self.table.hash(&key), key, record));
            }
            let (window, step) = (&mut self.window, &self.step);
            let (first, next) = (|record| step.first(record), |value: &mut _, record| step.next(value, record));
            if self.emitted.is_some() {
                self.table.update_batch(window, first, next, |_| (), |_, ()| Ok::<(), Failed>(()))?;
            } else {
                self.table.update_batch(window, first, next, S::Value::clone, |key, value| out.emit((key, value)))?;
            }
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Out<Self::Out>) -> Result<Progress, Failed> {
        let Some(emitted) = &mut self.emitted else { return Ok(Progress::Done) };
        let Some(gap) = emitted.next_gap() else { return Ok(Progress::Done) };
        let next =
            self.table.scan(
                gap.start,
                |hash, key, value| {
                    if hash <= gap.end_inclusive { out.emit((key, value)) } else { Ok(()) }
                },
            )?;
        emitted.add_to(gap, next);
        Ok(Progress::Made)
    }

    fn freeze(&mut self) -> Vec<Entry> {
        let (root, pages) = self.table.freeze();
        let table = self.open.entry(TABLE, &Self::schema(), |bytes| bytes.extend(root), Some(pages));
        let emitted = self.emitted.as_ref().map(|emitted| {
            let ranges = emitted.ranges();
            self.open.entry(EMITTED, &Vec::<(u64, u64)>::schema(), |bytes| ranges.encode(bytes), None)
        });
        std::iter::once(table).chain(emitted).collect()
    }

    fn settle(&mut self, durable: bool) {
        if durable {
            self.table.durable();
        } else {
            self.table.abandon();
        }
    }

    fn forget(&mut self) -> Result<(), Failed> {
        self.table.forget();
        Ok(())
    }
}

/// Which keys have been emitted, as ranges of their hash: so that it means the same at any parallelism.
struct Emitted {
    /// What this task is for.
    range: HashRange,
    /// Sorted, apart, and within the range.
    done: Vec<(u64, u64)>,
}

impl Emitted {
    fn nothing(range: HashRange) -> Self {
        Self { range, done: Vec::new() }
    }

    fn ranges(&self) -> Vec<(u64, u64)> {
        self.done.clone()
    }

    /// Takes in ranges, as far as they are this task's.
    fn add(&mut self, ranges: Vec<(u64, u64)>) {
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
    fn next_gap(&self) -> Option<HashRange> {
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
    fn add_to(&mut self, gap: HashRange, next: Option<u64>) {
        let last = next.map_or(gap.end_inclusive, |next| (next - 1).min(gap.end_inclusive));
        self.add(vec![(gap.start, last)]);
    }
}

#[cfg(test)]
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
