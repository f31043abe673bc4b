//! One value per key, as operators keep it that have nothing else: a table, and how far the emission at the end has come.

use super::Progress;
use super::emitted::Emitted;
use super::kept::value;
use super::kept_table::KeptTable;
use super::operating::Open;
use super::stage::Taken;
use super::viewing::Viewing;
use crate::channel::Records;
use crate::error::{Error, Failed};
use crate::record::Record;
use crate::snapshot::{Entry, RestoredEntry};
use crate::state::{Drained, Window, range_of};

/// Records that are looked up together.
pub(super) const WINDOW: usize = 256;

/// Moves as many records into a window as it takes, each with its key as `enter` has put it in. They are then taken out one by
/// one.
#[inline]
pub(super) fn fill<'a, K: Record, T, R>(
    window: &'a mut Window<K, R>,
    records: &mut Records<'_, T>,
    enter: impl Fn(&mut Window<K, R>, T),
) -> Taken<Drained<'a, K, R>> {
    records.take(WINDOW).for_each(|record| enter(window, record));
    Taken(window.drain())
}

/// The names of what is kept.
pub(crate) const TABLE: &str = "table";
pub(crate) const EMITTED: &str = "emitted";

pub(super) struct KeyedTable<K, V> {
    open: Open,
    pub table: KeptTable<K, V>,
    /// None: nothing is emitted at the end.
    emitted: Option<Emitted>,
}

impl<K: Record, V: Record> KeyedTable<K, V> {
    /// Opens the state of a task: empty, or its range of what the tasks of a snapshot have left.
    pub fn open<'a>(
        open: Open,
        at_end: bool,
        restored: impl Iterator<Item = &'a RestoredEntry>,
    ) -> Result<Self, Error> {
        let restored: Vec<_> = restored.collect();
        let emitted = at_end.then(|| emitted(&open, &restored)).transpose()?;
        let table = KeptTable::open(&open, TABLE, restored.into_iter())?;
        Ok(Self { open, table, emitted })
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
        let mut entries = Vec::new();
        self.table.freeze(&self.open, &mut entries);
        entries.extend(self.emitted.as_ref().map(|emitted| emitted_entry(&self.open, emitted)));
        entries
    }

    pub fn settle(&mut self, durable: bool) {
        self.table.settle(durable);
    }

    pub fn view(&mut self, asked: &mut Viewing<'_>) -> Result<bool, Failed> {
        self.table.view(&self.open, asked)
    }

    pub fn forget(&mut self) -> Result<(), Failed> {
        self.table.forget()
    }

    pub fn hydrate(&mut self) -> Result<bool, Failed> {
        self.table.hydrate()
    }
}

/// How far the emission at the end has come, of what the tasks of a snapshot have left.
pub(super) fn emitted(open: &Open, restored: &[&RestoredEntry]) -> Result<Emitted, Error> {
    let mut emitted = Emitted::nothing(range_of(open.task, open.tasks));
    for entry in restored.iter().filter(|entry| entry.state == EMITTED) {
        emitted.add(value(entry, open.epoch)?);
    }
    Ok(emitted)
}

/// The same for the next snapshot.
pub(super) fn emitted_entry(open: &Open, emitted: &Emitted) -> Entry {
    let ranges = emitted.ranges();
    open.entry(EMITTED, &Vec::<(u64, u64)>::schema(), |bytes| ranges.encode(bytes), None)
}
