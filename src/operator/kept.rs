//! Small values in a snapshot: how an operator writes one and reads it back.

use super::operating::Open;
use crate::error::{DecodeError, Error, Failed, RestoreError, StateError, StoreError};
use crate::page::FrozenPages;
use crate::record::{Evolution, Field, Hints, Mismatch, Record, Schema, Type};
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
    Err(differs(entry, epoch, &then, now, "a state of this kind is not migrated".to_owned()))
}

/// A type as the drawing has it: its schema, and what attributes say beside it.
#[derive(Clone, Debug)]
pub(crate) struct Typed {
    pub(crate) schema: Schema,
    hints: Hints,
}

impl Typed {
    pub(crate) fn of<T: Record>() -> Self {
        Self { schema: T::schema(), hints: Hints::of::<T>() }
    }
}

/// What becomes of values of an entry's type.
pub(crate) fn evolution(entry: &RestoredEntry, now: &Typed, epoch: u64) -> Result<Evolution, Error> {
    let then = Schema::decode(&mut entry.schema.as_slice()).map_err(|error| corrupt(entry, epoch, &error))?;
    let evolution = Evolution::hinted(&then.ty, &now.schema.ty, &now.hints);
    evolution.map_err(|error| differs(entry, epoch, &then, &now.schema, error.to_string()))
}

/// The type of an entry of a table, and those since, up to today; and what becomes of its values, by way of these: what a type
/// in between did not have does not come back, whether a key was touched then or not.
pub(crate) fn evolution_of_values(
    entry: &RestoredEntry,
    now: &Typed,
    epoch: u64,
) -> Result<(Vec<Schema>, Evolution), Error> {
    let mut input = entry.schema.as_slice();
    let mut schemas = Vec::new();
    while schemas.is_empty() || !input.is_empty() {
        schemas.push(Schema::decode(&mut input).map_err(|error| corrupt(entry, epoch, &error))?);
    }
    if schemas.len() == 1 || schemas.last() != Some(&now.schema) {
        schemas.push(now.schema.clone());
    }
    let mut all: Option<Evolution> = None;
    for pair in schemas.windows(2) {
        let next = evolution_between(&pair[0], &pair[1], &now.hints);
        let next = next.map_err(|reason| differs(entry, epoch, &pair[0], &pair[1], reason))?;
        all = Some(match all {
            Some(all) => all.then(next),
            None => next,
        });
    }
    schemas.dedup();
    Ok((schemas, all.expect("there are two schemas at least")))
}

/// What becomes of the values of a table. Keys say where they lie, and cannot change.
fn evolution_between(then: &Schema, now: &Schema, hints: &Hints) -> Result<Evolution, String> {
    let between = |then: &Type, now: &Type| Evolution::hinted(then, now, hints);
    match (&then.ty, &now.ty) {
        (Type::Tuple(old), Type::Tuple(new)) => match (old.as_slice(), new.as_slice()) {
            ([old_key, old_value], [key, value]) => match between(old_key, key) {
                Ok(keys) if keys.is_identity() => match (has_ttl(old_value), has_ttl(value)) {
                    (true, false) => Err("it had a time-to-live: `#[state(ttl_ms = …)]` gives it back".to_owned()),
                    (false, true) => Err("it had no time-to-live".to_owned()),
                    _ => between(old_value, value).map_err(|error| of("value", &error)),
                },
                Ok(_) => Err("its key is encoded otherwise now, and the key says where a value lies".to_owned()),
                Err(error) => Err(of("key", &error)),
            },
            _ => Err("it is no table of keys and values".to_owned()),
        },
        _ => Err("it is no table of keys and values".to_owned()),
    }
}

/// Whether values are kept with the time at which they were written ([`super::kinds::Timed`]).
fn has_ttl(value: &Type) -> bool {
    let written = |field: &Field| field.name == "written_ns";
    matches!(value, Type::Struct(name, fields) if name == "Timed" && fields.first().is_some_and(written))
}

fn of(part: &str, error: &Mismatch) -> String {
    format!("{part} {error}")
}

fn differs(entry: &RestoredEntry, epoch: u64, then: &Schema, now: &Schema, reason: String) -> Error {
    Error::Restore(RestoreError::Schema {
        operator: entry.operator.clone(),
        state: entry.state.clone(),
        epoch,
        now: now.to_string().into(),
        then: then.to_string().into(),
        reason: reason.into(),
    })
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
