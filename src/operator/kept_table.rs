//! A table of an operator as snapshots see it: under which names it is kept, how it is opened from what was kept, and what
//! becomes of a cut. It does not know what the operator does with it.
//!
//! What of it is still as a program with another type of value has left it is kept beside it, under a name of its own: of
//! `table` that is `table@outdated`, and `table@outdated-2` where there is such a one already.

use super::kept::{Typed, evolution_of_values};
use super::operating::Open;
use super::viewing::{TableCut, Viewing};
use crate::error::{Error, Failed};
use crate::record::{Record, Schema};
use crate::snapshot::{Entry, RestoredEntry};
use crate::state::{Migrating, OldPart, Part, PartPages, range_of};
use std::ops::{Deref, DerefMut};

const OUTDATED: &str = "@outdated";

/// The state that a kept one belongs to: itself, unless it is an outdated part of another.
pub(crate) fn state_of(kept: &str) -> &str {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match kept.rsplit_once(OUTDATED) {
        Some((state, number)) if number.is_empty() || number.strip_prefix('-').is_some_and(is_number) => state,
        _ => kept,
    }
}

/// A name for what of a state is outdated from now on, beside those that are kept.
pub(crate) fn outdated_name<'a>(state: &str, kept: impl Iterator<Item = &'a str> + Clone) -> String {
    let numbered = (2..).map(|number| format!("{state}{OUTDATED}-{number}"));
    let mut names = std::iter::once(format!("{state}{OUTDATED}")).chain(numbered);
    names.find(|name| kept.clone().all(|kept| kept != name)).expect("numbers do not end")
}

/// A table and the name of the state that it is kept as.
pub(super) struct KeptTable<K, V> {
    state: String,
    schema: Schema,
    table: Migrating<K, V>,
    /// A view that is being taken: what of it is not complete.
    viewed: Vec<Viewed>,
}

/// A cut that is not complete.
struct Viewed {
    /// None: of the table itself; else of the outdated part of this name.
    outdated: Option<String>,
    root: Vec<u8>,
}

impl<K: Record, V: Record> KeptTable<K, V> {
    /// Opens the table of a task: empty, or its range of what the tasks of a snapshot have left. Entries of other states
    /// are passed over.
    pub fn open<'a>(
        open: &Open,
        state: &str,
        restored: impl Iterator<Item = &'a RestoredEntry>,
    ) -> Result<Self, Error> {
        let ours: Vec<_> = restored.filter(|entry| state_of(&entry.state) == state).collect();
        let fresh = outdated_name(state, ours.iter().map(|entry| entry.state.as_str()));
        let now = Typed::of::<(K, V)>();
        let (mut parts, mut old) = (Vec::new(), Vec::new());
        for entry in ours {
            let (schemas, evolution) = evolution_of_values(entry, &now, open.epoch)?;
            let is_itself = entry.state == state;
            let is_now = is_itself && evolution.is_identity();
            let Some(part) = part(open, entry, is_now)? else { continue };
            if is_now {
                parts.push(part);
            } else {
                let name = if is_itself { fresh.clone() } else { entry.state.clone() };
                old.push(OldPart { name, schemas, evolution, part });
            }
        }
        let range = range_of(open.task, open.tasks);
        let table = Migrating::restore(&open.pool, open.hasher, range, &parts, old);
        let table = table.map_err(|error| open.failed(error))?;
        Ok(Self { state: state.to_owned(), schema: now.schema, table, viewed: Vec::new() })
    }

    /// The cut: hands over what has changed since the last durable checkpoint.
    pub fn freeze(&mut self, open: &Open, entries: &mut Vec<Entry>) {
        let (root, pages) = self.table.table().freeze();
        entries.push(open.entry(&self.state, &self.schema, |bytes| bytes.extend(root), Some(pages)));
        for part in self.table.outdated() {
            let (root, pages) = part.freeze();
            let [then, since @ ..] = part.schemas() else { unreachable!("a part has had a type") };
            let mut entry = open.entry(part.name(), then, |bytes| bytes.extend(root), Some(pages));
            since.iter().for_each(|schema| schema.encode(&mut entry.schema));
            entries.push(entry);
        }
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
                self.viewed = vec![Viewed { outdated: None, root: self.table.table().begin_view() }];
                let part = |part: &mut crate::state::Outdated| Viewed {
                    outdated: Some(part.name().to_owned()),
                    root: part.begin_view(),
                };
                self.viewed.extend(self.table.outdated().iter_mut().map(part));
                return Ok(false);
            }
            Viewing::Step { pages, complete } => {
                for viewed in std::mem::take(&mut self.viewed) {
                    if let Some(viewed) = self.view_step(viewed, open, *pages, complete)? {
                        self.viewed.push(viewed);
                    }
                }
            }
            Viewing::Drop => {
                self.table.drop_view();
                self.viewed.clear();
            }
        }
        Ok(self.viewed.is_empty())
    }

    /// Goes on with a cut, and gives it back if it is not complete.
    fn view_step(
        &mut self,
        viewed: Viewed,
        open: &Open,
        pages: u32,
        complete: &mut Vec<TableCut>,
    ) -> Result<Option<Viewed>, Failed> {
        let mut outdated = None;
        let pages = match &viewed.outdated {
            None => self.table.table().view_step(pages)?,
            Some(name) => {
                let part = self.table.outdated().iter_mut().find(|part| part.name() == name);
                let part = part.expect("a part that is viewed stays");
                outdated = Some(part.evolution().clone());
                part.view_step(pages)?
            }
        };
        let Some(pages) = pages else { return Ok(Some(viewed)) };
        complete.push(TableCut {
            operator: open.operator.clone(),
            state: self.state.clone(),
            task: open.task,
            tasks: open.tasks,
            schema: self.schema.clone(),
            outdated,
            root: viewed.root,
            pages,
        });
        Ok(None)
    }

    /// Reads one page of what was restored, or migrates a page of what is outdated. Whether that was all.
    pub fn hydrate(&mut self) -> Result<bool, Failed> {
        Ok(self.table.hydrate(1)?)
    }
}

impl<K, V> Deref for KeptTable<K, V> {
    type Target = Migrating<K, V>;
    #[inline]
    fn deref(&self) -> &Migrating<K, V> {
        &self.table
    }
}

impl<K, V> DerefMut for KeptTable<K, V> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Migrating<K, V> {
        &mut self.table
    }
}

/// What of an entry goes into a task's table. A task at the old parallelism goes on with just what it had left itself, and
/// reads its pages when it needs them. Else tables are dealt out anew: each task reads what it needs of a part that is as
/// tables are now, and of an outdated one all pages are read, once for all tasks.
fn part<'a>(open: &Open, entry: &'a RestoredEntry, is_now: bool) -> Result<Option<Part<'a>>, Error> {
    if entry.tasks == open.tasks && entry.task != open.task {
        return Ok(None);
    }
    let pages = match entry.source() {
        Some(source) if is_now || entry.tasks == open.tasks => PartPages::Absent(source),
        _ => PartPages::Here(entry.pages()?.collect()),
    };
    Ok(Some(Part { root: &entry.root, pages }))
}

#[cfg(all(test, not(snapring_loom)))]
mod tests {
    use super::*;

    #[test]
    fn outdated_parts_are_known_by_their_names() {
        let known = ["table", "table@outdated", "table@outdated-2", "table@outdated-17"];
        assert!(known.iter().all(|name| state_of(name) == "table"));
        for other in ["table@outdated-", "table@outdated2", "table@outdated-x", "outdated"] {
            assert_eq!(state_of(other), other);
        }
        let names = |kept: &[&'static str]| outdated_name("table", kept.iter().copied());
        assert_eq!(names(&["table"]), "table@outdated");
        assert_eq!(names(&["table", "table@outdated"]), "table@outdated-2");
        assert_eq!(names(&["table@outdated-2"]), "table@outdated");
    }
}
