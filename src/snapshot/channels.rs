//! What a checkpoint holds of channels: records that were on their way when the cut passed them. It must not know what a
//! record is: whoever reads them has their schema.
//!
//! An entry whose state is named by [`Side::state`] holds those of one edge, as one task has kept them. Its schema is the
//! record's, its root a `Vec` of [`ChannelPart`]s. Records ahead of the cut that their consumer had not processed are kept
//! by the consumer (its *log*); those that their producer could not yet put into a ring, by the producer (its *leftovers*).
//! In a channel, the log comes first.

use crate::record::Record;

/// Records of one channel in a cut.
#[derive(Clone, Debug, PartialEq, Eq, Record)]
pub struct ChannelPart {
    /// The task that sent them; [`REST`] where an earlier restore had brought them, and they had not been processed yet.
    pub from: u32,
    /// The task that they were going to.
    pub to: u32,
    /// How many tasks there were at that end.
    pub to_tasks: u32,
    /// How many.
    pub records: u64,
    /// Their encodings, one after the other.
    pub bytes: Vec<u8>,
}

/// Stands for the sender of records that a restore has brought. They come before all others of their edge.
pub const REST: u32 = u32::MAX;

/// Who has kept records of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The consumer.
    Input,
    /// The producer.
    Output,
}

impl Side {
    /// The name of the state under which they are kept.
    #[must_use]
    pub fn state(self, edge: &str) -> String {
        format!("{}{edge}", self.prefix())
    }

    /// The side and the edge that a state is of; none, if it is none of a channel.
    #[must_use]
    pub fn of_state(state: &str) -> Option<(Self, &str)> {
        [Self::Input, Self::Output].into_iter().find_map(|side| Some((side, state.strip_prefix(side.prefix())?)))
    }

    fn prefix(self) -> &'static str {
        match self {
            Self::Input => "input:",
            Self::Output => "output:",
        }
    }
}

#[cfg(all(test, not(snapring_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_state_of_a_channel_is_known_by_its_name() {
        for side in [Side::Input, Side::Output] {
            assert_eq!(Side::of_state(&side.state("a->b")), Some((side, "a->b")));
        }
        assert_eq!(Side::of_state("table"), None);
    }
}
