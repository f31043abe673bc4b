//! The cut word of a ring: an epoch and the position of its cut, in one atomic that the producer writes and the consumer
//! reads beside the slots (rules 9 to 12). It knows no slot.

use crate::sync::atomic::{AtomicU64, Ordering};
use std::cell::Cell;

/// How many bits the position has; the epoch has the 24 above.
const POSITION_BITS: u32 = 40;
const POSITION_MASK: u64 = (1 << POSITION_BITS) - 1;
/// Of the 2^24 codes of an epoch one says that there is no cut (so that zeroed memory is such a word), and one is the end's.
const EPOCHS: u64 = (1 << 24) - 2;
const END_CODE: u64 = EPOCHS + 1;

/// The word itself. All bytes zero: there is no cut.
pub(super) struct CutWord(AtomicU64);

impl CutWord {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// A cut of `epoch` at `position`. [`END`]: nothing follows.
    pub(super) fn store(&self, epoch: u64, position: u64) {
        let code = if epoch == END { END_CODE } else { epoch % EPOCHS + 1 };
        // Release: the Acquire load in `load`. Whoever sees the cut sees all slots ahead of it published.
        self.0.store(code << POSITION_BITS | position & POSITION_MASK, Ordering::Release);
    }

    fn load(&self) -> u64 {
        // Acquire: the Release store in `store`. It comes after the load that has shown a slot (rule 10), which has acquired
        // the slot's publishing, and so every cut stored before that.
        self.0.load(Ordering::Acquire)
    }
}

/// Stands for the end as if it were an epoch above all others.
pub(super) const END: u64 = u64::MAX;

/// What a cut word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenCut {
    /// All slots before this position lie ahead of the cut of this epoch, all others behind it.
    At {
        /// The epoch.
        epoch: u64,
        /// The position of the first slot behind the cut.
        position: u64,
    },
    /// As `At`, in each epoch that has no cut of its own here: the producer has finished.
    End {
        /// The position of the first slot behind.
        position: u64,
    },
}

/// Reads a cut word, and remembers what it made of it: a word that does not change stays what it was, however far epochs
/// and positions go on meanwhile.
pub(super) struct CutReader {
    /// The last word read, and its meaning.
    last: Cell<(u64, Option<SeenCut>)>,
}

impl CutReader {
    pub(super) fn new() -> Self {
        Self { last: Cell::new((0, None)) }
    }

    /// `near` is an epoch not far from the cut's, `ahead` the highest position that the tail can have reached.
    #[inline]
    pub(super) fn read(&self, word: &CutWord, near: u64, ahead: u64) -> Option<SeenCut> {
        let now = word.load();
        let (before, meaning) = self.last.get();
        if now == before {
            return meaning;
        }
        let meaning = Some(decode(now, near, ahead));
        self.last.set((now, meaning));
        meaning
    }
}

#[cold]
fn decode(word: u64, near: u64, ahead: u64) -> SeenCut {
    // A cut is never ahead of the tail, so it is the last such position that is not above it.
    let position = ahead.wrapping_sub(ahead.wrapping_sub(word) & POSITION_MASK);
    match word >> POSITION_BITS {
        END_CODE => SeenCut::End { position },
        code => SeenCut::At { epoch: nearest(code - 1, near), position },
    }
}

/// The epoch that is `rest` modulo [`EPOCHS`] and nearest to `near`.
fn nearest(rest: u64, near: u64) -> u64 {
    let up = (rest + EPOCHS - near % EPOCHS) % EPOCHS;
    let down = if up > EPOCHS / 2 { near.checked_sub(EPOCHS - up) } else { None };
    down.unwrap_or(near + up)
}

#[cfg(all(test, not(snapring_loom)))]
#[cfg(not(snapring_loom))]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_and_a_position_come_back_in_full() {
        let epochs = [1, 2, EPOCHS - 1, EPOCHS, EPOCHS + 1, 2 * EPOCHS, 1 << 24, (1 << 24) - 1, 1 << 40, u64::MAX / 2];
        let positions = [0, 1, POSITION_MASK - 1, POSITION_MASK, POSITION_MASK + 1, 5 << POSITION_BITS, u64::MAX];
        for (epoch, position) in epochs.into_iter().flat_map(|epoch| positions.map(|position| (epoch, position))) {
            let word = CutWord::new();
            word.store(epoch, position);
            for near in [epoch, epoch + 1, epoch - 1, epoch + EPOCHS / 2 - 1, epoch.saturating_sub(EPOCHS / 2 - 1)] {
                for ahead in [0, 1, 1000, POSITION_MASK].map(|more| position.wrapping_add(more)) {
                    let seen = CutReader::new().read(&word, near, ahead);
                    assert_eq!(seen, Some(SeenCut::At { epoch, position }), "near {near}, ahead {ahead}");
                }
            }
            word.store(END, position);
            let ahead = position.wrapping_add(7);
            assert_eq!(CutReader::new().read(&word, epoch, ahead), Some(SeenCut::End { position }));
        }
    }

    #[test]
    fn a_word_that_does_not_change_keeps_its_meaning() {
        let (word, reader) = (CutWord::new(), CutReader::new());
        assert_eq!(reader.read(&word, 0, 0), None);
        word.store(5, 3);
        let seen = Some(SeenCut::At { epoch: 5, position: 3 });
        assert_eq!(reader.read(&word, 4, 9), seen);
        assert_eq!(reader.read(&word, 5 + EPOCHS / 2 + 1, 3 << POSITION_BITS), seen);
        assert_ne!(CutReader::new().read(&word, 5 + EPOCHS / 2 + 1, 9), seen, "it could not be told otherwise");
    }
}
