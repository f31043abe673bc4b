//! Sources and sinks tried alone: no task, no ring, no store.

mod memory;
mod sequence;
mod text;

use crate::error::{Cause, ConnectorError, Failed};
use crate::operator::{Read, Reader, Source, Split};

/// Reads a split to its end, `max` records at a time.
fn drain<S: Source>(source: &S, split: &Split, offset: u64, max: usize) -> Result<Vec<S::Item>, Failed> {
    let mut reader = source.open(split, offset)?;
    let mut items = Vec::new();
    while reader.read(max, &mut items)? != Read::Done {}
    Ok(items)
}

/// Reads all splits.
fn all<S: Source>(source: &S) -> Result<Vec<S::Item>, Failed> {
    let mut items = Vec::new();
    for split in source.splits()? {
        items.append(&mut drain(source, &split, 0, 7)?);
    }
    Ok(items)
}

fn cause<T>(result: Result<T, Failed>) -> ConnectorError {
    match result.err().expect("it must fail").0.cause {
        Cause::Connector(error) => error,
        other => panic!("not an error of a connector: {other:?}"),
    }
}
