//! A task's part in the end of its loop: it passes markers on, or, as a head, sends them, and reports when they have come
//! round. Who sends what and when the loop has ended is decided in `checkpoint`.

use super::component::Component;
use crate::checkpoint::{InputKind, LapMove, Laps};
use std::sync::Arc;

pub(crate) struct Rounds {
    component: Arc<Component>,
    laps: Laps,
    is_head: bool,
}

impl Rounds {
    /// `inside`: which inputs come from within the loop.
    pub(super) fn new(component: Arc<Component>, inputs: &[InputKind], inside: Vec<bool>) -> Self {
        let is_head = inputs.contains(&InputKind::Back);
        Self { component, laps: Laps::new(is_head, &inside), is_head }
    }

    /// A record from within the loop was processed.
    #[inline]
    pub(super) fn processed_inside(&mut self) {
        self.laps.processed_inside();
    }

    /// A marker is at the front of an input: the lap to send on, if one is.
    pub(super) fn marker(&mut self, input: usize, lap: u64) -> Option<u64> {
        let next = self.laps.marker(input, lap);
        self.follow(next)
    }

    /// An input has ended.
    pub(super) fn ended(&mut self, input: usize) -> Option<u64> {
        let next = self.laps.ended(input);
        self.follow(next)
    }

    /// There is nothing to process at this moment: a head begins the lap that is due.
    pub(super) fn idle(&mut self) -> Option<u64> {
        let lap = self.component.lap().filter(|_| self.is_head)?;
        let next = self.laps.due(lap);
        self.follow(next)
    }

    /// A head takes in nothing more.
    pub(super) fn is_over(&self) -> bool {
        self.is_head && self.component.is_over()
    }

    fn follow(&mut self, next: LapMove) -> Option<u64> {
        let LapMove { send, report } = next;
        if let Some((lap, dirty)) = report {
            self.component.report(lap, dirty);
        }
        send
    }
}
