//! Small values in a snapshot: how an operator writes one and reads it back.

use super::operating::Open;
use crate::error::{DecodeError, Error, Failed, RestoreError, StateError, StoreError};
use crate::page::FrozenPages;
use crate::record::{Record, Schema};
use crate::snapshot::{Entry, RestoredEntry};

impl Open {
    /// What went wrong as the state was opened.
    pub(crate) fn failed(&self, error: StateError) -> Error {
        let mut failed = Failed::from(error).at(&self.operator);
        (failed.0.task, failed.0.epoch) = (Some(self.task), Some(self.epoch));
        failed.into()
    }

    /// A piece of state for the snapshot. `root` writes its small part.
    pub(crate) fn entry(
        &self,
        state: &str,
        schema: &Schema,
        root: impl FnOnce(&mut Vec<u8>),
        pages: Option<FrozenPages>,
    ) -> Entry {
        let mut entry = Entry {
            operator: self.operator.to_string(),
            state: state.to_owned(),
            task: self.task,
            tasks: self.tasks,
            schema: Vec::new(),
            root: Vec::new(),
            pages,
        };
        schema.encode(&mut entry.schema);
        root(&mut entry.root);
        entry
    }
}

/// Checks that an entry has the type that the dataflow has now.
pub(crate) fn check_schema(entry: &RestoredEntry, now: &Schema, epoch: u64) -> Result<(), Error> {
    let then = Schema::decode(&mut entry.schema.as_slice()).map_err(|error| corrupt(entry, epoch, &error))?;
    if then == *now {
        return Ok(());
    }
    Err(Error::Restore(RestoreError::Schema {
        operator: entry.operator.clone(),
        state: entry.state.clone(),
        epoch,
        now: now.to_string(),
        then: then.to_string(),
    }))
}

/// Reads a small value back.
pub(crate) fn value<T: Record>(entry: &RestoredEntry, epoch: u64) -> Result<T, Error> {
    check_schema(entry, &T::schema(), epoch)?;
    decoded(entry, epoch)
}

/// The same of an entry whose schema speaks of something else: of the records that its root holds encoded.
pub(crate) fn decoded<T: Record>(entry: &RestoredEntry, epoch: u64) -> Result<T, Error> {
    T::decode(&mut entry.root.as_slice()).map_err(|error| corrupt(entry, epoch, &error))
}

/// Bytes whose checksum is right but which are no value.
pub(crate) fn corrupt(entry: &RestoredEntry, epoch: u64, error: &DecodeError) -> Error {
    let RestoredEntry { operator, state, task, .. } = entry;
    let what = format!("epoch {epoch}, operator `{operator}`, state `{state}` of task {task}: {error}");
    Error::Store(StoreError::Corrupt { path: "the snapshot".into(), what })
}
