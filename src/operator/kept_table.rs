//! A table of an operator as snapshots see it: under which names it is kept, how it is opened from what was kept, and what
//! becomes of a cut. It does not know what the operator does with it.

use super::operating::Open;
use super::viewing::{TableCut, Viewing};
use crate::error::{Error, Failed};
use crate::record::{Record, Schema};
use crate::snapshot::{Entry, RestoredEntry};
use crate::state::{Part, PartPages, Table, range_of};
use std::ops::{Deref, DerefMut};

/// A table and the name of the state that it is kept as.
pub(super) struct KeptTable<K, V> {
    state: String,
    schema: Schema,
    table: Table<K, V>,
    /// The root of a view that is being taken.
    viewed: Option<Vec<u8>>,
}

impl<K: Record, V: Record> KeptTable<K, V> {
    /// Opens the table of a task: empty, or its range of what the tasks of a snapshot have left. Entries of other states
    /// are passed over.
    pub fn open<'a>(
        open: &Open,
        state: &str,
        restored: impl Iterator<Item = &'a RestoredEntry>,
    ) -> Result<Self, Error> {
        let parts = restored.filter(|entry| entry.state == state).map(|entry| part(open, entry));
        // Schemas have been checked before anything was opened.
        let parts: Vec<Part<'_>> = parts.filter_map(Result::transpose).collect::<Result<_, _>>()?;
        let range = range_of(open.task, open.tasks);
        let table = Table::restore(&open.pool, open.hasher, range, &parts).map_err(|error| open.failed(error))?;
        Ok(Self { state: state.to_owned(), schema: <(K, V)>::schema(), table, viewed: None })
    }

    /// The cut: hands over what has changed since the last durable checkpoint.
    pub fn freeze(&mut self, open: &Open, entries: &mut Vec<Entry>) {
        let (root, pages) = self.table.freeze();
        entries.push(open.entry(&self.state, &self.schema, |bytes| bytes.extend(root), Some(pages)));
    }

    /// The last cut has become durable, or was given up.
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

    /// Does what is asked for a view. Whether it is complete here.
    pub fn view(&mut self, open: &Open, asked: &mut Viewing<'_>) -> Result<bool, Failed> {
        match asked {
            Viewing::Begin => {
                self.viewed = Some(self.table.begin_view());
                return Ok(false);
            }
            Viewing::Step { pages, complete } => {
                if let (Some(root), Some(pages)) = (&mut self.viewed, self.table.view_step(*pages)?) {
                    complete.push(TableCut {
                        operator: open.operator.clone(),
                        state: self.state.clone(),
                        task: open.task,
                        tasks: open.tasks,
                        schema: self.schema.clone(),
                        root: std::mem::take(root),
                        pages,
                    });
                    self.viewed = None;
                }
            }
            Viewing::Drop => {
                self.table.drop_view();
                self.viewed = None;
            }
        }
        Ok(self.viewed.is_none())
    }

    /// Reads one page of what was restored. Whether that was all.
    pub fn hydrate(&mut self) -> Result<bool, Failed> {
        Ok(self.table.hydrate(1)?)
    }
}

impl<K, V> Deref for KeptTable<K, V> {
    type Target = Table<K, V>;
    #[inline]
    fn deref(&self) -> &Table<K, V> {
        &self.table
    }
}

impl<K, V> DerefMut for KeptTable<K, V> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Table<K, V> {
        &mut self.table
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
