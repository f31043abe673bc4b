//! What a shell does for a task, one function for each duty, on the model's queues. It asks the real machines, and has
//! none of their knowledge. Which duties there are at a moment, it does not know.

use super::graphs::{Setup, Wrong};
use super::world::{Message, Report, Slot, Snapshot, Word, World};
use snapring::checkpoint::{Cut, Drained, LapStep, Log, Outputs, Protocol, TaskCut};

/// A setup, with what the shell does in it.
#[derive(Clone, Copy)]
pub struct Shell<'a>(pub &'a Setup);

impl Shell<'_> {
    fn is(&self, wrong: Wrong) -> bool {
        self.0.wrong == wrong
    }

    /// Where a channel ends: task, and number of the input there.
    pub fn input(&self, channel: usize) -> (usize, usize) {
        let task = self.0.graph.channels[channel].1;
        let input = self.0.graph.inputs[task].iter().position(|&c| c == channel).expect("an input of its task");
        (task, input)
    }

    pub fn has_spill(&self, channel: usize) -> bool {
        self.0.graph.is_back(channel) && !self.is(Wrong::NoSpill)
    }

    /// Puts a slot behind everything in a channel.
    pub fn send(&self, world: &mut World, channel: usize, slot: Slot) {
        let capacity = self.0.capacity;
        let channel = world.channels[channel].edit();
        let full = channel.ring.len() >= capacity || !channel.leftovers.is_empty();
        if full { channel.leftovers.push(slot) } else { channel.ring.push(slot) }
    }

    /// Moves a leftover into the ring, where there is room.
    pub fn flush(&self, world: &mut World, channel: usize) -> bool {
        let known = &world.channels[channel];
        if known.leftovers.is_empty() || known.ring.len() >= self.0.capacity {
            return false;
        }
        let channel = world.channels[channel].edit();
        match channel.leftovers.remove(0) {
            Slot::Word(word) => channel.publish(word),
            slot => channel.ring.push(slot),
        }
        true
    }

    /// Does what a machine has decided, and what may follow.
    pub fn act(&self, world: &mut World, task: usize, cut: Cut) {
        match cut {
            Cut::Go => {}
            Cut::Pause(epoch) => world.tasks[task].edit().reports.push(Report::Paused(epoch)),
            Cut::Freeze(epoch) => self.freeze(world, task, epoch),
        }
        self.hand_over(world, task);
    }

    fn freeze(&self, world: &mut World, task: usize, epoch: u64) {
        let done = world.tasks[task].done;
        let mut copies = Vec::new();
        for (input, &channel) in self.0.graph.inputs[task].iter().enumerate() {
            let log = world.tasks[task].cut.log(input);
            self.begin_log(world, channel, epoch, log, &mut copies);
        }
        let outputs = world.tasks[task].cut.outputs();
        for &channel in &self.0.graph.outputs[task] {
            self.cut_output(world, task, channel, epoch, outputs, &mut copies);
        }
        copies.sort();
        let task = world.tasks[task].edit();
        (task.snapshot, task.forwarded) = (Some(Snapshot { epoch, done, copies }), 0);
    }

    fn begin_log(&self, world: &mut World, channel: usize, epoch: u64, log: Log, copies: &mut Vec<Message>) {
        let channel = world.channels[channel].edit();
        channel.logged = 0;
        let (passed, log) = if channel.passed == epoch { (0, Log::Empty) } else { (channel.passed, log) };
        channel.passed = passed;
        if log != Log::Empty {
            copies.extend(&channel.rest);
        }
        if log != Log::Empty && !self.is(Wrong::LogWithoutSpill) {
            let behind = self.is(Wrong::LogBehindBarrier);
            let ahead = channel.spill.iter().take_while(|slot| behind || **slot != Slot::Barrier(epoch));
            copies.extend(ahead.filter_map(message));
        }
        if log == Log::Whole {
            copies.extend(channel.ring.iter().filter_map(message));
        }
        channel.spill.retain(|slot| !matches!(slot, Slot::Barrier(of) if *of <= epoch));
    }

    fn cut_output(
        &self,
        world: &mut World,
        task: usize,
        channel: usize,
        epoch: u64,
        outputs: Outputs,
        copies: &mut Vec<Message>,
    ) {
        let forwarded = world.tasks[task].forwarded == epoch;
        if outputs == Outputs::Barrier {
            if !world.channels[channel].sent_end && !forwarded {
                self.send(world, channel, Slot::Barrier(epoch));
            }
            return;
        }
        if !self.is(Wrong::NoLeftovers) {
            copies.extend(world.channels[channel].leftovers.iter().filter_map(message));
        }
        if outputs == Outputs::Published && !world.channels[channel].sent_end {
            world.channels[channel].edit().publish(Word::Cut(epoch));
        }
    }

    /// Rule 22: barriers that wait in the outbox give way to cuts.
    pub fn overtake(&self, world: &mut World, task: usize) {
        if !world.tasks[task].cut.overtakes() {
            return;
        }
        let epoch = world.tasks[task].cut.frozen();
        for &channel in &self.0.graph.outputs[task] {
            let waits = world.channels[channel].leftovers.iter().position(|slot| *slot == Slot::Barrier(epoch));
            let Some(at) = waits else { continue };
            let channel = world.channels[channel].edit();
            channel.leftovers.remove(at);
            channel.publish(Word::Cut(epoch));
            let ahead: Vec<_> = channel.leftovers[..at].iter().filter_map(message).collect();
            if !self.is(Wrong::NotAmended) {
                self.log(world, task, &ahead);
            }
        }
        self.hand_over(world, task);
    }

    fn log(&self, world: &mut World, task: usize, messages: &[Message]) {
        let snapshot = world.tasks[task].edit().snapshot.as_mut().expect("an open log has its snapshot");
        snapshot.copies.extend(messages);
        snapshot.copies.sort();
    }

    /// Hands a snapshot over once it is complete.
    pub fn hand_over(&self, world: &mut World, task: usize) {
        let known = &world.tasks[task];
        let Some(snapshot) = &known.snapshot else { return };
        let barrier = Slot::Barrier(snapshot.epoch);
        let waits = |&channel: &usize| world.channels[channel].leftovers.contains(&barrier);
        let may_change =
            self.0.protocol == Protocol::AlignedThenUnaligned && self.0.graph.outputs[task].iter().any(waits);
        if known.cut.is_complete() && !may_change {
            let task = world.tasks[task].edit();
            let snapshot = task.snapshot.take().expect("just seen");
            task.reports.push(Report::Snapshot(snapshot));
        }
    }

    /// Tells the machine of the word beside a ring.
    fn tell_word(cut: &mut TaskCut, input: usize, word: Word) -> Cut {
        match word {
            Word::None => Cut::Go,
            Word::Cut(epoch) => cut.published(input, epoch),
            Word::End => {
                cut.published_end(input);
                Cut::Go
            }
        }
    }

    /// Whether the word beside a ring says something new. Then it comes before any slot (rule 7).
    pub fn has_news(&self, world: &World, channel: usize) -> bool {
        let (task, input) = self.input(channel);
        let watched = world.channels[channel].word != Word::None && world.tasks[task].cut.watches_cuts();
        let mut cut = if watched { world.tasks[task].cut.clone() } else { return false };
        Self::tell_word(&mut cut, input, world.channels[channel].word) != Cut::Go || cut != world.tasks[task].cut
    }

    /// Looks at the word beside a ring.
    pub fn look(&self, world: &mut World, channel: usize) {
        let (task, input) = self.input(channel);
        let cut = Self::tell_word(&mut world.tasks[task].edit().cut, input, world.channels[channel].word);
        self.act(world, task, cut);
        self.overtake(world, task);
    }

    /// Logs the slots that can be seen, ahead of the cut, and says whether there was anything to do.
    pub fn scan(&self, world: &mut World, channel: usize) -> bool {
        let (task, input) = self.input(channel);
        let cut = &world.tasks[task].cut;
        if !cut.looks_ahead() || !cut.is_logging(input) {
            return false;
        }
        let (end, closes) = world.channels[channel].log_end(cut.frozen());
        let logged = world.channels[channel].logged;
        if logged >= end && !closes {
            return false;
        }
        let end = end.max(logged);
        let new: Vec<_> = world.channels[channel].ring[logged..end].iter().filter_map(message).collect();
        self.log(world, task, &new);
        world.channels[channel].edit().logged = end;
        if closes {
            world.tasks[task].edit().cut.reached(input);
            self.hand_over(world, task);
        }
        true
    }

    /// Takes a slot out of a ring, and logs it if its log is open.
    fn pop(&self, world: &mut World, channel: usize) -> Slot {
        let (task, input) = self.input(channel);
        self.scan(world, channel);
        let part = world.channels[channel].edit();
        let slot = part.ring.remove(0);
        part.ahead = part.ahead.saturating_sub(1);
        part.logged = part.logged.saturating_sub(1);
        let cut = &world.tasks[task].cut;
        if let (Slot::Message(message), true, false) = (slot, cut.is_logging(input), cut.looks_ahead()) {
            self.log(world, task, &[message]);
        }
        slot
    }

    /// Drains a slot of a back edge into the spill.
    pub fn drain(&self, world: &mut World, channel: usize) {
        let (task, input) = self.input(channel);
        let slot = self.pop(world, channel);
        let machine = &mut world.tasks[task].edit().cut;
        let mut frozen = Cut::Go;
        let queue = match slot {
            Slot::Barrier(_) if matches!(self.0.wrong, Wrong::HeadWaits | Wrong::BarrierWhenProcessed) => true,
            Slot::Barrier(epoch) => match machine.drained(input, epoch) {
                Drained::Absorb => false,
                Drained::Queue => true,
                Drained::Freeze(epoch) => {
                    frozen = Cut::Freeze(epoch);
                    false
                }
            },
            Slot::End => {
                machine.end_drained(input);
                true
            }
            Slot::Message(_) | Slot::Lap(_) => true,
            Slot::Word(_) => unreachable!("a word is no slot"),
        };
        if queue {
            world.channels[channel].edit().spill.push(slot);
        }
        self.act(world, task, frozen);
    }

    /// What is at the front of an input, if the task may take it now.
    pub fn front(&self, world: &World, channel: usize) -> Option<Slot> {
        let (task, input) = self.input(channel);
        let cut = &world.tasks[task].cut;
        if !cut.polls(input) {
            return None;
        }
        let part = &world.channels[channel];
        if let Some(message) = part.rest.first() {
            return Some(Slot::Message(*message));
        }
        if !self.has_spill(channel) {
            return part.ring.first().copied().filter(|_| !self.has_news(world, channel));
        }
        let goes_by = matches!(self.0.wrong, Wrong::NoHoldBack | Wrong::HeadWaits | Wrong::BarrierWhenProcessed);
        part.spill.first().copied().filter(|slot| match slot {
            Slot::Barrier(epoch) => goes_by || !cut.holds(*epoch),
            _ => true,
        })
    }

    /// Takes what is at the front of an input.
    pub fn take(&self, world: &mut World, channel: usize) {
        let (task, input) = self.input(channel);
        let part = &world.channels[channel];
        let slot = if !part.rest.is_empty() {
            Slot::Message(world.channels[channel].edit().rest.remove(0))
        } else if self.has_spill(channel) {
            world.channels[channel].edit().spill.remove(0)
        } else {
            self.pop(world, channel)
        };
        let part = world.tasks[task].edit();
        let cut = match slot {
            Slot::Message(message) => {
                part.laps.processed(input);
                self.process(world, task, message);
                Cut::Go
            }
            Slot::Barrier(epoch) => self.take_barrier(world, channel, epoch),
            Slot::Lap(lap) => {
                part.laps.marker(input, lap);
                Cut::Go
            }
            Slot::End => {
                part.laps.ended(input);
                part.cut.ended(input)
            }
            Slot::Word(_) => unreachable!("a word is no slot"),
        };
        self.act(world, task, cut);
    }

    fn take_barrier(&self, world: &mut World, channel: usize, epoch: u64) -> Cut {
        let (task, input) = self.input(channel);
        let machine = &mut world.tasks[task].edit().cut;
        if self.has_spill(channel) && self.is(Wrong::BarrierWhenProcessed) {
            let _ = machine.drained(input, epoch);
            return Cut::Go;
        }
        if self.has_spill(channel) && self.is(Wrong::NoHoldBack) && machine.holds(epoch) {
            world.channels[channel].edit().passed = epoch;
            return Cut::Go;
        }
        let cut = machine.barrier(input, epoch);
        let graph = &self.0.graph;
        if self.is(Wrong::HeadWaits) && graph.is_head(task) && cut == Cut::Go {
            let waits = |(input, &channel): (usize, &usize)| graph.is_back(channel) || !machine.polls(input);
            if graph.inputs[task].iter().enumerate().all(waits) && world.tasks[task].forwarded < epoch {
                world.tasks[task].edit().forwarded = epoch;
                graph.outputs[task].iter().for_each(|&output| self.send(world, output, Slot::Barrier(epoch)));
            }
        }
        cut
    }

    /// A task processes a message, and sends it on.
    pub fn process(&self, world: &mut World, task: usize, message: Message) {
        let Message { id, hop } = message;
        let Some(way) = self.0.graph.ways.get(usize::from(id)) else {
            world.tasks[task].edit().done[usize::from(id)] += 1;
            return;
        };
        assert!(way[usize::from(hop)] == task, "{message:?} lost its way");
        let next = usize::from(hop) + 1;
        let eternal = self.0.eternal && id == 0;
        if !eternal || next == 1 {
            world.tasks[task].edit().done[usize::from(id)] += 1;
        }
        let next = if eternal && next == way.len() { 1 } else { next };
        if next < way.len() {
            let channel = self.0.graph.channel(task, way[next]);
            self.send(world, channel, Slot::Message(Message { id, hop: next as u8 }));
        }
    }

    /// The task has read `aborted_to`.
    pub fn drop_snapshot(&self, world: &mut World, task: usize, aborted_to: u64) {
        let part = world.tasks[task].edit();
        part.snapshot = part.snapshot.take().filter(|snapshot| snapshot.epoch > aborted_to);
    }

    /// What is due in the lap protocol. What a head reports is returned.
    pub fn lap(&self, world: &mut World, task: usize, step: LapStep) -> Option<(u64, bool)> {
        match step {
            LapStep::Send(lap) => {
                for &channel in self.0.graph.outputs[task].iter().filter(|&&channel| self.0.graph.is_inside(channel)) {
                    if !world.channels[channel].sent_end {
                        self.send(world, channel, Slot::Lap(lap));
                    }
                }
                None
            }
            LapStep::Report { lap, dirty } => Some((lap, dirty && !self.is(Wrong::AlwaysClean))),
        }
    }

    /// End goes to all consumers.
    pub fn send_end(&self, world: &mut World, task: usize) {
        let publishes = world.tasks[task].cut.watches_cuts();
        for &channel in &self.0.graph.outputs[task] {
            if !world.channels[channel].sent_end {
                let part = world.channels[channel].edit();
                part.sent_end = true;
                if publishes {
                    part.publish(Word::End);
                }
                self.send(world, channel, Slot::End);
            }
        }
    }
}

fn message(slot: &Slot) -> Option<Message> {
    match slot {
        Slot::Message(message) => Some(*message),
        _ => None,
    }
}
