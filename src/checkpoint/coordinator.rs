//! The coordinator: begins epochs one at a time, gives up those that take too long, and knows when one is complete.
//!
//! It must not know the clock (time comes in as nanoseconds), the store, or what a snapshot holds.
//!
//! The rules, numbered as everywhere in the project:
//!
//! - **1.** Between a request and its close there is at most one epoch. The next begins only when the last is durable or
//!   given up.
//! - **2.** `aborted_to` gives up epochs. A number that was given up is not used again in this run of the job.
//! - **9.** The final snapshot of a finished task stands for it in all later epochs, and in the one under way if it had
//!   not frozen in it.
//! - **11.** An epoch is complete when every task has frozen in it or has finished.
//! - **22.** (Aligned, then unaligned.) An epoch that takes too long is timed out, once; it goes on unaligned.
//! - **24.** (Stop-the-world.) When every task has paused in it or has finished, all are released to freeze.
//! - **43.** When all tasks have finished, a last epoch is made of their final snapshots, without a barrier. If it cannot
//!   be made durable the job has failed.
//!
//! The interval is counted from begin to begin; but where the world stops, it then turns for at least as long as it stood still,
//! so that a job gets on whatever the interval. The time-out covers what the tasks do, from the begin to the last
//! snapshot; a commit is never cut short, the writer ends it by itself one way or the other. A checkpoint on demand is
//! the next one to begin, since the cut of one under way may lie before the demand; demands that wait share it.

use super::protocol::Protocol;

/// What the shell must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Action {
    /// Store the epoch in the word `request` and wake all workers.
    Begin(u64),
    /// Store the epoch in the word `timed_out` and wake all workers.
    TimeOut(u64),
    /// All tasks have paused: store the epoch in the word `released` and wake all workers. They go on once it is closed.
    Release(u64),
    /// Drop the snapshots of this epoch, but keep final ones. Store the epoch in the word `aborted_to`, then in `closed_to`,
    /// and wake all workers: tasks reopen their inputs and count frozen pages as changed again. Whoever demanded this epoch
    /// gets an error. Prepared parts of sinks are kept: the next durable epoch lists and commits them.
    Abort(u64),
    /// Write the epoch: the snapshots that tasks reported in it, and the final ones of those that have finished. Then
    /// call [`Coordinator::durable`] or [`Coordinator::declined`]. Upon durable: store the epoch in the word `closed_to`,
    /// commit prepared parts of sinks up to it, answer who demanded it, wake all workers. A final snapshot whose pages are
    /// durable once needs no writing again; until then it is written as new.
    Commit(u64),
    /// The last epoch could not be made durable: fail the job (rule 43).
    Fail(u64),
}

/// When epochs begin and when they are given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timing {
    /// From begin to begin; none: on demand only.
    pub interval_ns: Option<u64>,
    /// From the begin to the last snapshot; none: however long it takes.
    pub timeout_ns: Option<u64>,
    /// From the begin until the epoch goes on unaligned ([`Protocol::AlignedThenUnaligned`] only); none: it never does.
    pub unaligned_after_ns: Option<u64>,
}

/// What is known of one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Task {
    Running,
    /// It has paused for the epoch under way, and holds still.
    Paused,
    /// It has reported its snapshot of the epoch under way.
    Frozen,
    /// Its final snapshot stands for it.
    Finished,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    /// No epoch is under way.
    Idle,
    /// Tasks are pausing for the newest epoch.
    Pausing,
    /// Tasks are freezing in the newest epoch.
    Freezing,
    /// The newest epoch is being written.
    Committing,
    /// The last epoch is durable or has failed.
    Over,
}

/// The job's side of every protocol.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Coordinator {
    protocol: Protocol,
    timing: Timing,
    tasks: Vec<Task>,
    phase: Phase,
    /// The newest epoch that has a number: under way, or closed if none is.
    epoch: u64,
    /// When the newest epoch began; at first, when the job did.
    begun_ns: u64,
    demanded: bool,
    /// The newest epoch has timed out.
    is_timed_out: bool,
    turning: Turning,
}

/// When the world may stop again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Turning {
    /// From this time on.
    Until(u64),
    /// It has just begun to turn again.
    Again,
}

impl Coordinator {
    /// For a job of this many tasks that goes on from `restored_epoch` (0: afresh) at `now_ns`.
    ///
    /// # Panics
    /// If there is no task.
    #[must_use]
    pub fn new(protocol: Protocol, tasks: usize, restored_epoch: u64, timing: Timing, now_ns: u64) -> Self {
        assert!(tasks > 0, "a job has tasks");
        Self {
            protocol,
            timing,
            tasks: vec![Task::Running; tasks],
            phase: Phase::Idle,
            epoch: restored_epoch,
            begun_ns: now_ns,
            demanded: false,
            is_timed_out: false,
            turning: Turning::Until(0),
        }
    }

    /// How its tasks agree on a cut.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// From begin to begin; none: on demand only.
    #[must_use]
    pub fn interval_ns(&self) -> Option<u64> {
        self.timing.interval_ns
    }

    /// How many tasks there are, finished ones too.
    #[must_use]
    pub fn tasks(&self) -> usize {
        self.tasks.len()
    }

    /// Time has passed. The shell calls this whenever [`Coordinator::due_ns`] is reached, and after each other event.
    pub fn tick(&mut self, now_ns: u64) -> Option<Action> {
        if self.turning == Turning::Again {
            self.turning = Turning::Until(now_ns.saturating_add(now_ns.saturating_sub(self.begun_ns)));
        }
        if now_ns < self.due_ns()? {
            return None;
        }
        if self.phase == Phase::Idle {
            let stops = self.protocol == Protocol::StopTheWorld;
            self.open(if stops { Phase::Pausing } else { Phase::Freezing });
            self.begun_ns = now_ns;
            (self.demanded, self.is_timed_out) = (false, false);
            return Some(Action::Begin(self.epoch));
        }
        if self.after_begin(self.timing.timeout_ns).is_some_and(|ns| now_ns >= ns) {
            return Some(self.abort());
        }
        self.is_timed_out = true;
        Some(Action::TimeOut(self.epoch))
    }

    /// When [`Coordinator::tick`] will next do something, if nothing else happens before.
    #[must_use]
    pub fn due_ns(&self) -> Option<u64> {
        match self.phase {
            Phase::Idle if self.demanded => Some(0),
            Phase::Idle => {
                let due_ns = self.after_begin(self.timing.interval_ns)?;
                Some(if let Turning::Until(turning_ns) = self.turning { due_ns.max(turning_ns) } else { due_ns })
            }
            Phase::Pausing | Phase::Freezing => {
                let abort = self.after_begin(self.timing.timeout_ns);
                let times_out = self.protocol == Protocol::AlignedThenUnaligned && !self.is_timed_out;
                let unaligned = self.after_begin(self.timing.unaligned_after_ns).filter(|_| times_out);
                abort.into_iter().chain(unaligned).min()
            }
            Phase::Committing | Phase::Over => None,
        }
    }

    fn after_begin(&self, ns: Option<u64>) -> Option<u64> {
        ns.map(|ns| self.begun_ns.saturating_add(ns))
    }

    /// Somebody wants a checkpoint of all that happened so far. Returns the epoch that answers: the next to begin. If all
    /// tasks finish before it begins, it never does: once [`Coordinator::is_over`], the last epoch answers everybody who
    /// still waits.
    pub fn demand(&mut self) -> u64 {
        if self.all_finished() {
            return self.epoch;
        }
        self.demanded = true;
        self.epoch + 1
    }

    /// A task has paused in `epoch` (stop-the-world) and holds still. In one given up meanwhile it changes nothing.
    ///
    /// # Panics
    /// If the task has finished or has paused in this epoch already.
    pub fn paused(&mut self, task: usize, epoch: u64) -> Option<Action> {
        if self.phase != Phase::Pausing || epoch != self.epoch {
            assert!(epoch <= self.epoch, "task {task} paused in epoch {epoch}, which has not begun");
            return None;
        }
        let was = std::mem::replace(&mut self.tasks[task], Task::Paused);
        assert!(was == Task::Running, "task {task} paused in epoch {epoch} while it was {was:?}");
        self.go_on()
    }

    /// A task froze in `epoch` and handed in its snapshot. One of an epoch given up meanwhile changes nothing: drop it.
    ///
    /// # Panics
    /// If the task has finished or has reported in this epoch already, or under stop-the-world has not paused.
    pub fn snapshot(&mut self, task: usize, epoch: u64) -> Option<Action> {
        if self.phase != Phase::Freezing || epoch != self.epoch {
            assert!(epoch <= self.epoch, "task {task} froze in epoch {epoch}, which has not begun");
            assert!(self.phase != Phase::Pausing || epoch < self.epoch, "task {task} froze before all had paused");
            return None;
        }
        assert!(
            self.tasks[task] == Task::Running || self.tasks[task] == Task::Paused,
            "task {task} reported twice in epoch {epoch}"
        );
        self.tasks[task] = Task::Frozen;
        self.go_on()
    }

    /// A task finished and handed in its final snapshot.
    ///
    /// # Panics
    /// If it has paused or frozen in the epoch under way, against rule 9, or has finished before.
    pub fn finished(&mut self, task: usize) -> Option<Action> {
        assert!(self.tasks[task] == Task::Running, "task {task} finished while it was {:?}", self.tasks[task]);
        self.tasks[task] = Task::Finished;
        match self.phase {
            Phase::Pausing | Phase::Freezing => self.go_on(),
            Phase::Idle if self.all_finished() => {
                self.open(Phase::Committing);
                Some(Action::Commit(self.epoch))
            }
            _ => None,
        }
    }

    /// The epoch that was handed out by [`Action::Commit`] is durable.
    ///
    /// # Panics
    /// If that epoch is not being committed.
    pub fn durable(&mut self, epoch: u64) {
        assert!(self.phase == Phase::Committing && epoch == self.epoch, "epoch {epoch} is not being committed");
        self.close();
    }

    /// An epoch cannot be made: the disk is full, or a task could not prepare. The job goes on without it, unless it is the
    /// last. One that is closed already changes nothing.
    pub fn declined(&mut self, epoch: u64) -> Option<Action> {
        match self.phase {
            Phase::Pausing | Phase::Freezing | Phase::Committing if epoch == self.epoch => Some(self.abort()),
            _ => None,
        }
    }

    /// The highest epoch that is durable or given up: what belongs in the word `closed_to`.
    #[must_use]
    pub fn closed_to(&self) -> u64 {
        match self.phase {
            Phase::Idle | Phase::Over => self.epoch,
            Phase::Pausing | Phase::Freezing | Phase::Committing => self.epoch - 1,
        }
    }

    /// Whether the last epoch is durable or has failed: nothing will ever follow.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    fn all_finished(&self) -> bool {
        self.tasks.iter().all(|task| *task == Task::Finished)
    }

    /// Rules 11 and 24, with rule 9 for those that have finished.
    fn go_on(&mut self) -> Option<Action> {
        let paused = self.tasks.contains(&Task::Paused);
        if self.tasks.contains(&Task::Running) || paused && self.phase == Phase::Freezing {
            return None;
        }
        if paused {
            self.phase = Phase::Freezing;
            return Some(Action::Release(self.epoch));
        }
        self.phase = Phase::Committing;
        Some(Action::Commit(self.epoch))
    }

    /// Gives a number to the next epoch.
    fn open(&mut self, phase: Phase) {
        self.epoch += 1;
        self.phase = phase;
    }

    fn abort(&mut self) -> Action {
        self.close();
        if self.is_over() { Action::Fail(self.epoch) } else { Action::Abort(self.epoch) }
    }

    /// The newest epoch is durable or given up. It was the last if all tasks had finished: had one of them frozen in it,
    /// it could not have finished before this moment (rule 9).
    fn close(&mut self) {
        self.phase = if self.all_finished() { Phase::Over } else { Phase::Idle };
        if self.protocol == Protocol::StopTheWorld {
            self.turning = Turning::Again;
        }
        for task in &mut self.tasks {
            if *task != Task::Finished {
                *task = Task::Running;
            }
        }
    }
}
