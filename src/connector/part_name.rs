//! The names of parts in an output folder. Knows no file.
//!
//! A committed part is `part-EPOCH-TASK-ATTEMPT.csv` (or `.jsonl`), with at least 10, 4 and 4 digits, so that names sort
//! by epoch, then by task. A pending one is `.part-STORE-TASK-ATTEMPT-SEQUENCE.csv.pending`: hidden, of no known type,
//! and with the id of the store that it belongs to. Its epoch is not known while it is being written.

use super::Format;
use crate::error::DecodeError;
use crate::operator::Part;
use crate::record::Record;
use std::ffi::OsStr;

/// What a [`Part`] of an output folder says. Numbers, not names: a snapshot is untrusted, and a name could be a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PartName {
    pub epoch: u64,
    pub pending: Pending,
}

/// A part that has no epoch yet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pending {
    pub task: u32,
    pub attempt: u32,
    /// Parts that the task has made before in this attempt.
    pub sequence: u64,
    pub format: Format,
}

impl Pending {
    /// The name before the commit.
    pub fn name(&self, store_id: &[u8; 16]) -> String {
        let (format, prefix) = (self.format.extension(), pending_prefix(store_id));
        format!("{prefix}{:04}-{:04}-{:06}.{format}{PENDING_SUFFIX}", self.task, self.attempt, self.sequence)
    }
}

impl PartName {
    /// The name after the commit.
    pub fn committed(&self) -> String {
        let Pending { task, attempt, format, .. } = &self.pending;
        format!("{COMMITTED_PREFIX}{:010}-{task:04}-{attempt:04}.{}", self.epoch, format.extension())
    }

    /// What the snapshot keeps.
    pub fn to_part(&self) -> Part {
        let mut bytes = Vec::new();
        self.epoch.encode(&mut bytes);
        self.pending.task.encode(&mut bytes);
        self.pending.attempt.encode(&mut bytes);
        self.pending.sequence.encode(&mut bytes);
        (self.pending.format as u8).encode(&mut bytes);
        Part(bytes)
    }

    /// What [`PartName::to_part`] kept.
    pub fn of(part: &Part) -> Result<Self, DecodeError> {
        let input = &mut part.0.as_slice();
        let epoch = u64::decode(input)?;
        let (task, attempt, sequence) = (u32::decode(input)?, u32::decode(input)?, u64::decode(input)?);
        let format = match (u8::decode(input)?, input.len()) {
            (0, 0) => Format::Csv,
            (1, 0) => Format::JsonLines,
            _ => return Err(DecodeError::Invalid("not a part of an output folder")),
        };
        Ok(Self { epoch, pending: Pending { task, attempt, sequence, format } })
    }
}

/// The epoch in the name of a committed part.
pub(super) fn epoch_of(name: &OsStr) -> Option<u64> {
    let (epoch, _) = name.to_str()?.strip_prefix(COMMITTED_PREFIX)?.split_once('-')?;
    epoch.parse().ok()
}

/// The subfolder of parts that were moved aside as a job went back by the epoch `by`.
pub(super) fn superseded_by(by: u64) -> String {
    format!("{SUPERSEDED_PREFIX}{by:010}")
}

/// The epoch in the name of such a subfolder.
pub(super) fn superseding(name: &str) -> Option<u64> {
    let by = name.strip_prefix(SUPERSEDED_PREFIX)?.parse().ok()?;
    (superseded_by(by) == name).then_some(by)
}

const SUPERSEDED_PREFIX: &str = "superseded-by-";
const COMMITTED_PREFIX: &str = "part-";
const PENDING_SUFFIX: &str = ".pending";

/// What the names of a store's pending parts begin with.
fn pending_prefix(store_id: &[u8; 16]) -> String {
    format!(".{COMMITTED_PREFIX}{}-", hex(store_id))
}

/// What a name in the folder is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Committed,
    /// Of the store asked about.
    PendingOwn,
    PendingOther,
    Else,
}

/// Tells parts, of anybody, from other files.
pub(super) fn kind(name: &[u8], store_id: &[u8; 16]) -> Kind {
    if name.starts_with(COMMITTED_PREFIX.as_bytes()) {
        return Kind::Committed;
    }
    let hidden = name.strip_prefix(b".").is_some_and(|name| name.starts_with(COMMITTED_PREFIX.as_bytes()));
    match hidden && name.ends_with(PENDING_SUFFIX.as_bytes()) {
        true if name.starts_with(pending_prefix(store_id).as_bytes()) => Kind::PendingOwn,
        true => Kind::PendingOther,
        false => Kind::Else,
    }
}

/// A store's id as text.
pub(super) fn hex(id: &[u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(*id))
}
