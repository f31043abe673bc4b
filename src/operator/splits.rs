//! Where the reading of a source stands: splits with their offsets, as a snapshot keeps them.

use super::{Skipped, Source, Split};
use crate::error::Error;
use crate::record::Record;

/// A split and how far it has been read.
#[derive(Clone, Debug, PartialEq, Eq, Record)]
pub(crate) struct SplitState {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) descriptor: Vec<u8>,
    /// Where the next record begins; the source knows in what.
    pub(crate) offset: u64,
    /// It has been read to its end.
    pub(crate) done: bool,
}

/// The names of what is kept.
pub(crate) const SPLITS: &str = "splits";
pub(crate) const SKIPPED: &str = "skipped";

/// What has been skipped in a split up to its offset.
#[derive(Clone, Debug, PartialEq, Eq, Record)]
pub(crate) struct SplitSkipped {
    /// Of the split.
    pub(crate) id: u32,
    pub(crate) skipped: Skipped,
}

impl SplitState {
    /// A split that nothing describes but its name, at its beginning.
    pub(crate) fn new(id: u32, name: &str) -> Self {
        Self::fresh(Split { id, name: name.to_owned(), descriptor: Vec::new() })
    }

    /// Whether it is one that `new` has made, of a handle.
    pub(crate) fn is_pushed(&self, name: &str) -> bool {
        self.id == 0 && self.name == name && self.descriptor.is_empty()
    }

    fn fresh(split: Split) -> Self {
        Self { id: split.id, name: split.name, descriptor: split.descriptor, offset: 0, done: false }
    }

    pub(crate) fn split(&self) -> Split {
        Split { id: self.id, name: self.name.clone(), descriptor: self.descriptor.clone() }
    }
}

/// The splits of a source: those of the snapshot, if they are still the same input, or the first ones. By id.
pub(crate) fn find_splits<S: Source>(source: &S, restored: Option<Vec<SplitState>>) -> Result<Vec<SplitState>, Error> {
    let Some(mut splits) = restored else {
        return Ok(source.splits()?.into_iter().map(SplitState::fresh).collect());
    };
    splits.sort_by_key(|split| split.id);
    source.verify(&splits.iter().map(SplitState::split).collect::<Vec<_>>())?;
    Ok(splits)
}
