//! Where records come from and where results leave: text files, CSV, generated events, output folders, standard output.
//!
//! Everything here keeps to the contracts in [`crate::operator`]: a source can say its offset and go back there, a sink
//! says whether it is exactly-once. A connector knows records and files; it knows no task, ring, epoch word or store.
//!
//! | In | Out, exactly once | Out, plainly |
//! |---|---|---|
//! | [`Lines`], [`Csv`], [`Generate`], [`Items`] | [`Csv::exactly_once`], [`JsonLines::exactly_once`], [`Memory`] | [`Csv::stdout`], [`JsonLines::stdout`], [`Collect`], [`Discard`] |

mod collect;
mod csv;
mod csv_parser;
mod discard;
mod files;
mod folder;
mod format;
mod generate;
mod input;
mod items;
mod lines;
mod memory;
mod part_name;
mod rows;
mod stdout;
mod stretch;

pub use collect::{Collect, CollectWriter};

pub use crate::operator::{BadLine, Skipped};
pub use csv::{Csv, CsvRows};
pub use discard::Discard;
pub use files::{Files, FilesWriter};
pub use format::{Format, JsonLines};
pub use generate::{Generate, GenerateReader};
pub use items::{Items, ItemsReader};
pub use lines::{Line, LineRows, Lines};
pub use memory::{Memory, MemoryWriter};
pub use rows::{BadLines, OrBadLines, RowOrBadLineReader, RowReader};
pub use stdout::{Stdout, StdoutWriter};

use format::Rows;

#[cfg(all(test, not(snapring_loom)))]
mod tests;
