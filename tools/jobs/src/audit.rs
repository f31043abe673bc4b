//! Auditing `transfers`: all the money in a checkpoint, read from the state folder by the schemas that lie in it. It uses
//! neither the job's types nor anything of the running job, so that it can be wrong only where the checkpoint is.

use crate::transfers::{ACCOUNTS, Money, Transfers};
use snapring::error::{DecodeError, Error, RestoreError, StateError, StoreError};
use snapring::record::{Datum, Schema, Type};
use snapring::runtime::CheckpointInfo;
use snapring::snapshot::{EdgePart, Reader, RestoredEntry};
use snapring::state::{Part, PartPages, Rows};

/// What a checkpoint of `transfers` holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audit {
    /// Its epoch.
    pub epoch: u64,
    /// The protocol by which it was taken.
    pub protocol: String,
    /// Where the money is.
    pub money: Money,
}

impl Transfers {
    /// All the money that there is: what [`Money::total`] of a consistent cut is.
    #[must_use]
    pub fn total(&self) -> i128 {
        i128::from(self.accounts) * i128::from(self.amount)
    }

    /// Adds up a kept checkpoint. The job may be running meanwhile.
    ///
    /// # Errors
    /// `NoEpoch`, also if it has expired meanwhile; `Corrupt`, naming the entry; it is a checkpoint of another job.
    pub fn audit(&self, reader: &Reader, epoch: u64) -> Result<Audit, Error> {
        let about = CheckpointInfo::read(&reader.header(epoch)?)?;
        if about.job != "transfers" {
            return Err(RestoreError::OtherJob { expected: "transfers".to_owned(), found: about.job }.into());
        }
        let mut money = Money { state: self.total(), channels: 0 };
        for entry in reader.read(epoch)?.entries.iter().filter(|entry| entry.operator == ACCOUNTS && entry.paged) {
            money.state += self.gained(entry)?;
        }
        for edge in reader.channels(epoch)? {
            money.channels += on_the_way(&edge)?;
        }
        Ok(Audit { epoch, protocol: about.protocol, money })
    }

    /// What the accounts of one task have more than they began with.
    fn gained(&self, entry: &RestoredEntry) -> Result<i128, Error> {
        let part = Part { root: &entry.root, pages: PartPages::Here(entry.pages()?.collect()) };
        let sum = || {
            let schema = Schema::decode(&mut entry.schema.as_slice())?;
            let Type::Tuple(types) = &schema.ty else { return Err(no_table().into()) };
            let [_, account] = types.as_slice() else { return Err(no_table().into()) };
            let rows = Rows::new(&part)?;
            let balances = rows.iter().map(|row| Ok(number(&Datum::from_bytes(account, &row?.1)?, "balance")));
            balances.map(|balance: Result<i128, StateError>| Ok(balance? - i128::from(self.amount))).sum()
        };
        sum().map_err(|error: StateError| corrupt(entry, &error))
    }
}

/// The sum of what records of channels carry.
fn on_the_way(edge: &EdgePart) -> Result<i128, Error> {
    if edge.schema.ty.width() == Some(0) {
        return Ok(0);
    }
    let records = edge.parts.iter().flat_map(|part| edge.records(part));
    Ok(records.map(|record| Ok(number(&record?, "amount"))).sum::<Result<i128, StoreError>>()?)
}

/// The field of this name; what has none carries nothing.
fn number(datum: &Datum<'_>, field: &str) -> i128 {
    datum.field(field).and_then(Datum::integer).unwrap_or(0)
}

fn no_table() -> DecodeError {
    DecodeError::Invalid("the schema is none of a table")
}

fn corrupt(entry: &RestoredEntry, error: &StateError) -> Error {
    let RestoredEntry { operator, state, task, tasks, .. } = entry;
    let what = format!("operator `{operator}`, state `{state}`, task {task} of {tasks}: {error}");
    StoreError::Corrupt { path: "the snapshot".into(), what }.into()
}
