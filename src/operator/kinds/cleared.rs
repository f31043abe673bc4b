//! Collections that are no more, until the last of their elements has gone. It does not know what an element is.

use super::super::operating::Open;
use super::super::viewing::Viewing;
use super::elements::Elements;
use super::{Opening, Tables};
use crate::error::{Error, Failed, StateError};
use crate::record::Record;
use crate::snapshot::Entry;

/// Elements that are removed for each one that comes. More than one, or those that wait could become ever more.
const REMOVED_PER_NEW: u64 = 2;
/// Pages that are looked at in search of some that wait.
const PAGES_MAX: u32 = 8;

/// Elements of a list or a map that was cleared, as far as they are still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Record)]
pub struct Span {
    /// The number of the first.
    pub first: u64,
    /// How many there are.
    pub len: u64,
}

pub(super) struct Cleared {
    spans: Elements<u64, Span>,
    /// Some of `spans`, as they are there.
    queue: Vec<(u64, Span)>,
    /// Where the next of them are looked for.
    cursor: u64,
    /// Elements that have come since the last removal.
    new: u64,
}

impl Cleared {
    pub fn tables(name: &str, tables: &mut Tables) {
        tables.add::<u64, Span>(format!("{name}/cleared"));
    }

    pub fn open(opening: &Opening<'_>, name: &str) -> Result<Self, Error> {
        let spans = Elements::<u64, Span>::open(opening, &format!("{name}/cleared"))?;
        Ok(Self { cursor: spans.start(), spans, queue: Vec::new(), new: 0 })
    }

    /// A collection is no more.
    pub fn add(&mut self, id: u64, span: Span) -> Result<(), StateError> {
        self.spans.insert(&id, span)
    }

    /// An element has come.
    pub fn has_come(&mut self) {
        self.new += 1;
    }

    /// Removes some elements by `remove`, which gets the id of the collection and the number of the element.
    pub fn tidy(
        &mut self,
        records: u64,
        mut remove: impl FnMut(u64, u64) -> Result<(), StateError>,
    ) -> Result<(), StateError> {
        let mut left = records.saturating_add(REMOVED_PER_NEW.saturating_mul(std::mem::take(&mut self.new)));
        while left > 0
            && let Some((id, mut span)) = self.next()?
        {
            while span.len > 0 && left > 0 {
                (span.len, left) = (span.len - 1, left - 1);
                remove(id, span.first.wrapping_add(span.len))?;
            }
            if span.len > 0 {
                self.spans.insert(&id, span)?;
                self.queue.push((id, span));
            } else {
                self.spans.remove(&id)?;
            }
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Option<(u64, Span)>, StateError> {
        for _ in 0..PAGES_MAX {
            if !self.queue.is_empty() || self.spans.is_empty() {
                break;
            }
            let next = self.spans.page(self.cursor, &mut self.queue)?;
            self.cursor = next.unwrap_or(self.spans.start());
        }
        Ok(self.queue.pop())
    }

    pub fn leave(&mut self) -> Result<(), StateError> {
        self.spans.leave()
    }

    pub fn freeze(&mut self, open: &Open, entries: &mut Vec<Entry>) {
        self.spans.freeze(open, entries);
    }

    pub fn settle(&mut self, durable: bool) {
        self.spans.settle(durable);
    }

    pub fn view(&mut self, open: &Open, asked: &mut Viewing<'_>) -> Result<bool, Failed> {
        self.spans.view(open, asked)
    }

    pub fn hydrate(&mut self) -> Result<bool, Failed> {
        self.spans.hydrate()
    }

    pub fn forget(&mut self) -> Result<(), Failed> {
        self.spans.forget()
    }
}
