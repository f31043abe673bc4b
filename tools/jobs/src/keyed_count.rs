//! Counts generated events by key: nothing but a source, a repartition and a state, to measure them.

use crate::Output;
use crate::random::below;
use snapring::connector::Generate;
use snapring::dataflow::Dataflow;
use snapring::error::ConnectorError;
use snapring::record::Record;

/// A key after one more event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Record)]
pub struct KeyCount {
    /// The key, below the number of keys.
    pub key: u64,
    /// Its events so far, this one included.
    pub count: u64,
}

/// Parts of the generated input: enough to go round among tasks, and never dependent on how many there are.
const SPLITS: u32 = 64;

/// Draws the job: `events` events, their keys drawn evenly from `0..keys`.
///
/// # Errors
/// The output's path is that of a file.
pub fn keyed_count(keys: u64, events: u64, seed: u64, output: &Output) -> Result<Dataflow, ConnectorError> {
    let flow = Dataflow::new("keyed-count");
    let source = Generate::new(events, SPLITS, move |index| below(keys, seed, index));
    let counts = flow
        .source("events", source.label(format!("keys {keys}, seed {seed}")))
        .key_by(|key| *key)
        .count("count")
        .map(|(key, count)| KeyCount { key, count });
    output.take("counts", counts)?;
    Ok(flow)
}
