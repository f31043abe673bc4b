//! Counts generated events by key: nothing but a source, a repartition and a state, to measure them.

use crate::Output;
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
    let source = Generate::new(events, SPLITS, move |index| key_of(index, keys, seed));
    let counts = flow
        .source("events", source.label(format!("keys {keys}, seed {seed}")))
        .key_by(|key| *key)
        .count("count")
        .map(|(key, count)| KeyCount { key, count });
    output.take("counts", counts)?;
    Ok(flow)
}

/// The key of the event with this index: S. Vigna's SplitMix64, scaled to `0..keys` by D. Lemire's multiplication.
fn key_of(index: u64, keys: u64, seed: u64) -> u64 {
    let mut mixed = seed.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    ((u128::from(mixed) * u128::from(keys)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::key_of;

    #[test]
    fn keys_are_even_and_follow_from_the_seed() {
        let mut counts = [0_u32; 10];
        (0..10_000).for_each(|index| counts[key_of(index, 10, 7) as usize] += 1);
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
        assert_ne!(key_of(0, u64::MAX, 7), key_of(0, u64::MAX, 8));
        assert_eq!(key_of(5, 1, 7), 0);
    }
}
