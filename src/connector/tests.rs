//! Sources and sinks tried alone: no task, no ring, no store.

mod bad_lines;
mod crash;
mod csv;
mod files;
mod memory;
mod sequence;
mod stdout;
mod text;
mod verify;

use crate::error::{Cause, ConnectorError, Failed};
use crate::operator::{Place, Read, Reader, Source, Split};
use flate2::{Compression, write::GzEncoder};
use std::io::Write;
use std::path::PathBuf;
use tempfile::TempDir;

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

/// The place of a job whose store has an id made of one byte.
fn place(store: u8, restored: bool, attempt: u32) -> Place {
    Place { store_id: Some([store; 16]), restored, newest_epoch: 100, attempt, sync: true }
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn file(folder: &TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}
