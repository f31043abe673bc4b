//! Views, as the coordinator makes them: which epoch is the cut of one, and when all tasks have handed over what they have.
//!
//! A view is cut like a checkpoint, by the job's protocol, so it is consistent in the same way; but nothing is frozen or
//! written for it. It rides on the next epoch to begin, whoever wanted that. If nobody did but the view, the epoch is for
//! that alone and is never committed. A checkpoint is not put off by views: where one is due, the epoch is one.
//!
//! Where memory is short, what there is of a view that is not complete is let go of. It is taken again, some times.

use super::pending::{Pending, Unmade};
use super::view::View;
use crate::operator::TableCut;
use std::sync::mpsc::Sender;

/// Where a view goes.
pub(crate) type ViewAnswer = Sender<Result<View, Unmade>>;

/// A view that was asked for.
pub type PendingView = Pending<View>;

/// So often a view is taken for which memory is short.
const TRIES_MAX: u32 = 5;

pub(super) struct Views {
    wanted: Vec<Wanted>,
    taking: Option<Taking>,
    /// What is said where memory is short.
    short: Unmade,
}

/// Who wants a view, and how often one was taken for him.
struct Wanted {
    answer: ViewAnswer,
    tries: u32,
}

/// The view under way.
struct Taking {
    epoch: u64,
    /// The epoch is for nothing else.
    only: bool,
    /// All tasks that had not finished are cut.
    is_cut: bool,
    /// Tasks that are cut and have not handed over what they have; below zero where that came sooner than the cut.
    left: isize,
    tables: Vec<TableCut>,
    /// Nobody, if it has been let go of before it was cut.
    by: Vec<Wanted>,
}

impl Views {
    /// Of a job with so much memory for its state.
    pub fn new(limit_bytes: usize) -> Self {
        let short = format!(
            "there was no memory for the view beside the state: all {limit_bytes} bytes are in use; raise `state_bytes_max`, or \
             drop other views sooner"
        );
        Self { wanted: Vec::new(), taking: None, short: Unmade::GivenUp(short) }
    }

    /// Somebody wants one of all that has happened so far.
    pub fn want(&mut self, answer: ViewAnswer) {
        self.wanted.push(Wanted { answer, tries: 0 });
    }

    /// Whether an epoch should begin for it.
    pub fn is_due(&self) -> bool {
        self.taking.is_none() && !self.wanted.is_empty()
    }

    /// An epoch begins: whether it is the cut of a view. `only`: nobody else wants it.
    pub fn begin(&mut self, epoch: u64, only: bool) -> bool {
        if !self.is_due() {
            return false;
        }
        let mut by = std::mem::take(&mut self.wanted);
        by.iter_mut().for_each(|wanted| wanted.tries += 1);
        self.taking = Some(Taking { epoch, only, is_cut: false, left: 0, tables: Vec::new(), by });
        true
    }

    /// Whether the epoch is for a view alone.
    pub fn is_only(&self, epoch: u64) -> bool {
        self.taking.as_ref().is_some_and(|taking| taking.only && taking.epoch == epoch)
    }

    /// A task is cut.
    pub fn cut(&mut self, epoch: u64) {
        if let Some(taking) = self.taking.as_mut().filter(|taking| taking.epoch == epoch) {
            taking.left += 1;
        }
    }

    /// All tasks are cut, or have finished.
    pub fn all_cut(&mut self, epoch: u64) {
        if let Some(taking) = self.taking.as_mut().filter(|taking| taking.epoch == epoch) {
            taking.is_cut = true;
        }
        self.hand_out();
    }

    /// A task has handed over what it has.
    pub fn viewed(&mut self, epoch: u64, tables: Vec<TableCut>) {
        if let Some(taking) = self.taking.as_mut().filter(|taking| taking.epoch == epoch) {
            taking.left -= 1;
            if !taking.by.is_empty() {
                taking.tables.extend(tables);
            }
        }
        self.hand_out();
    }

    /// Pages of it have been let go of, or should be: it is not for this epoch. Who has not wanted one for long wants the next.
    pub fn run_short(&mut self, epoch: u64) {
        let Some(taking) = self.taking.as_mut().filter(|taking| taking.epoch == epoch) else { return };
        let (again, never): (Vec<_>, Vec<_>) = taking.by.drain(..).partition(|wanted| wanted.tries < TRIES_MAX);
        taking.tables.clear();
        self.wanted.extend(again);
        refuse(never, &self.short);
        // An epoch that is for it alone is that until its cut is complete.
        self.taking.take_if(|taking| taking.is_cut);
    }

    fn hand_out(&mut self) {
        let Some(taking) = &mut self.taking else { return };
        if !taking.is_cut || (taking.left != 0 && !taking.by.is_empty()) {
            return;
        }
        let epoch = taking.epoch;
        match View::new(epoch, std::mem::take(&mut taking.tables)) {
            // Who no longer waits for it does not need it.
            Some(view) => taking.by.drain(..).for_each(|wanted| drop(wanted.answer.send(Ok(view.clone())))),
            None => self.run_short(epoch),
        }
        self.taking = None;
    }

    /// The epoch will not be: whether a view was to be cut there that is not complete.
    pub fn give_up(&mut self, epoch: u64, why: &Unmade) -> bool {
        let taken = self.taking.take_if(|taking| taking.epoch == epoch && !taking.is_cut);
        let Some(taking) = taken else { return false };
        refuse(taking.by, why);
        true
    }

    /// The attempt is over.
    pub fn refuse(&mut self, why: &Unmade) {
        let taking = self.taking.take().into_iter().flat_map(|taking| taking.by);
        refuse(taking.chain(self.wanted.drain(..)), why);
    }
}

fn refuse(all: impl IntoIterator<Item = Wanted>, why: &Unmade) {
    all.into_iter().for_each(|wanted| drop(wanted.answer.send(Err(why.clone()))));
}
