//! The root of a task that reads from rings: takes from its inputs in turn, after what a restore has brought.

use super::body::{Body, Took};
use super::careful::{Care, Hand};
use super::component::Component;
use super::input::{Input, Taken};
use super::shared::Shared;
use crate::channel::Records;
use crate::checkpoint::{Cut, InputKind, TaskCut};
use crate::error::Failed;
use crate::marks::Mark;
use crate::operator::{EdgeEnd, Link, Pipe, Visit};
use crate::record::{Record, encode_items};
use crate::snapshot::{ChannelPart, Entry as Kept, REST, Side};
use std::collections::VecDeque;
use std::sync::Arc;

/// What a task reads, and where it stands in the graph.
pub(crate) struct Inputs<T> {
    pub(crate) inputs: Vec<Input<T>>,
    /// The edges that lead in.
    pub(crate) edges: Vec<EdgeEnd>,
    /// Batches that a restore has brought, each with its edge. They go first.
    pub(crate) rest: VecDeque<(usize, Vec<T>)>,
    /// The loop that the task is part of.
    pub(crate) component: Option<Arc<Component>>,
    /// Above so many bytes in its spills the loop is full.
    pub(crate) full_bytes: u64,
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Entry<T> {
    inputs: Vec<Input<T>>,
    edges: Vec<EdgeEnd>,
    rest: VecDeque<(usize, Vec<T>)>,
    /// What was left of it when the task froze.
    kept: Vec<(usize, ChannelPart)>,
    component: Option<Arc<Component>>,
    full_bytes: u64,
    /// This head has said that it is full.
    is_full: bool,
    /// It has shown that it holds inputs.
    shows_held: bool,
    shared: Arc<Shared>,
    /// The input that is looked at first.
    next: usize,
    pipe: Box<dyn Pipe<T>>,
    hand: Hand<T>,
}

impl<T: Record> Entry<T> {
    pub(crate) fn new(inputs: Inputs<T>, pipe: Box<dyn Pipe<T>>, care: Option<Care>) -> Self {
        let Inputs { inputs, edges, rest, component, full_bytes, shared } = inputs;
        let hand = Hand::new(care);
        Self {
            inputs,
            edges,
            rest,
            kept: Vec::new(),
            component,
            full_bytes,
            is_full: false,
            shows_held: false,
            shared,
            next: 0,
            pipe,
            hand,
        }
    }

    /// Whether an input waits because its loop is full (protocols, rule 28).
    #[inline]
    fn is_held(&self, input: usize, cut: &TaskCut) -> bool {
        self.inputs[input].origin.enters
            && self.component.as_ref().is_some_and(|component| component.is_full())
            && !cut.needs_barrier(input, self.shared.requested())
    }

    /// The next input, in turn, that has something to be taken now.
    #[inline]
    fn find(&self, cut: &TaskCut) -> Option<usize> {
        let (before, after) = (0..self.next, self.next..self.inputs.len());
        after.chain(before).find(|&input| self.inputs[input].is_ready(cut) && !self.is_held(input, cut))
    }

    /// Tells the others in the loop whether this head holds too much.
    fn show_fullness(&mut self) {
        let Some(component) = &self.component else { return };
        let is_full = self.inputs.iter().map(Input::spilled_bytes).sum::<u64>() > self.full_bytes;
        if is_full != self.is_full {
            self.is_full = is_full;
            component.head_is_full(is_full);
        }
    }

    fn is_head(&self) -> bool {
        self.inputs.iter().any(|input| input.origin.kind == InputKind::Back)
    }

    /// Looks at the cuts beside the rings, and logs what has come into them.
    fn look_beside(&mut self, cut: &mut TaskCut) -> Cut {
        for input in &mut self.inputs {
            let beside = input.slots().look_beside(cut);
            if beside != Cut::Go {
                return beside;
            }
        }
        if cut.looks_ahead() && !cut.is_complete() {
            self.inputs.iter_mut().for_each(|input| input.slots().look_ahead(cut));
        }
        Cut::Go
    }

    /// Keeps for the snapshot what is left of the restored records.
    fn keep_rest(&mut self) {
        self.kept.clear();
        for (edge, batch) in &self.rest {
            if self.kept.last().is_none_or(|(of, _)| of != edge) {
                let EdgeEnd { task: to, tasks: to_tasks, .. } = self.edges[*edge];
                let part = ChannelPart { from: REST, to, to_tasks, records: 0, bytes: Vec::new() };
                self.kept.push((*edge, part));
            }
            let (_, part) = self.kept.last_mut().expect("just pushed, if there was none");
            encode_items(batch, &mut part.bytes);
            part.records += batch.len() as u64;
        }
    }

    fn take_rest(&mut self, taken: &mut u64) -> Result<bool, Failed> {
        let Some((_, batch)) = self.rest.front_mut() else { return Ok(false) };
        let handed = self.hand.on(&mut *self.pipe, &mut Records::of(batch), taken);
        self.rest.pop_front();
        handed.map(|()| true)
    }
}

impl<T: Record> Body for Entry<T> {
    fn inputs(&self) -> Vec<InputKind> {
        self.inputs.iter().map(|input| input.origin.kind).collect()
    }

    fn inside(&self) -> Vec<bool> {
        self.inputs.iter().map(|input| input.origin.inside).collect()
    }

    fn attend(&mut self, cut: &mut TaskCut, is_blocked: bool) -> Result<Cut, Failed> {
        if cut.watches_cuts() {
            let beside = self.look_beside(cut);
            if beside != Cut::Go {
                return Ok(beside);
            }
        }
        if self.component.is_none() || !self.is_head() {
            return Ok(Cut::Go);
        }
        // What is drained by and by keeps its order; an input without a spill is read straight from its ring, unless nothing
        // is read at all.
        let mut freeze = Cut::Go;
        for input in &mut self.inputs {
            if is_blocked || !self.rest.is_empty() || input.lags() || !cut.polls(input.slots().number()) {
                match input.drain(cut)? {
                    Taken::Freeze(epoch) => freeze = Cut::Freeze(epoch),
                    Taken::Broken => self.shared.check_neighbours()?,
                    _ => {}
                }
            }
            if freeze != Cut::Go {
                break;
            }
        }
        self.show_fullness();
        Ok(freeze)
    }

    fn poll(&mut self, cut: &mut TaskCut, taken: &mut u64) -> Result<Took, Failed> {
        if !cut.is_paused() && self.take_rest(taken)? {
            return Ok(Took::Records);
        }
        let Some(number) = self.find(cut) else { return Ok(Took::Nothing) };
        self.next = if number + 1 == self.inputs.len() { 0 } else { number + 1 };
        let input = &mut self.inputs[number];
        let inside = input.origin.inside;
        match input.take(cut)? {
            Taken::Records(mut records) => {
                // What whoever was before in the loop emitted at its end.
                if inside && self.component.as_ref().is_some_and(|component| component.is_over()) {
                    self.pipe.outgoing(&mut |edge| edge.end_loop());
                }
                self.hand.on(&mut *self.pipe, &mut records, taken)?;
                Ok(if inside { Took::InsideRecords } else { Took::Records })
            }
            Taken::Mark(mark) => Ok(Took::Mark(number, mark)),
            Taken::Freeze(epoch) => Ok(Took::Cut(Cut::Freeze(epoch))),
            Taken::Aside => Ok(Took::Aside),
            Taken::Nothing => Ok(Took::Nothing),
            Taken::Broken => Ok(Took::Broken),
        }
    }

    fn is_ready(&self, cut: &TaskCut) -> bool {
        !self.rest.is_empty() || self.find(cut).is_some()
    }

    fn absorb(&mut self, cut: &mut TaskCut, is_cut: bool) -> Result<Cut, Failed> {
        if is_cut && cut.watches_cuts() {
            let beside = self.look_beside(cut);
            if beside != Cut::Go {
                return Ok(beside);
            }
        }
        for (number, input) in self.inputs.iter_mut().enumerate() {
            while cut.polls(number) && (!is_cut || input.is_ready(cut)) {
                match input.take(cut)? {
                    Taken::Records(_) => unreachable!("no edge to a head takes records once the loop has ended"),
                    Taken::Mark(Mark::End) => {
                        let freeze = cut.ended(number);
                        if freeze != Cut::Go {
                            return Ok(freeze);
                        }
                    }
                    Taken::Freeze(epoch) => return Ok(Cut::Freeze(epoch)),
                    Taken::Broken => {
                        self.shared.check_neighbours()?;
                        break;
                    }
                    Taken::Nothing => break,
                    Taken::Mark(Mark::Barrier(epoch)) if is_cut => {
                        let freeze = cut.barrier(number, epoch);
                        if freeze != Cut::Go {
                            return Ok(freeze);
                        }
                    }
                    Taken::Mark(_) | Taken::Aside => {}
                }
            }
        }
        Ok(Cut::Go)
    }

    fn show_held(&mut self, cut: &TaskCut, waits: bool) {
        if !waits && !self.shows_held {
            return;
        }
        let shown = std::mem::take(&mut self.shows_held);
        for number in 0..self.inputs.len() {
            let held = waits && !cut.has_ended(number) && (!cut.polls(number) || self.is_held(number, cut));
            self.shows_held |= held;
            if held || shown {
                self.inputs[number].slots().show_held(held);
            }
        }
    }

    fn begin_logs(&mut self, cut: &mut TaskCut) -> Result<(), Failed> {
        self.keep_rest();
        for (number, input) in self.inputs.iter_mut().enumerate() {
            input.begin_log(cut.log(number), cut.frozen())?;
        }
        if cut.looks_ahead() {
            self.inputs.iter_mut().for_each(|input| input.slots().look_ahead(cut));
        }
        Ok(())
    }

    fn take_logs(&mut self) -> Vec<Kept> {
        let mut parts = std::mem::take(&mut self.kept);
        for input in &mut self.inputs {
            let edge = input.origin.edge;
            parts.extend(input.take_log(&self.edges[edge]).map(|part| (edge, part)));
        }
        let mut entries = Vec::new();
        for (number, edge) in self.edges.iter().enumerate() {
            let of_edge = parts.extract_if(.., |(of, _)| *of == number).map(|(_, part)| part).collect();
            entries.extend(edge.entry::<T>(Side::Input, &of_edge));
        }
        entries
    }

    fn text(&self) -> Option<String> {
        self.hand.text()
    }

    fn link(&mut self) -> &mut dyn Link {
        &mut *self.pipe
    }

    fn poison(&mut self) {
        self.inputs.iter_mut().for_each(|input| input.slots().poison());
        self.pipe.poison();
    }

    fn visit(&mut self, visit: &mut Visit<'_>) -> Result<(), Failed> {
        self.pipe.visit(visit)
    }
}

/// Hands a batch on. `taken` counts the records that have been taken out of it, also when one of them panics.
pub(super) fn hand_on<T>(pipe: &mut dyn Pipe<T>, records: &mut Records<'_, T>, taken: &mut u64) -> Result<(), Failed> {
    struct Count<'a, 'b, T> {
        records: &'a mut Records<'b, T>,
        before: u64,
        taken: &'a mut u64,
    }
    impl<T> Drop for Count<'_, '_, T> {
        fn drop(&mut self) {
            *self.taken += self.before - self.records.len() as u64;
        }
    }
    let before = records.len() as u64;
    let count = Count { records, before, taken };
    pipe.batch(count.records)
}
