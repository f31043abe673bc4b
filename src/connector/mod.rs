//! Where records come from and where results leave: text files, CSV, generated events, output folders, standard output.
//!
//! Everything here keeps to the contracts in [`crate::operator`]: a source can say its offset and go back there, a sink
//! says whether it is exactly-once. A connector knows records and files; it knows no task, ring, epoch word or store.
//!
//! | In | Out, exactly once | Out, plainly |
//! |---|---|---|
//! | [`Lines`], [`Generate`], [`Items`] | [`Memory`] | [`Collect`] |

mod collect;
mod discard;
mod generate;
mod input;
mod items;
mod lines;
mod memory;
mod stretch;

pub use collect::{Collect, CollectWriter};
pub use discard::Discard;
pub use generate::{Generate, GenerateReader};
pub use items::{Items, ItemsReader};
pub use lines::{Lines, LinesReader};
pub use memory::{Memory, MemoryWriter};

#[cfg(test)]
mod tests;
