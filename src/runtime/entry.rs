//! The root of a task that reads from rings.

use super::careful::{Care, Hand};
use super::task::{Body, Took};
use crate::channel::{Inbox, Polled, Records};
use crate::checkpoint::TaskCut;
use crate::error::Failed;
use crate::operator::{Link, Pipe, Visit};
use crate::record::Record;

pub(crate) struct Entry<T> {
    inbox: Inbox<T>,
    pipe: Box<dyn Pipe<T>>,
    hand: Hand<T>,
}

impl<T: Record> Entry<T> {
    pub(crate) fn new(inbox: Inbox<T>, pipe: Box<dyn Pipe<T>>, care: Option<Care>) -> Self {
        Self { inbox, pipe, hand: Hand::new(care) }
    }
}

impl<T: Record> Body for Entry<T> {
    fn inputs(&self) -> usize {
        self.inbox.inputs()
    }

    fn poll(&mut self, cut: &TaskCut, taken: &mut u64) -> Result<Took, Failed> {
        let Some((input, polled)) = self.inbox.poll(|input| cut.polls(input)) else { return Ok(Took::Nothing) };
        match polled {
            Polled::Records(mut records) => {
                self.hand.on(&mut *self.pipe, &mut records, taken)?;
                Ok(Took::Records)
            }
            Polled::Mark(mark) => Ok(Took::Mark(input, mark)),
            Polled::Empty => Ok(Took::Nothing),
            Polled::Closed | Polled::Poisoned => Ok(Took::Broken),
        }
    }

    fn is_ready(&self, cut: &TaskCut) -> bool {
        self.inbox.is_ready(|input| cut.polls(input))
    }

    fn text(&self) -> Option<String> {
        self.hand.text()
    }

    fn link(&mut self) -> &mut dyn Link {
        &mut *self.pipe
    }

    fn poison(&mut self) {
        self.inbox.poison();
        self.pipe.poison();
    }

    fn visit(&mut self, visit: &mut Visit<'_>) -> Result<(), Failed> {
        self.pipe.visit(visit)
    }
}

/// Hands a batch on. `taken` counts the records that have been taken out of it, also when one of them panics.
pub(super) fn hand_on<T>(pipe: &mut dyn Pipe<T>, records: &mut Records<'_, T>, taken: &mut u64) -> Result<(), Failed> {
    struct Count<'a, 'b, T> {
        records: &'a mut Records<'b, T>,
        before: u64,
        taken: &'a mut u64,
    }
    impl<T> Drop for Count<'_, '_, T> {
        fn drop(&mut self) {
            *self.taken += self.before - self.records.len() as u64;
        }
    }
    let before = records.len() as u64;
    let count = Count { records, before, taken };
    pipe.batch(count.records)
}
