//! A table as bytes, row by row: for those who look into a snapshot and have neither the job's types nor a pool for its
//! pages. It must not know what keys and values are.

use super::chain::chain;
use super::entry::{Entry, LongRef};
use super::layout::Layout;
use super::restore::{Checked, Part};
use super::root::Root;
use super::{Hasher, StateError, long};
use std::borrow::Cow;

/// All rows of one task's table in a snapshot, checked so far that reading them can neither panic nor loop.
pub struct Rows<'a> {
    part: Checked<'a>,
    /// Those that rows lie in, a bucket after the other.
    pages: Vec<&'a [u8]>,
}

/// A key and its value, encoded. What is long in the table is put together here.
pub type Row<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>);

impl<'a> Rows<'a> {
    /// Of a part whose pages are [here](super::PartPages::Here).
    ///
    /// # Errors
    /// `Corrupt`: root or pages are not what a table has left. `Mismatch`: they are that of a newer version.
    pub fn new(part: &Part<'a>) -> Result<Self, StateError> {
        let root = Root::decode(part.root)?;
        Self::hashed_by(root.hasher(), root, part)
    }

    pub(super) fn hashed_by(hasher: Hasher, root: Root, part: &Part<'a>) -> Result<Self, StateError> {
        let part = Checked::all_here(root, &part.pages, hasher)?;
        let mut pages = Vec::with_capacity(part.pages.len());
        for bucket in &part.buckets {
            pages.extend(chain(&part, *bucket)?.iter().map(|id| part.pages[id]));
        }
        Ok(Self { part, pages })
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        self.part.root.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Each once, in no order that means anything.
    ///
    /// # Errors
    /// `Corrupt`: a long key or value cannot be put together.
    pub fn iter(&self) -> impl Iterator<Item = Result<Row<'_>, StateError>> {
        let layout: Layout = self.part.layout;
        let entries = self.pages.iter().flat_map(move |page| layout.entries(page));
        entries.map(|entry: Entry<'_>| {
            Ok((self.whole(entry.long_key(), entry.key)?, self.whole(entry.long_value(), entry.value)?))
        })
    }

    fn whole<'r>(&'r self, long: Option<LongRef>, part: &'r [u8]) -> Result<Cow<'r, [u8]>, StateError> {
        let Some(long) = long else { return Ok(part.into()) };
        let mut bytes = Vec::new();
        long::read(&self.part, long, &mut bytes)?;
        Ok(bytes.into())
    }
}
