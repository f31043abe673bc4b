//! A whole job, step by step: every step that a coordinator, a task or a channel can make, each in any order with all
//! others. Each word is read in a step of its own, as late as a task likes. And what must hold: the cut of every exact
//! checkpoint counts each message on one side or in one copy; a loop ends only when it is empty; the end stays in reach.

use super::explore::Explored;
use super::graphs::{Setup, Wrong};
use super::shell::Shell;
use super::world::{Done, MESSAGES, Message, Report, Slot, Word, World};
use snapring::checkpoint::{Action, Component, Cut, LapStep, TaskCut};

/// What happened, and at which task or channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Begin,
    TimeOut,
    Abort,
    Durable,
    Hear(usize),
    ReadRequest(usize),
    ReadTimedOut(usize),
    ReadReleased(usize),
    ReadAborted(usize),
    ReadClosed(usize),
    Give(usize),
    SendLap(usize),
    SendEnd(usize),
    Finish(usize),
    Flush(usize),
    Look(usize),
    Log(usize),
    Drain(usize),
    Take(usize),
}

type Nexts = Vec<(Step, World)>;

impl Explored for Setup {
    type World = World;
    type Step = Step;

    fn start(&self) -> World {
        World::new(self)
    }

    fn steps(&self, world: &World) -> Nexts {
        let mut nexts = Vec::new();
        self.coordinator_steps(world, &mut nexts);
        for task in (0..world.tasks.len()).filter(|&task| !world.tasks[task].finished) {
            self.word_steps(world, task, &mut nexts);
            if !world.tasks[task].cut.is_paused() {
                self.task_steps(world, task, &mut nexts);
            }
        }
        for channel in 0..world.channels.len() {
            self.channel_steps(world, channel, &mut nexts);
        }
        nexts
    }

    fn fingerprint(&self, world: &mut World) -> u64 {
        world.fingerprint()
    }

    fn fault<'w>(&self, world: &'w World) -> Option<&'w str> {
        world.fault.as_deref()
    }

    fn is_goal(&self, world: &World) -> bool {
        let graph = &self.graph;
        let whole = |(id, way): (usize, &&[usize])| {
            let done =
                |&task: &usize| world.tasks[task].done[id] as usize == way.iter().filter(|t| **t == task).count();
            way.iter().all(done) || self.eternal && id == 0
        };
        let ended = !self.ends || world.tasks.iter().all(|task| task.finished) && world.job.coordinator.is_over();
        let begun = !self.eternal || world.job.begun == self.epochs;
        ended
            && begun
            && !world.is_pending()
            && world.job.committing.is_none()
            && graph.ways.iter().enumerate().all(whole)
    }

    fn name(&self, step: Step) -> String {
        let task = |task: usize, does: &str| format!("{} {does}", self.graph.tasks[task]);
        let at = |channel: usize, does: &str| format!("{does} {}", self.graph.channel_name(channel));
        match step {
            Step::Begin => "an epoch begins".into(),
            Step::TimeOut => "the epoch is timed out".into(),
            Step::Abort => "the epoch is given up".into(),
            Step::Durable => "the epoch is durable".into(),
            Step::Hear(t) => format!("the coordinator hears {}", self.graph.tasks[t]),
            Step::ReadRequest(t) => task(t, "reads the request"),
            Step::ReadTimedOut(t) => task(t, "reads that it is timed out"),
            Step::ReadReleased(t) => task(t, "reads that all have paused"),
            Step::ReadAborted(t) => task(t, "reads that it is given up"),
            Step::ReadClosed(t) => task(t, "reads that it is closed"),
            Step::Give(t) => task(t, "gives a message"),
            Step::SendLap(t) => task(t, "sends its lap marker"),
            Step::SendEnd(t) => task(t, "sends End"),
            Step::Finish(t) => task(t, "finishes"),
            Step::Flush(c) => at(c, "a leftover goes into the ring"),
            Step::Look(c) => at(c, "the word is seen beside"),
            Step::Log(c) => at(c, "slots are logged in"),
            Step::Drain(c) => at(c, "a slot is drained from"),
            Step::Take(c) => at(c, "the front is taken from"),
        }
    }

    fn dump(&self, world: &World) -> String {
        let mut lines = vec![format!("  request {}, closed to {}", world.job.request, world.job.closed_to)];
        for (name, task) in self.graph.tasks.iter().zip(&world.tasks) {
            let (done, frozen) = (&task.done[..self.graph.ways.len()], task.cut.frozen());
            lines.push(format!("  {name}: processed {done:?}, frozen in {frozen}, snapshot {:?}", task.snapshot));
        }
        for (c, channel) in world.channels.iter().enumerate() {
            let super::world::Channel { rest, spill, ring, leftovers, word, ahead, .. } = &**channel;
            let name = self.graph.channel_name(c);
            let word = if *word == Word::None { String::new() } else { format!(", {word:?} at {ahead}") };
            lines.push(format!("  {name}: rest {rest:?} spill {spill:?} ring {ring:?} leftovers {leftovers:?}{word}"));
        }
        lines.join("\n")
    }
}

impl Setup {
    fn shell(&self) -> Shell<'_> {
        Shell(self)
    }

    fn coordinator_steps(&self, world: &World, nexts: &mut Nexts) {
        let job = &world.job;
        if job.begun < self.epochs && job.committing.is_none() && !world.is_pending() {
            self.action(world, Step::Begin, nexts, |world| {
                let coordinator = &mut world.job.edit().coordinator;
                let _ = coordinator.demand();
                coordinator.tick(0)
            });
        }
        if world.is_pending() && job.committing.is_none() {
            self.action(world, Step::TimeOut, nexts, |world| world.job.edit().coordinator.tick(1));
        }
        if world.is_pending() && job.aborts > 0 {
            let last = job.finals.iter().all(Option::is_some); // given up, it would fail the job
            self.action(world, Step::Abort, nexts, |world| {
                let job = world.job.edit();
                job.aborts -= 1;
                match job.committing {
                    Some(_) if last => None,
                    Some(epoch) => job.coordinator.declined(epoch),
                    None => job.coordinator.tick(2),
                }
            });
        }
        if let Some(epoch) = job.committing {
            let mut next = world.clone();
            let job = next.job.edit();
            job.coordinator.durable(epoch);
            (job.closed_to, job.committing) = (epoch, None);
            job.handed.fill(None);
            nexts.push((Step::Durable, next));
        }
        for task in (0..world.tasks.len()).filter(|&task| !world.tasks[task].reports.is_empty()) {
            let mut next = world.clone();
            self.hear(&mut next, task);
            nexts.push((Step::Hear(task), next));
        }
    }

    fn action(&self, world: &World, step: Step, nexts: &mut Nexts, make: impl Fn(&mut World) -> Option<Action>) {
        let mut next = world.clone();
        if let Some(action) = make(&mut next) {
            self.act(&mut next, Some(action));
            nexts.push((step, next));
        }
    }

    /// The coordinator hears the oldest report of a task.
    fn hear(&self, world: &mut World, task: usize) {
        let report = world.tasks[task].edit().reports.remove(0);
        let job = world.job.edit();
        let action = match report {
            Report::Paused(epoch) => job.coordinator.paused(task, epoch),
            Report::Snapshot(snapshot) => {
                let epoch = snapshot.epoch;
                if epoch == job.request && epoch > job.closed_to {
                    job.handed[task] = Some(snapshot);
                }
                job.coordinator.snapshot(task, epoch)
            }
            Report::Final(done) => {
                job.finals[task] = Some(done);
                job.coordinator.finished(task)
            }
        };
        self.act(world, action);
    }

    /// What the coordinator's shell does.
    fn act(&self, world: &mut World, action: Option<Action>) {
        let Some(action) = action else { return };
        let job = world.job.edit();
        match action {
            Action::Begin(epoch) => {
                job.request = epoch;
                job.begun += 1;
            }
            Action::TimeOut(epoch) => job.timed_out = epoch,
            Action::Release(epoch) => job.released = epoch,
            Action::Abort(epoch) => {
                (job.aborted_to, job.closed_to, job.committing) = (epoch, epoch, None);
                job.handed.fill(None);
            }
            Action::Commit(epoch) => {
                job.committing = Some(epoch);
                job.request = job.request.max(epoch);
                let fault = self.check_cut(world);
                world.fault = world.fault.take().or(fault.map(|what| format!("epoch {epoch}: {what}")));
            }
            Action::Fail(epoch) => panic!("epoch {epoch} was the last"),
        }
    }

    /// A task reads a word, if that changes anything.
    fn word_steps(&self, world: &World, task: usize, nexts: &mut Nexts) {
        let (job, known) = (&world.job, &world.tasks[task]);
        let shell = self.shell();
        let told = |word: u64, tell: &dyn Fn(&mut TaskCut) -> Cut| {
            let mut cut = known.cut.clone();
            let says = if word > 0 { tell(&mut cut) } else { Cut::Go };
            (says != Cut::Go || cut != known.cut).then(|| {
                let mut next = world.clone();
                next.tasks[task].edit().cut = cut;
                (says, next)
            })
        };
        for (step, read) in [
            (Step::ReadRequest(task), told(job.request, &|cut| cut.requested(job.request))),
            (Step::ReadReleased(task), told(job.released, &|cut| cut.released(job.released))),
            (Step::ReadTimedOut(task), told(job.timed_out, &|cut| cut.timed_out(job.timed_out))),
            (
                Step::ReadClosed(task),
                told(job.closed_to, &|cut| {
                    cut.closed_to(job.closed_to);
                    Cut::Go
                }),
            ),
        ] {
            let Some((says, mut next)) = read else { continue };
            shell.act(&mut next, task, says);
            shell.overtake(&mut next, task);
            self.push(step, next, task, nexts);
        }
        let gives_up = told(job.aborted_to, &|cut| {
            cut.aborted_to(job.aborted_to);
            Cut::Go
        });
        if let Some((_, mut next)) = gives_up.filter(|_| self.wrong != Wrong::NoAborts || self.graph.is_source(task)) {
            shell.drop_snapshot(&mut next, task, job.aborted_to);
            self.push(Step::ReadAborted(task), next, task, nexts);
        }
    }

    fn task_steps(&self, world: &World, task: usize, nexts: &mut Nexts) {
        let known = &world.tasks[task];
        let leftovers = world.has_leftovers(&self.graph, task);
        let lap = self.graph.component[task].map(|component| world.job.components[component].lap());
        let rest = (0..self.graph.ways.len()).find(|&m| self.graph.ways[m][0] == task && known.done[m] == 0);
        let rest = rest.filter(|_| self.graph.is_source(task));
        if let Some(id) = rest.filter(|_| !leftovers) {
            let mut next = world.clone();
            self.shell().process(&mut next, task, Message { id: id as u8, hop: 0 });
            self.push(Step::Give(task), next, task, nexts);
        }
        if let Some(lap) = lap.filter(|_| known.laps.is_on() && known.laps.is_head()) {
            self.lap_step(world, task, lap, nexts);
        }
        let leftovers = leftovers && self.wrong != Wrong::FinishesWithLeftovers;
        let may = self.wrong == Wrong::FinishesInEpoch || known.cut.may_finish(world.job.closed_to);
        if leftovers || !may {
            return;
        }
        let sends = self.graph.outputs[task].iter().any(|&channel| !world.channels[channel].sent_end);
        if lap == Some(Component::ENDED) && known.laps.is_head() && sends {
            let mut next = world.clone();
            self.shell().send_end(&mut next, task);
            self.push(Step::SendEnd(task), next, task, nexts);
        }
        let done = known.cut.all_ended() && rest.is_none() && (self.ends || !self.graph.is_source(task));
        if done && !(sends && known.laps.is_head()) {
            let mut next = world.clone();
            self.shell().send_end(&mut next, task);
            let part = next.tasks[task].edit();
            part.finished = true;
            part.reports.push(Report::Final(part.done));
            self.push(Step::Finish(task), next, task, nexts);
        }
    }

    /// A head begins a lap. All else in laps is done at once, when it is due.
    fn lap_step(&self, world: &World, task: usize, lap: u64, nexts: &mut Nexts) {
        let empty = |&c: &usize| {
            let channel = &world.channels[c];
            channel.rest.is_empty() && channel.spill.is_empty() && channel.ring.is_empty()
        };
        let is_quiet = self.hasty || self.graph.inputs[task].iter().all(empty);
        let mut next = world.clone();
        let Some(step) = next.tasks[task].edit().laps.next(lap, is_quiet) else { return };
        self.lap(&mut next, task, step);
        self.push(Step::SendLap(task), next, task, nexts);
    }

    fn lap(&self, world: &mut World, task: usize, step: LapStep) {
        let Some((lap, dirty)) = self.shell().lap(world, task, step) else { return };
        let component = self.graph.component[task].expect("laps are run in components");
        let word = world.job.edit().components[component].report(lap, dirty);
        if word == Some(Component::ENDED) && self.holds_messages(world, component) {
            world.fault = Some("the loop ends with a message in it".into());
        }
    }

    /// A body task passes markers, a head reports.
    fn pass_laps(&self, world: &mut World, task: usize) {
        if self.wrong == Wrong::BodyPassesEarly && !self.graph.is_head(task) {
            let inputs = self.graph.inputs[task].iter().enumerate();
            let outside = inputs.filter(|(_, c)| !self.graph.is_inside(**c));
            outside.for_each(|(input, _)| world.tasks[task].edit().laps.ended(input));
        }
        // Heads are told of no lap, so they begin none.
        while world.tasks[task].laps.is_on() && world.tasks[task].laps.clone().next(0, true).is_some() {
            let step = world.tasks[task].edit().laps.next(0, true).expect("just seen");
            self.lap(world, task, step);
        }
    }

    /// Whether a message lies in an input of a task of this component.
    fn holds_messages(&self, world: &World, component: usize) -> bool {
        let is_message = |slot: &Slot| matches!(slot, Slot::Message(_));
        self.graph.channels.iter().zip(&world.channels).any(|((_, to, _), channel)| {
            let mut slots = channel.spill.iter().chain(&channel.ring).chain(&channel.leftovers);
            self.graph.component[*to] == Some(component) && (!channel.rest.is_empty() || slots.any(is_message))
        })
    }

    fn channel_steps(&self, world: &World, channel: usize, nexts: &mut Nexts) {
        let (from, to, _) = self.graph.channels[channel];
        let shell = self.shell();
        if !world.tasks[from].cut.is_paused() || world.tasks[from].finished || self.wrong == Wrong::FlushesPaused {
            let mut next = world.clone();
            if shell.flush(&mut next, channel) {
                shell.hand_over(&mut next, from);
                self.push(Step::Flush(channel), next, from, nexts);
            }
        }
        if world.tasks[to].finished {
            return;
        }
        let news = shell.has_news(world, channel);
        if news {
            let mut next = world.clone();
            shell.look(&mut next, channel);
            self.push(Step::Look(channel), next, to, nexts);
        }
        let mut next = world.clone();
        if shell.scan(&mut next, channel) {
            self.push(Step::Log(channel), next, to, nexts);
        }
        if shell.has_spill(channel) && !world.channels[channel].ring.is_empty() && !news {
            let mut next = world.clone();
            shell.drain(&mut next, channel);
            self.push(Step::Drain(channel), next, to, nexts);
        }
        let Some(front) = shell.front(world, channel) else { return };
        let waits = world.has_leftovers(&self.graph, to) && (self.strict || matches!(front, Slot::Message(_)));
        if !waits && !self.is_held(world, channel) {
            let mut next = world.clone();
            shell.take(&mut next, channel);
            self.push(Step::Take(channel), next, to, nexts);
        }
    }

    /// Rule 28.
    fn is_held(&self, world: &World, channel: usize) -> bool {
        let (Some(low_water), Some(component)) = (self.low_water, self.graph.component[self.graph.channels[channel].1])
        else {
            return false;
        };
        let (task, input) = self.shell().input(channel);
        let needs = world.tasks[task].cut.needs_barrier(input, world.job.request) && self.wrong != Wrong::HoldsAlways;
        if self.graph.is_inside(channel) || needs {
            return false;
        }
        let spilled = |head: usize| -> usize {
            let spill = |&c: &usize| world.channels[c].spill.iter().filter(|s| matches!(s, Slot::Message(_))).count();
            self.graph.inputs[head].iter().map(spill).sum()
        };
        (0..world.tasks.len()).any(|t| self.graph.component[t] == Some(component) && spilled(t) > low_water)
    }

    /// A step was made by a task: the coordinator hears of it, unless reports may be late.
    fn push(&self, step: Step, mut next: World, task: usize, nexts: &mut Nexts) {
        if !next.tasks[task].cut.is_paused() {
            self.pass_laps(&mut next, task);
        }
        while !self.late && !next.tasks[task].reports.is_empty() {
            self.hear(&mut next, task);
        }
        nexts.push((step, next));
    }

    /// What is wrong with the cut that is complete: the states must hold the first steps of each message's way, and one
    /// copy be there that does the next. At-least-once: the next step is done again, or one before it.
    fn check_cut(&self, world: &World) -> Option<String> {
        let job = &world.job;
        let handed = |task: usize| job.handed[task].as_ref();
        let state = |task: usize| -> Done {
            let done = handed(task).map(|snapshot| snapshot.done).or(job.finals[task]);
            done.unwrap_or_else(|| panic!("{} has no snapshot", self.graph.tasks[task]))
        };
        let states: Vec<_> = (0..world.tasks.len()).map(state).collect();
        let copies = (0..world.tasks.len()).filter_map(handed).flat_map(|snapshot| &snapshot.copies);
        let copies: Vec<_> = copies.copied().collect();
        let faults = (0..self.graph.ways.len()).filter(|&id| !(self.eternal && id == 0));
        faults.filter_map(|id| self.check_message(id, &states, &copies)).next()
    }

    fn check_message(&self, id: usize, states: &[Done], copies: &[Message]) -> Option<String> {
        let way = self.graph.ways[id];
        let mut copies: Vec<u8> =
            copies.iter().filter(|copy| usize::from(copy.id) == id).map(|copy| copy.hop).collect();
        let mut nth = [0; 8];
        let mut done = Vec::new();
        for &task in way {
            nth[task] += 1;
            done.push(states[task][id] >= nth[task]);
        }
        if !done[0] {
            copies.push(0); // the source gives it again
        }
        if !self.protocol.is_exact() {
            let again = |hop: usize| copies.iter().any(|copy| usize::from(*copy) <= hop);
            let lost = (0..way.len()).find(|&hop| !done[hop] && !again(hop));
            return lost.map(|hop| format!("message {id} is LOST before hop {hop}"));
        }
        let hops = done.iter().take_while(|done| **done).count();
        let wrong = if done[hops..].contains(&true) {
            "is DOUBLED: later hops count"
        } else if hops < way.len() && copies.is_empty() {
            "is LOST"
        } else if copies.len() > usize::from(hops < way.len()) || copies.iter().any(|copy| usize::from(*copy) != hops) {
            "is DOUBLED"
        } else {
            return None;
        };
        Some(format!("message {id} {wrong}: {hops} hops in the states, copies at hops {copies:?}"))
    }
}

const _: () = assert!(MESSAGES >= 4);
