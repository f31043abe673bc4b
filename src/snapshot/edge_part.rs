//! What an epoch holds of channels, read for those who do not have the job's types. It must not know the job.

use super::channels::{ChannelPart, REST, Side};
use super::codec::{EntryRecord, place};
use super::fault::Fault;
use crate::error::{DecodeError, StoreError};
use crate::record::{Datum, Schema, from_bytes};
use std::path::{Path, PathBuf};

/// What one task has kept of the channels of an edge.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EdgePart {
    /// The edge, by name.
    pub edge: String,
    /// Whether the task is a consumer or a producer of the edge.
    pub side: Side,
    /// The operator that the task is of.
    pub operator: String,
    /// Which of its tasks.
    pub task: u32,
    /// How many tasks it had.
    pub tasks: u32,
    /// What the records are.
    pub schema: Schema,
    /// The channels, in the order in which their records are to be processed.
    pub parts: Vec<ChannelPart>,
    /// For messages: the file; epoch, operator, state, task.
    path: PathBuf,
    place: String,
}

impl EdgePart {
    /// If an entry is of a channel.
    pub(super) fn of(path: &Path, epoch: u64, entry: &EntryRecord) -> Result<Option<Self>, Fault> {
        let EntryRecord { operator, state, task, tasks, schema, root, .. } = entry;
        let Some((side, edge)) = Side::of_state(state) else { return Ok(None) };
        let place = format!("epoch {epoch}, {}", place(operator, state, *task, *tasks));
        let corrupt = |what: &str, error: DecodeError| Fault::Corrupt(format!("{place}: the {what}: {error}"));
        let schema = Schema::decode(&mut schema.as_slice()).map_err(|error| corrupt("schema", error))?;
        let parts = from_bytes(root).map_err(|error| corrupt("list of channels", error))?;
        let (edge, operator, path) = (edge.to_owned(), operator.clone(), path.to_owned());
        Ok(Some(Self { edge, side, operator, task: *task, tasks: *tasks, schema, parts, path, place }))
    }

    /// The records of one of the [`parts`](Self::parts), each decoded when it is asked for. There are as many as the part says:
    /// of records without bytes, which nothing else bounds, any number.
    ///
    /// # Errors
    /// `Corrupt`, naming file and entry: the bytes are not as many records as they should be. Nothing follows an error.
    pub fn records<'a>(
        &'a self,
        part: &'a ChannelPart,
    ) -> impl Iterator<Item = Result<Datum<'a>, StoreError>> + use<'a> {
        let (mut left, mut index, mut over) = (part.bytes.as_slice(), 0, false);
        std::iter::from_fn(move || {
            let datum = match index == part.records {
                _ if over => return None,
                false => Datum::decode(&self.schema.ty, &mut left),
                true if left.is_empty() => return None,
                true => Err(DecodeError::Trailing { bytes: left.len() }),
            };
            over = datum.is_err();
            index += 1;
            Some(datum.map_err(|error| self.corrupt(part, index, &error)))
        })
    }

    fn corrupt(&self, part: &ChannelPart, index: u64, error: &DecodeError) -> StoreError {
        let ChannelPart { from, to, records, .. } = part;
        let from = if *from == REST { "brought by a restore".to_owned() } else { format!("from task {from}") };
        let what = format!("{}: {from} to task {to}: record {index} of {records}: {error}", self.place);
        StoreError::Corrupt { path: self.path.clone(), what }
    }
}
