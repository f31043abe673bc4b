//! The inputs of a task, polled in turn. It knows which have ended, but not why the caller skips one.

use super::ring_consumer::{Consumer, Polled};
use crate::marks::Mark;

/// The consumers of one task, of one record type.
pub struct Inbox<T> {
    inputs: Vec<Consumer<T>>,
    /// The input that is looked at first.
    next: usize,
    live: usize,
}

impl<T> Inbox<T> {
    /// An inbox over these inputs.
    pub fn new(inputs: Vec<Consumer<T>>) -> Self {
        let live = inputs.len();
        Self { inputs, next: 0, live }
    }

    /// The number of inputs, ended ones too.
    pub fn inputs(&self) -> usize {
        self.inputs.len()
    }

    /// Takes one batch or mark of the next input that has any, and says which. Goes round, so that a busy input starves no
    /// other. Inputs for which `polls` is false are skipped (their barrier is there); `None`: no input has anything.
    #[inline]
    pub fn poll(&mut self, polls: impl Fn(usize) -> bool) -> Option<(usize, Polled<'_, T>)> {
        let (before, after) = (0..self.next, self.next..self.inputs.len());
        let input = after.chain(before).find(|&input| self.inputs[input].is_ready() && polls(input))?;
        self.next = if input + 1 == self.inputs.len() { 0 } else { input + 1 };
        let polled = self.inputs[input].poll();
        if matches!(polled, Polled::Mark(Mark::End)) {
            self.live -= 1;
        }
        Some((input, polled))
    }

    /// Whether [`Inbox::poll`] would take something.
    #[inline]
    pub fn is_ready(&self, polls: impl Fn(usize) -> bool) -> bool {
        self.inputs.iter().enumerate().any(|(input, consumer)| consumer.is_ready() && polls(input))
    }

    /// Whether [`Mark::End`] of this input has been taken.
    ///
    /// # Panics
    /// There is no such input.
    pub fn has_ended(&self, input: usize) -> bool {
        self.inputs[input].has_ended()
    }

    /// Whether all inputs have ended.
    pub fn all_ended(&self) -> bool {
        self.live == 0
    }

    /// Poisons all rings: the task has failed.
    pub fn poison(&mut self) {
        for input in &mut self.inputs {
            input.poison();
        }
    }
}
