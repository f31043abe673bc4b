//! A savepoint of a job that goes on: a checkpoint is asked for and pinned, and a thread of its own copies it into a file. The
//! job notices nothing but the checkpoint: it makes further ones meanwhile, and does not fail because a savepoint does.

use super::control::Control;
use super::coordinator::CheckpointReport;
use super::job::Job;
use super::pending::{Pending, Unmade, Wanted, refused};
use super::supervisor::spawn;
use crate::error::{Error, StoreError};
use crate::snapshot::{Copying, Pin, check_savepoint};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two looks whether it is still wanted, as long as there is no checkpoint yet.
const LOOKS_EVERY: Duration = Duration::from_millis(20);

/// The checkpoint that it is to hold.
type Asked = Pending<(CheckpointReport, Pin)>;

/// A savepoint that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SavepointReport {
    /// Where it is.
    pub path: PathBuf,
    /// The checkpoint that it holds.
    pub checkpoint: CheckpointReport,
    /// How long the file is.
    pub bytes: u64,
    /// From the demand until it was there.
    pub took: Duration,
}

/// A savepoint that was asked for. Dropping it gives it up, and leaves no file. The state folder stays locked until it is
/// there or given up, also when the job has ended.
#[must_use = "the savepoint is there only when `wait` has returned, and is given up when this is dropped"]
#[derive(Debug)]
pub struct PendingSavepoint {
    making: Arc<Making>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Making {
    path: PathBuf,
    asked_at: Instant,
    copying: Copying,
    stage: Mutex<Stage>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Stage {
    /// What it is to hold; once that is there the job can end.
    checkpoint: Option<Result<CheckpointReport, Unmade>>,
    /// Until it is handed out.
    result: Option<Result<SavepointReport, Unsaved>>,
    is_over: bool,
}

/// Why there is no savepoint.
#[derive(Debug)]
pub(super) enum Unsaved {
    /// There was no checkpoint to copy.
    Unmade(Unmade),
    Store(StoreError),
}

impl std::fmt::Display for Unsaved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unmade(unmade) => write!(f, "there was no checkpoint to copy: {unmade}"),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl From<Unsaved> for Error {
    fn from(unsaved: Unsaved) -> Self {
        match unsaved {
            Unsaved::Store(error) => Self::Store(error),
            unmade => refused(&unmade.to_string()),
        }
    }
}

impl Job {
    /// Asks for a savepoint: a checkpoint of all that has happened so far, copied into `file`, from which the job can be
    /// started anywhere and at any later time, by [`Checkpoints::from_savepoint`](crate::Checkpoints::from_savepoint). The job
    /// goes on meanwhile, and so do its checkpoints. The file is there whole or not at all.
    ///
    /// # Errors
    /// The job has no checkpoints; something has that name already, or its folder is missing.
    pub fn savepoint(&self, file: impl AsRef<Path>) -> Result<PendingSavepoint, Error> {
        self.ask_savepoint(file.as_ref(), Wanted::Meanwhile)
    }

    /// The same, of a checkpoint that may be the last.
    pub(super) fn ask_savepoint(&self, file: &Path, wanted: Wanted) -> Result<PendingSavepoint, Error> {
        if !self.control.shared().checkpointing {
            return Err(refused("the job was started without checkpoints"));
        }
        let path = file.to_owned();
        check_savepoint(&path)?;
        let (copying, asked_at) = (Copying::default(), Instant::now());
        let making = Making { path, asked_at, copying, stage: Mutex::default(), changed: Condvar::new() };
        let making = Arc::new(making);
        // Asked for by the caller, not by the thread: it holds what has happened by now, and of two the first is not the newer.
        let asked = Pending::ask_pinned(&self.events, wanted);
        let (made, control, events) = (making.clone(), self.control.clone(), self.events.clone());
        let thread = spawn("snapring-savepoint", move || {
            let result = made.make(asked, || Pending::ask_pinned(&events, wanted), &control);
            tracing::info!(path = %made.path.display(), made = result.is_ok(), "savepoint");
            made.note(|stage| (stage.result, stage.is_over) = (Some(result), true));
        })?;
        Ok(PendingSavepoint { making, thread: Some(thread) })
    }
}

impl Making {
    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, note: impl FnOnce(&mut Stage)) {
        note(&mut self.stage());
        self.changed.notify_all();
    }

    fn make(&self, asked: Asked, again: impl Fn() -> Asked, control: &Control) -> Result<SavepointReport, Unsaved> {
        let pinned = self.pin(asked, again, control);
        let told = pinned.as_ref().map(|(checkpoint, _)| *checkpoint).map_err(Unmade::clone);
        self.note(|stage| stage.checkpoint = Some(told));
        let (checkpoint, pin) = pinned.map_err(Unsaved::Unmade)?;
        let bytes = pin.save(&self.path, &self.copying).map_err(Unsaved::Store)?;
        Ok(SavepointReport { path: self.path.clone(), checkpoint, bytes, took: self.asked_at.elapsed() })
    }

    /// Waits for the checkpoint; if the job fails meanwhile and goes on, for another one.
    fn pin(
        &self,
        mut asked: Asked,
        again: impl Fn() -> Asked,
        control: &Control,
    ) -> Result<(CheckpointReport, Pin), Unmade> {
        loop {
            if !self.copying.is_wanted() {
                return Err(Unmade::GivenUp("nobody waits for it any more".to_owned()));
            }
            match asked.wait_for(LOOKS_EVERY) {
                None => {}
                Some(Err(Unmade::Restarted)) if !control.is_ending() => asked = again(),
                Some(result) => return result,
            }
        }
    }

    fn wait(&self, time: Duration, is_there: impl Fn(&Stage) -> bool) -> MutexGuard<'_, Stage> {
        let begin = Instant::now();
        let mut stage = self.stage();
        while !is_there(&stage) {
            let left = time.saturating_sub(begin.elapsed());
            if left.is_zero() {
                break;
            }
            // A condition variable takes no longer times on some systems.
            let left = left.min(Duration::from_secs(3600));
            stage = self.changed.wait_timeout(stage, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        stage
    }
}

impl PendingSavepoint {
    /// Waits until the savepoint is there.
    ///
    /// # Errors
    /// The checkpoint was given up, or the job ended before it was made; the disk is full, the state is damaged, or something
    /// else has that name by now. There is no file then, and the job goes on.
    pub fn wait(mut self) -> Result<SavepointReport, Error> {
        let result = self.wait_for(Duration::MAX);
        Ok(result.unwrap_or(Err(Unsaved::Unmade(Unmade::GivenUp("its end has been told before".to_owned()))))?)
    }

    /// The savepoint, if it is there by now; none: not yet.
    ///
    /// # Errors
    /// As [`PendingSavepoint::wait`]. It is told once.
    pub fn try_wait(&mut self) -> Result<Option<SavepointReport>, Error> {
        Ok(self.wait_for(Duration::ZERO).transpose()?)
    }

    /// Bytes of state that have been copied, and those that there are to copy; 0 of 0 as long as there is no checkpoint.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        self.making.copying.progress()
    }

    /// Waits no longer than `time`; none: it is not decided yet.
    pub(super) fn wait_for(&mut self, time: Duration) -> Option<Result<SavepointReport, Unsaved>> {
        self.making.wait(time, |stage| stage.is_over).result.take()
    }

    /// The checkpoint that it is going to hold, waiting no longer than `time`; none: it has no answer yet.
    pub(super) fn checkpoint_within(&self, time: Duration) -> Option<Result<CheckpointReport, Unmade>> {
        self.making.wait(time, |stage| stage.checkpoint.is_some()).checkpoint.clone()
    }
}

impl Drop for PendingSavepoint {
    fn drop(&mut self) {
        self.making.copying.cancel();
        if let Some(thread) = self.thread.take() {
            // It does not panic; and if it has, there is no file either.
            let _ = thread.join();
        }
    }
}
