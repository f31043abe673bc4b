//! The thread that runs a job: it starts the workers, is the coordinator while they work, and when an attempt fails,
//! takes everything down and begins another, as far as the restart policy goes.
//!
//! The order after a failure (protocols, rule 35): the workers stop and are joined; the writer is this thread, so nothing
//! is being written; sinks let go of their places; then the newest epoch is chosen and everything is made anew.

use super::affinity;
use super::attempt::{Kept, Made, Make};
use super::control::Control;
use super::coordinator::{Coordination, Event};
use super::drought::Drought;
use super::gauges::Dials;
use super::panics::caught;
use super::restart::Retry;
use super::shared::Shared;
use super::task::Task;
use super::watch::{LOOKS_EVERY, Watch};
use super::worker;
use crate::channel::Idle;
use crate::error::{Cause, Error, Failed, Failure};
use crate::page::Toucher;
use core_affinity::CoreId;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

pub(super) struct Supervisor {
    pub(super) maker: Box<dyn Make>,
    pub(super) kept: Kept,
    pub(super) control: Arc<Control>,
    pub(super) events: Sender<Event>,
    pub(super) retry: Retry,
}

/// An attempt under way.
struct Running {
    shared: Arc<Shared>,
    dials: Arc<Dials>,
    coordination: Coordination,
    workers: Vec<JoinHandle<()>>,
    /// The epoch that it went on from.
    restored: u64,
    /// Has memory for state touched before it is needed.
    toucher: Toucher,
}

/// How an attempt ended.
enum Ended {
    /// The job is over.
    Over(Result<(), Box<Failure>>),
    /// Another attempt follows, after a while.
    Again(Duration),
}

impl Supervisor {
    /// Runs the job to its end. `started` hears whether the first attempt could begin.
    pub(super) fn run(mut self, first: Made, started: &Sender<Result<(), Error>>) -> Result<(), Box<Failure>> {
        let control = self.control.clone();
        // Said whatever happens: somebody may wait for it.
        let _over = Over(&control);
        let _span = tracing::info_span!("job", name = self.maker.name()).entered();
        let outside = first.shared.outside.clone();
        let result = self.run_attempts(first, started);
        outside.over(result.as_ref().err().map(ToString::to_string));
        match &result {
            Ok(()) => tracing::info!("job over"),
            Err(failure) => tracing::error!(%failure, "job failed"),
        }
        result
    }

    fn run_attempts(&mut self, first: Made, started: &Sender<Result<(), Error>>) -> Result<(), Box<Failure>> {
        affinity::keep_off(&first.cores);
        tracing::info!(workers = first.cores.len(), restored = first.restored, "job starts");
        let launched = self.launch(first, false);
        let mut running = match launched {
            Ok(running) => running,
            Err(error) => {
                let _ = started.send(Err(error));
                return Ok(());
            }
        };
        let _ = started.send(Ok(()));
        loop {
            let mut pause = match self.attend(running) {
                Ended::Over(result) => return result,
                Ended::Again(pause) => pause,
            };
            running = loop {
                if !self.control.pause(pause) {
                    return Err(self.retry.end(None));
                }
                match self.next() {
                    Ok(Some(running)) => break running,
                    Ok(None) => return Ok(()),
                    Err(error) => {
                        tracing::error!(%error, "restart failed");
                        let told = error.to_string();
                        pause = self.retry.failed(error, false)?;
                        self.warn_of_restart(&told, pause);
                    }
                }
            };
        }
    }

    /// The job heals itself, but somebody should know.
    fn warn_of_restart(&self, error: &str, pause: Duration) {
        self.control.warn([format!("the job failed, and goes on from its newest checkpoint in {pause:.1?}: {error}")]);
    }

    /// Makes the next attempt and starts it; none: nothing is left to do.
    fn next(&mut self) -> Result<Option<Running>, Error> {
        let made = self.kept.next(&*self.maker)?;
        tracing::info!(restored = made.restored, attempt = self.kept.attempt, "job restarts");
        if made.finished {
            self.kept.ledger.update(|status| status.ended = true);
            return Ok(None);
        }
        self.launch(made, true).map(Some)
    }

    /// Starts the workers of an attempt.
    fn launch(&mut self, made: Made, is_restart: bool) -> Result<Running, Error> {
        let Made { shared, tasks, mut dials, coordination, cores, restored, .. } = made;
        dials.pulses = cores.iter().map(|_| Arc::default()).collect();
        let dials = Arc::new(dials);
        // The writer is another thread than those that wait.
        shared.memory.wait_when_exhausted(true);
        let toucher = shared.memory.keep_touched(TOUCHED_BYTES);
        self.control.begin(&shared, &dials, is_restart);
        match self.start_workers(&shared, &dials, tasks, &cores) {
            Ok(workers) => {
                let restored = restored.unwrap_or(0);
                Ok(Running { shared, dials, coordination, workers, restored, toucher })
            }
            Err(error) => {
                self.kept.take_back(coordination);
                Err(error)
            }
        }
    }

    /// Coordinates an attempt until it ends, and takes it down.
    fn attend(&mut self, running: Running) -> Ended {
        // The toucher lives as long as the workers do.
        let Running { shared, dials, mut coordination, workers, restored, toucher: _toucher } = running;
        let mut drought = Drought::default();
        let mut watch = Watch::new(self.maker.config());
        let result = caught(|| {
            let result = coordinate(&mut coordination, |now_ns| {
                for noticed in watch.look(&dials, now_ns) {
                    self.control.notice(noticed, &dials);
                }
                self.control.warn(drought.look(&shared.memory, now_ns));
            });
            result.map_err(Failed)
        });
        // Whatever happens, the workers get to know that nobody listens any more.
        shared.stop();
        if let Err(Failed(failure)) = &result {
            tracing::error!(%failure, "attempt failed");
        }
        let ended = self.judge(result, shared.durable_to() > restored);
        if let Ended::Again(_) = ended {
            join(workers);
            self.kept.take_back(coordination);
        } else {
            // The store first: another job can have it though a worker takes its time.
            drop(coordination.dissolve());
            join(workers);
        }
        ended
    }

    /// What follows an attempt. `has_moved`: it has made a new epoch durable.
    fn judge(&mut self, result: Result<(), Failed>, has_moved: bool) -> Ended {
        let failure = match result {
            Ok(()) => return Ended::Over(Ok(())),
            Err(Failed(failure)) if self.control.is_ending() => return Ended::Over(Err(failure)),
            Err(Failed(failure)) => failure,
        };
        let told = failure.to_string();
        match self.retry.failed(Error::Job(failure), has_moved) {
            Ok(pause) => {
                self.warn_of_restart(&told, pause);
                Ended::Again(pause)
            }
            Err(failure) => Ended::Over(Err(failure)),
        }
    }

    fn start_workers(
        &self,
        shared: &Arc<Shared>,
        dials: &Dials,
        tasks: Vec<(usize, Task)>,
        cores: &[Option<CoreId>],
    ) -> Result<Vec<JoinHandle<()>>, Error> {
        let available = std::thread::available_parallelism().map_or(1, usize::from);
        let wait = self.maker.config().wait;
        let idles: Vec<Idle> = cores.iter().map(|_| Idle::new(wait, cores.len(), available)).collect();
        shared.workers().set(idles.iter().filter_map(Idle::waker).collect());
        let mut tasks_of: Vec<Vec<_>> = cores.iter().map(|_| Vec::new()).collect();
        tasks.into_iter().for_each(|(worker, task)| tasks_of[worker].push(task));
        let mut workers = Vec::with_capacity(cores.len());
        let (refused, refusals) = channel();
        for (number, ((tasks, idle), core)) in tasks_of.into_iter().zip(idles).zip(cores.iter().copied()).enumerate() {
            let (shared_words, events, refused) = (shared.clone(), self.events.clone(), refused.clone());
            let pulse = dials.pulses[number].clone();
            let worker = spawn(&format!("snapring-{number}"), move || {
                let is_refused = core.is_some_and(|core| !affinity::pin(core));
                let _ = refused.send(is_refused.then_some(core).flatten());
                // Whoever starts us listens until every worker has said its word.
                drop(refused);
                worker::work(tasks, &shared_words, &events, &pulse, idle);
            });
            match worker {
                Ok(worker) => workers.push(worker),
                Err(error) => {
                    shared.stop();
                    join(workers);
                    return Err(error);
                }
            }
        }
        drop(refused);
        let warning =
            |core: CoreId| format!("the system refused to pin a worker to core {}: it runs unpinned", core.id);
        self.control.warn(refusals.iter().flatten().map(warning));
        Ok(workers)
    }
}

/// Memory for state that is had before it is needed, at most.
const TOUCHED_BYTES: usize = 64 << 20;

fn join(workers: Vec<JoinHandle<()>>) {
    for worker in workers {
        // A worker catches the panics of user code.
        let _ = worker.join();
    }
}

pub(super) fn spawn<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, Error> {
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run);
    thread.map_err(|error| Error::Job(Box::new(Failure::new(Cause::Thread(error.to_string())))))
}

/// Says that the job is over when it goes out of scope.
struct Over<'a>(&'a Control);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.over();
    }
}

/// The coordinator's loop: sleeps until something is heard or due. `look` looks at the workers.
fn coordinate(coordination: &mut Coordination, mut look: impl FnMut(u64)) -> Result<(), Box<Failure>> {
    let clock = coordination.shared.meter.clock().clone();
    loop {
        // The word first: who sees it finds the event that was sent ahead of it.
        let stopping = coordination.shared.is_stopping();
        let over = coordination.poll(clock.now_ns())?;
        if over || stopping {
            return Ok(());
        }
        look(clock.now_ns());
        let due = coordination.machine.due_ns().map(|due| Duration::from_nanos(due.saturating_sub(clock.now_ns())));
        match coordination.events.recv_timeout(due.unwrap_or(LOOKS_EVERY).min(LOOKS_EVERY)) {
            Ok(event) => coordination.hear(event, clock.now_ns())?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}
