//! A task's part in the end of its loop: it passes markers on, or, as a head, sends them, and reports when they have come
//! round. Who sends what and when the loop has ended is decided in `checkpoint`.

use super::component::Component;
use crate::checkpoint::{InputKind, LapRole, LapStep, Laps};
use std::sync::Arc;

pub(crate) struct Rounds {
    component: Arc<Component>,
    laps: Laps,
    /// Any input from within.
    inside: usize,
}

impl Rounds {
    /// `inside`: which inputs come from within the loop.
    pub(super) fn new(component: Arc<Component>, inputs: &[InputKind], inside: &[bool]) -> Self {
        let role = if inputs.contains(&InputKind::Back) { LapRole::Head } else { LapRole::Body };
        let laps = Laps::new(role, inside);
        Self { component, laps, inside: inside.iter().position(|inside| *inside).unwrap_or(0) }
    }

    /// Records from within the loop were processed.
    #[inline]
    pub(super) fn processed_inside(&mut self) {
        self.laps.processed(self.inside);
    }

    /// A marker is at the front of an input.
    pub(super) fn marker(&mut self, input: usize, lap: u64) {
        self.laps.marker(input, lap);
    }

    /// The End is at the front of an input.
    pub(super) fn ended(&mut self, input: usize) {
        self.laps.ended(input);
    }

    /// What is due: the lap whose marker is to be sent. `is_quiet`: there is nothing to process at this moment.
    pub(super) fn next(&mut self, is_quiet: bool) -> Option<u64> {
        if !self.laps.is_on() {
            return None;
        }
        // A body passes markers on whether or not there is more behind them.
        let is_quiet = is_quiet || !self.laps.is_head();
        loop {
            match self.laps.next(self.component.lap(), is_quiet)? {
                LapStep::Send(lap) => return Some(lap),
                LapStep::Report { lap, dirty } => self.component.report(lap, dirty),
            }
        }
    }

    /// A head takes in nothing more.
    pub(super) fn is_over(&self) -> bool {
        self.laps.is_head() && self.component.is_over()
    }
}
