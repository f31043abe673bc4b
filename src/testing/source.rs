//! The bed for sources: splits that stay, and offsets to which one can go back.

use super::Fault;
use super::compare::json;
use crate::operator::{Read, Reader, Source, Split};
use crate::record::{Record, to_bytes};
use std::fmt;

/// Holds a source against its contract. `make` makes the source as a process that starts now would; `expected` are its
/// records, split after split.
///
/// 1. The splits are numbered from 0, are the same whenever they are asked for, and another process accepts them.
/// 2. A read gives at most as many records as it may, and a split comes to its end.
/// 3. Read a few records at a time or many, a split gives the same records, and skips the same number of lines.
/// 4. Another process goes on from each offset that a reader gives between two reads, and gives the rest.
///
/// Each offset is tried with all that follows it: some hundred records in a few splits are enough.
///
/// ```
/// use snapring::connector::Items;
/// use snapring::testing::check_source;
///
/// check_source(|| Items::new([1, 2, 3]).in_splits(2), [1, 2, 3])?;
/// # Ok::<(), snapring::testing::Fault>(())
/// ```
///
/// # Errors
/// What it does other than it should, and where.
pub fn check_source<S: Source>(make: impl Fn() -> S, expected: impl IntoIterator<Item = S::Item>) -> Result<(), Fault> {
    let splits = check_splits(&make)?;
    let mut found = Vec::new();
    for split in &splits {
        let bed = Bed { make: &make, split };
        let whole = bed.drain(0, 1000, "read in large batches from its beginning")?;
        for max in [1, 2, 3, 7] {
            bed.walk(max, &whole)?;
        }
        found.extend(whole.records);
    }
    let expected: Vec<_> = expected.into_iter().map(|record| to_bytes(&record)).collect();
    same::<S::Item>(&expected, &found, "read split after split")
}

fn contract(what: impl Into<String>, run: impl Into<String>) -> Fault {
    Fault::Contract { what: what.into(), run: run.into() }
}

fn check_splits<S: Source>(make: &impl Fn() -> S) -> Result<Vec<Split>, Fault> {
    let splits = || make().splits().map_err(|error| contract(format!("no splits: {error}"), "asked for its splits"));
    let (first, again) = (splits()?, splits()?);
    if first != again {
        return Err(contract(format!("first {first:?}, then {again:?}"), "asked twice for its splits"));
    }
    if let Some((at, split)) = first.iter().enumerate().find(|(at, split)| split.id as usize != *at) {
        let what = format!("split {at}, `{}`, has the id {}: ids are counted from 0", split.name, split.id);
        return Err(contract(what, "asked for its splits"));
    }
    match make().verify(&first) {
        Ok(()) => Ok(first),
        Err(error) => Err(contract(format!("refused: {error}"), "its own splits verified by another process")),
    }
}

/// What a split gives, encoded.
struct Given {
    records: Vec<Vec<u8>>,
    skipped_lines: u64,
}

struct Bed<'a, M> {
    make: &'a M,
    split: &'a Split,
}

impl<S: Source, M: Fn() -> S> Bed<'_, M> {
    fn fault(&self, what: impl fmt::Display, how: &str) -> Fault {
        contract(what.to_string(), format!("split {}, `{}`, {how}", self.split.id, self.split.name))
    }

    /// Another process opens the split and reads it to its end.
    fn drain(&self, offset: u64, max: usize, how: &str) -> Result<Given, Fault> {
        let mut reader = self.open(offset, how)?;
        let mut given = Given { records: Vec::new(), skipped_lines: 0 };
        while !self.read(&mut reader, max, &mut given, how)? {}
        Ok(given)
    }

    fn open(&self, offset: u64, how: &str) -> Result<S::Reader, Fault> {
        (self.make)().open(self.split, offset).map_err(|error| self.fault(format!("cannot be opened: {error}"), how))
    }

    /// Reads until something has come; true at the end.
    fn read(&self, reader: &mut S::Reader, max: usize, given: &mut Given, how: &str) -> Result<bool, Fault> {
        let mut items = Vec::new();
        for _ in 0..PATIENCE {
            let read = reader.read(max, &mut items).map_err(|failed| self.fault(&failed.0, how))?;
            let skipped_lines = reader.take_skipped().lines;
            if items.len() > max {
                return Err(self.fault(format!("{} records were given where {max} were asked for", items.len()), how));
            }
            given.skipped_lines += skipped_lines;
            if read == Read::Done || !items.is_empty() || skipped_lines > 0 {
                given.records.extend(items.iter().map(to_bytes));
                return Ok(read == Read::Done);
            }
        }
        Err(self.fault(format!("{PATIENCE} reads gave nothing, and it is not at its end"), how))
    }

    /// Reads `max` records at a time, and goes on from each offset in between in another process.
    fn walk(&self, max: usize, whole: &Given) -> Result<(), Fault> {
        let how = format!("read {max} at a time");
        let mut reader = self.open(0, &how)?;
        let mut given = Given { records: Vec::new(), skipped_lines: 0 };
        let mut done = false;
        loop {
            let (offset, records) = (reader.offset(), given.records.len());
            let on = format!("{how}, and gone on from offset {offset} after {records} records");
            let rest = self.drain(offset, 2, &on)?;
            let run = format!("split {}, `{}`, {on}", self.split.id, self.split.name);
            same::<S::Item>(&whole.records, &[&given.records[..], &rest.records].concat(), &run)?;
            let lines = given.skipped_lines + rest.skipped_lines;
            if lines != whole.skipped_lines {
                let what =
                    format!("{lines} lines were skipped, and {} by one who reads it through", whole.skipped_lines);
                return Err(self.fault(what, &on));
            }
            if done {
                return Ok(());
            }
            done = self.read(&mut reader, max, &mut given, &how)?;
        }
    }
}

/// So many reads in a row may come to nothing.
const PATIENCE: u32 = 100_000;

fn same<T: Record>(expected: &[Vec<u8>], found: &[Vec<u8>], run: &str) -> Result<(), Fault> {
    let Some(at) = (0..expected.len().max(found.len())).find(|at| expected.get(*at) != found.get(*at)) else {
        return Ok(());
    };
    let text = |record: Option<&Vec<u8>>| record.map_or("nothing more".to_owned(), |record| json::<T>(record));
    let (expected, found) = (text(expected.get(at)), text(found.get(at)));
    Err(contract(format!("record {at} (counted from 0): expected {expected}, found {found}"), run))
}
