//! One input of a task: its ring, and, of a back edge, the spill into which a head drains it ahead of its turn. What a mark
//! means is decided in `checkpoint`; here slots are taken or put aside accordingly.

use super::slots::{Slot, Slots};
use crate::channel::{Front, Records, Spill};
use crate::checkpoint::{Drained, InputKind, Log, TaskCut};
use crate::error::Failed;
use crate::marks::Mark;
use crate::operator::EdgeEnd;
use crate::record::Record;
use crate::snapshot::ChannelPart;

/// Where an input comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    /// Of the edges that lead into the task, by index.
    pub(crate) edge: usize,
    /// The task that sends.
    pub(crate) from: u32,
    pub(crate) kind: InputKind,
    /// Both ends are in the same loop.
    pub(crate) inside: bool,
    /// It leads into a loop from without: it waits while the loop is full.
    pub(crate) enters: bool,
}

pub(crate) struct Input<T> {
    pub(super) origin: Origin,
    slots: Slots<T>,
    /// Of a back edge.
    spill: Option<Spill<T>>,
}

/// What was taken.
pub(super) enum Taken<'a, T> {
    Records(Records<'a, T>),
    /// At the front: it acts now.
    Mark(Mark),
    /// The task is to freeze before anything is taken.
    Freeze(u64),
    /// Something was put aside.
    Aside,
    Nothing,
    /// The other end has gone without an End, or the ring is poisoned.
    Broken,
}

impl<T: Record> Input<T> {
    /// `spill`: of a back edge, and only then.
    pub(crate) fn new(origin: Origin, slots: Slots<T>, spill: Option<Spill<T>>) -> Self {
        debug_assert_eq!(origin.kind == InputKind::Back, spill.is_some());
        Self { origin, slots, spill }
    }

    pub(super) fn slots(&mut self) -> &mut Slots<T> {
        &mut self.slots
    }

    /// Whether something lies ahead of the ring.
    #[inline]
    pub(super) fn lags(&self) -> bool {
        self.spill.as_ref().is_some_and(|spill| !spill.is_empty())
    }

    /// The bytes that lie in the spill.
    pub(super) fn spilled_bytes(&self) -> u64 {
        self.spill.as_ref().map_or(0, Spill::bytes)
    }

    /// Whether something is there that may be taken now.
    #[inline]
    pub(super) fn is_ready(&self, cut: &TaskCut) -> bool {
        if !cut.polls(self.slots.number()) {
            return false;
        }
        match self.spill.as_ref().and_then(Spill::front) {
            Some(Front::Mark(Mark::Barrier(epoch))) => !cut.holds(epoch),
            Some(_) => true,
            None => self.slots.is_ready(),
        }
    }

    /// Takes what is next, if there is anything. Only what `is_ready`.
    #[inline]
    pub(super) fn take(&mut self, cut: &mut TaskCut) -> Result<Taken<'_, T>, Failed> {
        let Self { slots, spill, .. } = self;
        let number = slots.number();
        match spill.as_ref().and_then(Spill::front) {
            Some(Front::Records) => return Ok(Taken::Records(spill.as_mut().expect("it has a front").take()?)),
            Some(Front::Mark(_)) => return Ok(Taken::Mark(spill.as_mut().expect("it has a front").take_mark())),
            None => {}
        }
        Ok(match (slots.take(cut), spill) {
            (Slot::Records(records), _) => Taken::Records(records),
            (Slot::Mark(mark), None) => Taken::Mark(mark),
            (Slot::Mark(mark), Some(spill)) => Self::put_aside(mark, number, spill, cut),
            (Slot::Freeze(epoch), _) => Taken::Freeze(epoch),
            (Slot::Nothing, _) => Taken::Nothing,
            (Slot::Broken, _) => Taken::Broken,
        })
    }

    /// Moves what lies in the ring of a back edge into the spill: at most a ring full, so that a busy tail cannot keep the head
    /// at it. Says at last what stopped it.
    pub(super) fn drain(&mut self, cut: &mut TaskCut) -> Result<Taken<'static, T>, Failed> {
        let Self { slots, spill: Some(spill), .. } = self else { return Ok(Taken::Nothing) };
        let number = slots.number();
        let mut drained = Taken::Nothing;
        for _ in 0..slots.capacity() {
            match slots.take(cut) {
                Slot::Records(mut records) => spill.push(&mut records)?,
                Slot::Mark(mark) => match Self::put_aside(mark, number, spill, cut) {
                    Taken::Aside => {}
                    freeze => return Ok(freeze),
                },
                Slot::Freeze(epoch) => return Ok(Taken::Freeze(epoch)),
                Slot::Nothing => break,
                Slot::Broken => return Ok(Taken::Broken),
            }
            drained = Taken::Aside;
        }
        Ok(drained)
    }

    /// Out of a back edge a barrier acts as soon as it leaves the ring, whatever lies ahead of it.
    fn put_aside(mark: Mark, number: usize, spill: &mut Spill<T>, cut: &mut TaskCut) -> Taken<'static, T> {
        match mark {
            Mark::Barrier(epoch) => match cut.drained(number, epoch) {
                Drained::Absorb => {}
                Drained::Queue => spill.push_mark(mark),
                Drained::Freeze(epoch) => return Taken::Freeze(epoch),
            },
            Mark::End => {
                cut.end_drained(number);
                spill.push_mark(mark);
            }
            Mark::Lap(_) | Mark::Watermark(_) => spill.push_mark(mark),
        }
        Taken::Aside
    }

    /// The task freezes in `epoch`: begins the log as the protocol says.
    pub(super) fn begin_log(&mut self, log: Log, epoch: u64) -> Result<(), Failed> {
        let Self { slots, spill, .. } = self;
        slots.begin_log();
        if let (Some(spill), true) = (spill.as_ref(), log != Log::Empty) {
            let until = (log == Log::Backlog).then_some(epoch);
            slots.log_with(|bytes| spill.save(until, bytes))?;
        }
        if log == Log::Whole {
            slots.log_all();
        }
        if let Some(spill) = spill {
            spill.remove_barriers(epoch);
        }
        Ok(())
    }

    /// What has been logged since the task froze, if anything; `end` is where the task is.
    pub(super) fn take_log(&mut self, end: &EdgeEnd) -> Option<ChannelPart> {
        let (records, bytes) = self.slots.take_log();
        let (from, to, to_tasks) = (self.origin.from, end.task, end.tasks);
        (records > 0).then_some(ChannelPart { from, to, to_tasks, records, bytes })
    }
}
