//! The ring of an input, and the log of the cut under way: what was on its way when the cut passed is written down as it is
//! taken out, or as soon as it is seen. Which of these, and for how long, is decided in `checkpoint`.
//!
//! The order of looks (protocols, rules 7 and 8): first whether a slot is there, then the cut beside the ring, and only
//! then the slot.

use crate::channel::{Consumer, Peeked, Polled, Records, SeenCut};
use crate::checkpoint::{Cut, TaskCut};
use crate::error::Failed;
use crate::marks::Mark;
use crate::record::{Record, encode_items};

pub(crate) struct Slots<T> {
    /// The index of the input in the task.
    number: usize,
    ring: Consumer<T>,
    /// Encoded records, one after the other, and how many.
    log: Vec<u8>,
    logged: u64,
    /// Slots ahead of this position have been logged, or need not be.
    logged_to: u64,
    /// It has been said that nothing follows the producer's last cut.
    end_seen: bool,
}

/// What was taken out of the ring.
pub(super) enum Slot<'a, T> {
    Records(Records<'a, T>),
    Mark(Mark),
    /// Nothing: the task is to freeze first.
    Freeze(u64),
    Nothing,
    Broken,
}

impl<T: Record> Slots<T> {
    pub(crate) fn new(number: usize, ring: Consumer<T>) -> Self {
        let logged_to = ring.position();
        Self { number, ring, log: Vec::new(), logged: 0, logged_to, end_seen: false }
    }

    pub(super) fn number(&self) -> usize {
        self.number
    }

    pub(super) fn capacity(&self) -> usize {
        self.ring.slots()
    }

    /// Shows whether what is there is left for later.
    pub(super) fn show_held(&self, held: bool) {
        self.ring.hold(held);
    }

    pub(super) fn poison(&mut self) {
        self.ring.poison();
    }

    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        self.ring.is_ready()
    }

    /// Takes the next slot, logged if it is to be.
    #[inline]
    pub(super) fn take(&mut self, cut: &mut TaskCut) -> Slot<'_, T> {
        if !self.ring.is_ready() {
            return Slot::Nothing;
        }
        if cut.watches_cuts()
            && let Cut::Freeze(epoch) = self.look_beside(cut)
        {
            return Slot::Freeze(epoch);
        }
        if cut.is_logging(self.number) {
            self.log_next(cut);
        }
        match self.ring.poll() {
            Polled::Records(records) => Slot::Records(records),
            Polled::Mark(mark) => Slot::Mark(mark),
            Polled::Empty => Slot::Nothing,
            Polled::Closed | Polled::Poisoned => Slot::Broken,
        }
    }

    /// Looks at the cut beside the ring.
    pub(super) fn look_beside(&mut self, cut: &mut TaskCut) -> Cut {
        match self.ring.cut(cut.frozen()) {
            Some(SeenCut::At { epoch, .. }) if epoch > cut.frozen() => cut.published(self.number, epoch),
            Some(SeenCut::End { .. }) if !self.end_seen => {
                self.end_seen = true;
                cut.published_end(self.number);
                Cut::Go
            }
            _ => Cut::Go,
        }
    }

    /// Logs the slot that is taken next, unless that has been done.
    #[cold]
    fn log_next(&mut self, cut: &mut TaskCut) {
        if cut.looks_ahead() {
            self.look_ahead(cut);
        } else if let Some(Peeked::Records(records)) = self.ring.peek(self.ring.position()) {
            write_down(records, &mut self.log, &mut self.logged);
        }
    }

    /// Logs all slots that are there ahead of the cut's position, without taking them.
    pub(super) fn look_ahead(&mut self, cut: &mut TaskCut) {
        let epoch = cut.frozen();
        self.logged_to = at_least(self.logged_to, self.ring.position());
        while cut.is_logging(self.number) {
            // The slot first: whoever sees it sees a cut ahead of it.
            let slot = self.ring.peek(self.logged_to);
            let is_reached = match (self.ring.cut(epoch), &slot) {
                (Some(SeenCut::At { epoch: cut, position }), _) if cut == epoch && self.is_at(position) => true,
                (Some(SeenCut::End { position }), _) if self.is_at(position) => true,
                (_, Some(Peeked::Mark(Mark::End))) => true,
                (_, Some(Peeked::Mark(Mark::Barrier(barrier)))) => *barrier == epoch,
                _ => false,
            };
            if is_reached {
                return cut.reached(self.number);
            }
            match slot {
                None => return,
                Some(Peeked::Records(records)) => write_down(records, &mut self.log, &mut self.logged),
                Some(Peeked::Mark(_)) => {}
            }
            self.logged_to = self.logged_to.wrapping_add(1);
        }
    }

    /// Whether all slots ahead of a position have been logged.
    fn is_at(&self, position: u64) -> bool {
        self.logged_to.wrapping_sub(position) as i64 >= 0
    }

    pub(super) fn begin_log(&mut self) {
        self.log.clear();
        self.logged = 0;
        self.logged_to = self.ring.position();
    }

    /// Appends to the log what `write` writes; it says how many records that is.
    pub(super) fn log_with(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<u64, Failed>) -> Result<(), Failed> {
        self.logged += write(&mut self.log)?;
        Ok(())
    }

    /// Logs all that is in the ring: its producer stands still.
    pub(super) fn log_all(&mut self) {
        while let Some(slot) = self.ring.peek(self.logged_to) {
            if let Peeked::Records(records) = slot {
                write_down(records, &mut self.log, &mut self.logged);
            }
            self.logged_to = self.logged_to.wrapping_add(1);
        }
    }

    /// The log, and the number of its records.
    pub(super) fn take_log(&mut self) -> (u64, Vec<u8>) {
        (std::mem::take(&mut self.logged), std::mem::take(&mut self.log))
    }
}

/// The later of two positions that are not far apart.
fn at_least(position: u64, least: u64) -> u64 {
    if (position.wrapping_sub(least) as i64) < 0 { least } else { position }
}

fn write_down<T: Record>(records: &[T], log: &mut Vec<u8>, logged: &mut u64) {
    encode_items(records, log);
    *logged += records.len() as u64;
}
