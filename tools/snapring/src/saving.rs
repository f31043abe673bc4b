//! Savepoints that SIGUSR1 asks for while a job runs. A job never fails because of one.

use crate::args::RunArgs;
use indicatif::HumanBytes;
use snapring::error::Error;
use snapring::runtime::{Job, PendingSavepoint, SavepointReport};
use std::path::PathBuf;

/// The savepoint under way, if there is one.
pub struct Saving {
    file: Option<PathBuf>,
    pending: Option<PendingSavepoint>,
}

impl Saving {
    pub fn new(args: &RunArgs) -> Self {
        Self { file: args.savepoint.clone(), pending: None }
    }

    /// The signal has come. What there is to say about it at once.
    pub fn ask(&mut self, job: &Job) -> Option<String> {
        let Some(file) = &self.file else {
            return Some("SIGUSR1: no savepoint: say where by --savepoint FILE when the job is started".to_owned());
        };
        if self.pending.is_some() {
            return Some(format!("SIGUSR1: the savepoint {} is under way already", file.display()));
        }
        match job.savepoint(file) {
            Ok(pending) => {
                self.pending = Some(pending);
                Some(format!("SIGUSR1: takes the savepoint {}", file.display()))
            }
            Err(error) => Some(refused(&error)),
        }
    }

    /// What became of it, once that is known.
    pub fn look(&mut self) -> Option<String> {
        let result = self.pending.as_mut()?.try_wait().transpose()?;
        self.pending = None;
        Some(told(result))
    }

    /// Waits for the one that is under way, when the job has ended or is about to.
    pub fn end(self) -> Option<String> {
        self.pending.map(|pending| told(pending.wait()))
    }
}

fn told(result: Result<SavepointReport, Error>) -> String {
    match result {
        Ok(report) => format!(
            "savepoint {}: epoch {}, {}, in {:.1?}: --from-savepoint begins a new state folder with it",
            report.path.display(),
            report.checkpoint.epoch,
            HumanBytes(report.bytes),
            report.took
        ),
        Err(error) => refused(&error),
    }
}

fn refused(error: &Error) -> String {
    format!("warning: no savepoint, and the job goes on: {error}")
}
