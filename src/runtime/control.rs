//! What the holder of a [`Job`](super::Job) and the thread that runs it say to each other, whichever attempt is under way.

use super::diagnosis::Diagnosis;
use super::gauges::Dials;
use super::ledger::Ledger;
use super::metrics::{Metrics, Stall};
use super::shared::Shared;
use super::watch::Noticed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub(super) struct Control {
    state: Mutex<State>,
    changed: Condvar,
    pub(super) ledger: Arc<Ledger>,
}

struct State {
    /// Of the attempt under way, or of the last one.
    shared: Arc<Shared>,
    dials: Arc<Dials>,
    wish: Wish,
    restarts: u32,
    warnings: Vec<String>,
    stalls: Vec<Stall>,
    /// The thread that runs the job is about to return.
    is_over: bool,
}

/// How the job is to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Run,
    Drain,
    Stop,
}

/// The newest warnings that are kept.
const WARNINGS_MAX: usize = 100;

impl Control {
    /// For a job whose first attempt is about to begin.
    pub(super) fn new(shared: Arc<Shared>, ledger: Arc<Ledger>) -> Self {
        let state = State {
            shared,
            dials: Arc::default(),
            wish: Wish::Run,
            restarts: 0,
            warnings: Vec::new(),
            stalls: Vec::new(),
            is_over: false,
        };
        Self { state: Mutex::new(state), changed: Condvar::new(), ledger }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn shared(&self) -> Arc<Shared> {
        self.state().shared.clone()
    }

    pub(super) fn dials(&self) -> Arc<Dials> {
        self.state().dials.clone()
    }

    pub(super) fn restarts(&self) -> u32 {
        self.state().restarts
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        self.state().warnings.clone()
    }

    pub(super) fn stalls(&self) -> Vec<Stall> {
        self.state().stalls.clone()
    }

    pub(super) fn warn(&self, warnings: impl IntoIterator<Item = String>) {
        let kept = &mut self.state().warnings;
        kept.extend(warnings);
        kept.drain(..kept.len().saturating_sub(WARNINGS_MAX));
    }

    /// Takes in what the watch has noticed.
    pub(super) fn notice(&self, noticed: Noticed, dials: &Dials) {
        match noticed {
            Noticed::Stuck { worker, task, ns } => {
                let stall = Stall { worker, place: dials.place(task), stuck: Duration::from_nanos(ns) };
                tracing::warn!(worker, place = stall.place, stuck_ns = ns, "worker stuck in user code");
                self.warn([stall.to_string()]);
                self.state().stalls.push(stall);
            }
            Noticed::Back { worker, ns } => {
                tracing::info!(worker, stuck_ns = ns, "worker back from user code");
                let stuck = Duration::from_nanos(ns);
                self.state().stalls.retain(|stall| stall.worker != worker);
                self.warn([format!("worker {worker} is back after {stuck:.1?}")]);
            }
            Noticed::Stalled { ns } => {
                let metrics = Metrics::of(dials, &self.ledger, &self.shared(), self.restarts(), self.stalls());
                let (stood, diagnosis) = (Duration::from_nanos(ns), Diagnosis::of(&metrics));
                tracing::warn!(stalled_ns = ns, %diagnosis, "job stands still");
                self.warn([format!("nothing has moved for {stood:.1?}:\n{diagnosis}").trim_end().to_owned()]);
            }
        }
    }

    /// Ends the attempt under way, and keeps others from beginning.
    pub(super) fn stop(&self) {
        self.wish(Wish::Stop);
        self.shared().stop();
    }

    /// Ends the input of the attempt under way, and keeps others from beginning.
    pub(super) fn drain(&self) {
        self.wish(Wish::Drain);
        self.shared().drain();
    }

    fn wish(&self, wish: Wish) {
        self.state().wish = wish;
        self.changed.notify_all();
    }

    /// Whether no attempt is to follow this one.
    pub(super) fn is_ending(&self) -> bool {
        self.state().wish != Wish::Run
    }

    /// An attempt is about to begin; it ends at once, if the job is to.
    pub(super) fn begin(&self, shared: &Arc<Shared>, dials: &Arc<Dials>, is_restart: bool) {
        let mut state = self.state();
        (state.shared, state.dials) = (shared.clone(), dials.clone());
        state.stalls.clear();
        state.restarts += u32::from(is_restart);
        if state.wish != Wish::Run {
            shared.stop();
        }
    }

    /// Waits between two attempts. False: none is to follow.
    pub(super) fn pause(&self, time: Duration) -> bool {
        !self.wait(time, |state| state.wish != Wish::Run)
    }

    /// Waits until the job is over, and says whether it is.
    pub(super) fn wait_over(&self, time: Duration) -> bool {
        self.wait(time, |state| state.is_over)
    }

    fn wait(&self, time: Duration, is_there: impl Fn(&State) -> bool) -> bool {
        let begin = Instant::now();
        let mut state = self.state();
        while !is_there(&state) {
            let left = time.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return false;
            }
            // A condition variable takes no longer times on some systems.
            let left = left.min(Duration::from_secs(3600));
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// The last word of the thread that runs the job.
    pub(super) fn over(&self) {
        let mut state = self.state();
        state.is_over = true;
        state.stalls.clear();
        drop(state);
        self.changed.notify_all();
    }
}
