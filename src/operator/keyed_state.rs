//! The state of a keyed operator, as all of them keep it: a table, and how far the emission at the end has come.

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
use crate::state::{Drained, Hasher, Window, range_of};

/// Records that are looked up together.
pub(super) const WINDOW: usize = 64;

/// The names of what is kept.
pub(crate) const TABLE: &str = "table";
const EMITTED: &str = "emitted";

pub(super) struct KeyedState<K, V> {
    open: Open,
    pub table: KeptTable<K, V>,
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
        let mut emitted = at_end.then(|| Emitted::nothing(range_of(open.task, open.tasks)));
        let restored: Vec<_> = restored.collect();
        if let Some(emitted) = &mut emitted {
            for entry in restored.iter().filter(|entry| entry.state == EMITTED) {
                emitted.add(value(entry, open.epoch)?);
            }
        }
        let table = KeptTable::open(&open, TABLE, restored.into_iter())?;
        Ok(Self { open, table, emitted })
    }

    /// Moves as many records into the window as it takes, each with its key as `enter` has put it in, and has their places
    /// fetched. They are then taken out one by one.
    #[inline]
    pub fn fill<'a, T, R>(
        &mut self,
        window: &'a mut Window<R>,
        records: &mut Records<'_, T>,
        enter: impl Fn(&mut Window<R>, &Hasher, T),
    ) -> Taken<Drained<'a, R>> {
        records.take(WINDOW).for_each(|record| enter(window, &self.open.hasher, record));
        self.table.prefetch_all(window);
        Taken(window.drain())
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
        if let Some(emitted) = &self.emitted {
            let ranges = emitted.ranges();
            let schema = Vec::<(u64, u64)>::schema();
            entries.push(self.open.entry(EMITTED, &schema, |bytes| ranges.encode(bytes), None));
        }
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
