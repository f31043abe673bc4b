//! Records handed on one by one, so that a failure can say which record it was. It must not know where they come from.
//!
//! A job hands records on by the batch, and when one of them makes user code fail it is gone: moved into the code that
//! failed. To keep the text of each would cost more than all the rest. So it is kept only where a failure is expected: in
//! an attempt that follows one, until an epoch has become durable, which the failure has not let happen before.

use super::entry::hand_on;
use super::shared::Shared;
use crate::channel::Records;
use crate::error::Failed;
use crate::operator::Pipe;
use crate::record::{Record, text::write_json};
use std::sync::Arc;

/// For how long a job is careful.
#[derive(Clone)]
pub(crate) struct Care {
    shared: Arc<Shared>,
    /// An epoch above this one ends it; none: nothing does.
    until_above: Option<u64>,
}

impl Care {
    /// Careful until an epoch above `epoch` is durable; without end, if none is given.
    pub(crate) fn new(shared: Arc<Shared>, epoch: Option<u64>) -> Self {
        Self { shared, until_above: epoch }
    }

    fn is_over(&self) -> bool {
        self.until_above.is_some_and(|epoch| self.shared.durable_to() > epoch)
    }
}

/// What hands on the records of one task: by the batch, or one by one.
pub(super) struct Hand<T> {
    careful: Option<Careful<T>>,
}

struct Careful<T> {
    care: Care,
    one: Vec<T>,
    /// The record under way; empty between two.
    encoded: Vec<u8>,
    is_under_way: bool,
}

impl<T: Record> Hand<T> {
    pub(super) fn new(care: Option<Care>) -> Self {
        let careful = |care| Careful { care, one: Vec::with_capacity(1), encoded: Vec::new(), is_under_way: false };
        Self { careful: care.map(careful) }
    }

    /// Hands a batch on. `taken` counts the records that have been taken out of it, also when one of them panics.
    pub(super) fn on(
        &mut self,
        pipe: &mut dyn Pipe<T>,
        records: &mut Records<'_, T>,
        taken: &mut u64,
    ) -> Result<(), Failed> {
        match &mut self.careful {
            None => hand_on(pipe, records, taken),
            Some(careful) => {
                careful.on(pipe, records, taken)?;
                if careful.care.is_over() {
                    self.careful = None;
                }
                Ok(())
            }
        }
    }

    /// The record under way, if it is known.
    pub(super) fn text(&self) -> Option<String> {
        let careful = self.careful.as_ref().filter(|careful| careful.is_under_way)?;
        let mut line = Vec::new();
        write_json(&T::schema(), &mut careful.encoded.as_slice(), &mut line).ok()?;
        Some(shortened(&String::from_utf8_lossy(&line)))
    }
}

impl<T: Record> Careful<T> {
    fn on(&mut self, pipe: &mut dyn Pipe<T>, records: &mut Records<'_, T>, taken: &mut u64) -> Result<(), Failed> {
        for record in records {
            self.encoded.clear();
            record.encode(&mut self.encoded);
            self.is_under_way = true;
            self.one.push(record);
            hand_on(pipe, &mut Records::of(&mut self.one), taken)?;
            self.is_under_way = false;
        }
        Ok(())
    }
}

/// Enough to find it again.
fn shortened(text: &str) -> String {
    const CHARS_MAX: usize = 2000;
    match text.char_indices().nth(CHARS_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}… ({} bytes in all)", &text[..end], text.len()),
    }
}
