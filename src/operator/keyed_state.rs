//! The state of a keyed operator, as all of them keep it: a table, and how far the emission at the end has come.

use super::emitted::Emitted;
use super::kept::value;
use super::operating::Open;
use super::stage::{Closure, Taken};
use super::{KeyOf, Progress};
use crate::channel::Records;
use crate::error::{Error, Failed};
use crate::record::{Record, Schema};
use crate::snapshot::{Entry, RestoredEntry};
use crate::state::{Part, PartPages, Table, range_of};

/// Records that are looked up together.
pub(super) const WINDOW: usize = 64;

/// The names of what is kept.
pub(crate) const TABLE: &str = "table";
const EMITTED: &str = "emitted";

pub(super) struct KeyedState<K, V> {
    open: Open,
    pub table: Table<K, V>,
    /// None: nothing is emitted at the end.
    emitted: Option<Emitted>,
}

impl<K: Record, V: Record> KeyedState<K, V> {
    /// Opens the state of a task: empty, or its range of what the tasks of a snapshot have left.
    pub fn open<'a>(
        open: Open,
        at_end: bool,
        restored: impl Iterator<Item = &'a RestoredEntry>,
    ) -> Result<Self, Error> {
        let range = range_of(open.task, open.tasks);
        let mut parts = Vec::new();
        let mut emitted = at_end.then(|| Emitted::nothing(range));
        for entry in restored {
            match (entry.state.as_str(), &mut emitted) {
                (EMITTED, Some(emitted)) => emitted.add(value(entry, open.epoch)?),
                // Its schema has been checked before anything was opened.
                _ => parts.extend(part(&open, entry)?),
            }
        }
        let table = Table::restore(&open.pool, open.hasher, range, &parts).map_err(|error| open.failed(error))?;
        Ok(Self { open, table, emitted })
    }

    fn schema() -> Schema {
        <(K, V)>::schema()
    }

    /// Moves as many records into the window as it takes, each with its key and the hash of that, and has their places
    /// fetched. They are then taken out one by one.
    #[inline]
    pub fn fill<'a, T, B: KeyOf<T, Key = K>>(
        &mut self,
        window: &'a mut Vec<(u64, K, T)>,
        records: &mut Records<'_, T>,
        key: &Closure<B>,
    ) -> Taken<'a, (u64, K, T)> {
        for record in records.take(WINDOW) {
            let key = key.call(|key| key.owned(&record));
            window.push((self.table.hash(&key), key, record));
        }
        self.table.prefetch_all(window);
        Taken(window.drain(..))
    }

    /// The input has ended: gives a page of keys, each with its value, to `each`. `Done` if there were none left.
    pub fn end(&mut self, mut each: impl FnMut(K, V) -> Result<(), Failed>) -> Result<Progress, Failed> {
        let Some(emitted) = &mut self.emitted else { return Ok(Progress::Done) };
        let Some(gap) = emitted.next_gap() else { return Ok(Progress::Done) };
        let next = self.table.scan(
            gap.start,
            |hash, key, value| {
                if hash <= gap.end_inclusive { each(key, value) } else { Ok(()) }
            },
        )?;
        emitted.add_to(gap, next);
        Ok(Progress::Made)
    }

    pub fn freeze(&mut self) -> Vec<Entry> {
        let (root, pages) = self.table.freeze();
        let table = self.open.entry(TABLE, &Self::schema(), |bytes| bytes.extend(root), Some(pages));
        let emitted = self.emitted.as_ref().map(|emitted| {
            let ranges = emitted.ranges();
            self.open.entry(EMITTED, &Vec::<(u64, u64)>::schema(), |bytes| ranges.encode(bytes), None)
        });
        std::iter::once(table).chain(emitted).collect()
    }

    pub fn settle(&mut self, durable: bool) {
        if durable {
            self.table.durable();
        } else {
            self.table.abandon();
        }
    }

    /// Of earlier cuts nothing can be relied on any more: reads what has not been read yet, and the next cut hands over
    /// everything.
    pub fn forget(&mut self) -> Result<(), Failed> {
        Ok(self.table.renew()?)
    }

    /// Reads one page of what was restored. Whether that was all.
    pub fn hydrate(&mut self) -> Result<bool, Failed> {
        Ok(self.table.hydrate(1)?)
    }
}

/// What of an entry goes into a task's table. A task at the old parallelism goes on with just what it had left itself, and
/// reads its pages when it needs them; else tables are dealt out anew, and all pages are read, once for all tasks.
fn part<'a>(open: &Open, entry: &'a RestoredEntry) -> Result<Option<Part<'a>>, Error> {
    if entry.tasks == open.tasks && entry.task != open.task {
        return Ok(None);
    }
    let pages = match entry.source() {
        Some(source) if entry.tasks == open.tasks => PartPages::Absent(source),
        _ => PartPages::Here(entry.pages()?.collect()),
    };
    Ok(Some(Part { root: &entry.root, pages }))
}
