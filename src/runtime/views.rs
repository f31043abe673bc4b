//! Views, as the coordinator makes them: which epoch is the cut of one, and when all tasks have handed over what they have.
//!
//! A view is cut like a checkpoint, by the job's protocol, so it is consistent in the same way; but nothing is frozen or
//! written for it. It rides on the next epoch to begin, whoever wanted that. If nobody did but the view, the epoch is for
//! that alone and is never committed. A checkpoint is not put off by views: where one is due, the epoch is one.

use super::pending::{Pending, Unmade};
use super::view::View;
use crate::operator::TableCut;
use std::sync::mpsc::Sender;

/// Where a view goes.
pub(crate) type ViewAnswer = Sender<Result<View, Unmade>>;

/// A view that was asked for.
pub type PendingView = Pending<View>;

#[derive(Default)]
pub(super) struct Views {
    wanted: Vec<ViewAnswer>,
    taking: Option<Taking>,
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
    answers: Vec<ViewAnswer>,
}

impl Views {
    /// Somebody wants one of all that has happened so far.
    pub fn want(&mut self, answer: ViewAnswer) {
        self.wanted.push(answer);
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
        let answers = std::mem::take(&mut self.wanted);
        self.taking = Some(Taking { epoch, only, is_cut: false, left: 0, tables: Vec::new(), answers });
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
            taking.tables.extend(tables);
        }
        self.hand_out();
    }

    fn hand_out(&mut self) {
        if let Some(taking) = self.taking.take_if(|taking| taking.is_cut && taking.left == 0) {
            let view = View::new(taking.epoch, taking.tables);
            for answer in taking.answers {
                // Who no longer waits for it does not need it.
                let _ = answer.send(Ok(view.clone()));
            }
        }
    }

    /// The epoch will not be: whether a view was to be cut there that is not complete.
    pub fn give_up(&mut self, epoch: u64, why: &Unmade) -> bool {
        let taken = self.taking.take_if(|taking| taking.epoch == epoch && !taking.is_cut);
        let Some(taking) = taken else { return false };
        taking.answers.into_iter().for_each(|answer| drop(answer.send(Err(why.clone()))));
        true
    }

    /// The attempt is over.
    pub fn refuse(&mut self, why: &Unmade) {
        let taking = self.taking.take().into_iter().flat_map(|taking| taking.answers);
        taking.chain(self.wanted.drain(..)).for_each(|answer| drop(answer.send(Err(why.clone()))));
    }
}
