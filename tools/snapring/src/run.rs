//! `snapring run`: from flags to a running job, and from there to its end.

use crate::args::RunArgs;
use crate::audit::Audits;
use crate::follow::{Follow, Last, Seen};
use crate::graph;
use crate::inspect;
use crate::metrics;
use crate::outcome::{Outcome, Wrong, print_json, say};
use crate::progress::Progress;
use crate::saving::Saving;
use crate::settings::{check, config, options, protocol};
use crate::signals::{Signals, Stop};
use crate::summary::Report;
use snapring::error::{Cause, Error, Failure, RestoreError};
use snapring::runtime::{Job, Stopped, Summary};
use std::time::{Duration, Instant};

/// Runs a job to its end, or to a signal.
pub fn run(args: &RunArgs, started: Instant) -> Outcome {
    let job = snapring_jobs::job(&args.job).expect("the parser knows the jobs");
    check(args, job).map_err(Wrong::Usage)?;
    let flow = (job.draw)(&options(args))?;
    if let Some(form) = args.graph {
        return graph::show(&flow.graph(), form, args.json);
    }
    let signals = Signals::watch().map_err(|error| Wrong::System("watch for signals", error))?;
    let before = started.elapsed();
    let running = flow.start(config(args)).map_err(|error| advised(error.into(), args))?;
    announce(&running);
    let mut audits = audits(args);
    let progress = Progress::new(args.output.is_none() && !args.json);
    let mut follow = Follow::new(&signals, progress, audits.as_mut(), Saving::new(args));
    let stop = follow.run(&running);
    let (ended, seen) = match stop {
        Err(_) => abort(running, follow),
        Ok(Some(stop)) => stop_in_order(running, args, follow, stop),
        Ok(None) => {
            let seen = follow.end(&running);
            (running.wait().map_err(Wrong::from), seen)
        }
    };
    let stop = stop?;
    if args.metrics && !args.json {
        metrics::text(&seen.metrics, &seen.fills).lines().for_each(say);
    }
    let summary = ended.map_err(|wrong| advised(wrong, args))?;
    audits.map_or(Ok(()), |mut audits| audits.all(say))?;
    let (protocol, metrics) = (protocol(args), args.metrics);
    let report = Report { job: &args.job, summary: &summary, before, seen: &seen, metrics, protocol };
    tell(args, &report, stop)
}

fn audits(args: &RunArgs) -> Option<Audits> {
    let state = args.state.as_ref().filter(|_| args.audit)?;
    Some(Audits::new(options(args).transfers(), state, args.json))
}

/// Ends a job that is not worth a last checkpoint.
fn abort(running: Job, follow: Follow<'_>) -> (Result<Summary, Wrong>, Seen) {
    let seen = follow.end(&running);
    (running.abort(ABORT_WITHIN).map_err(Wrong::from).map(without_late), seen)
}

/// An orderly end takes no longer: a checkpoint is given up after the same time. Who cannot wait sends a second signal.
const STOP_WITHIN: Duration = Duration::from_secs(600);

/// Stops with a last checkpoint, if the job has any.
fn stop_in_order(running: Job, args: &RunArgs, mut follow: Follow<'_>, stop: Stop) -> (Result<Summary, Wrong>, Seen) {
    let until = Instant::now() + STOP_WITHIN;
    let left = || until.saturating_duration_since(Instant::now());
    let last = if args.state.is_some() {
        let (name, limit_s) = (stop.name(), STOP_WITHIN.as_secs());
        follow.say(&format!(
            "{name}: takes a last checkpoint, and gives up after {limit_s} s; a second signal leaves at once"
        ));
        follow.last_checkpoint(&running, until)
    } else {
        follow.say(&format!("{}: stops; a second signal leaves at once", stop.name()));
        Ok(Last::Made)
    };
    let seen = follow.end(&running);
    let newest = running.progress().last_checkpoint.map(|last| last.epoch).or(running.restored_epoch());
    let summary = match last {
        Err(wrong) => Err(wrong),
        Ok(Last::Over) => running.wait().map_err(Wrong::from),
        // If the job is about to end by itself, this waits for that; if not, it tries once more, and says why not.
        Ok(Last::Failed) => {
            let stopped = running.stop(left()).map_err(Wrong::from);
            stopped.and_then(|stopped| with_last_checkpoint(stopped, newest))
        }
        Ok(Last::Made) => running.abort(left()).map_err(Wrong::from).map(without_late),
        Ok(Last::Restarted) => {
            let stopped = running.abort(left()).map_err(Wrong::from).map(without_late);
            stopped.and_then(|_| Err(no_last_checkpoint("the job failed while it was taken".to_owned(), newest)))
        }
        Ok(Last::Late) => {
            let stopped = running.abort(ABORT_WITHIN).map_err(Wrong::from).map(without_late);
            stopped.and_then(|_| Err(no_last_checkpoint(format!("it was not durable within {STOP_WITHIN:?}"), newest)))
        }
    };
    (summary, seen)
}

/// Who has waited in vain for a checkpoint does not wait as long again.
const ABORT_WITHIN: Duration = Duration::from_secs(5);

fn without_late(stopped: Stopped) -> Summary {
    for late in &stopped.late {
        say(&format!("warning: not stopped: {late}"));
    }
    stopped.summary
}

fn with_last_checkpoint(stopped: Stopped, newest: Option<u64>) -> Result<Summary, Wrong> {
    let checkpoint = stopped.checkpoint.clone();
    let summary = without_late(stopped);
    checkpoint.map(|_| summary).map_err(|reason| no_last_checkpoint(reason, newest))
}

fn no_last_checkpoint(reason: String, newest: Option<u64>) -> Wrong {
    let error = Error::Job(Box::new(Failure::new(Cause::LastCheckpoint(reason))));
    let next = match newest {
        Some(epoch) => format!("run the same command to go on from epoch {epoch}; what came after it is done again"),
        None => "there is no earlier checkpoint: the next run begins anew".to_owned(),
    };
    Wrong::Advised(Box::new(error), next)
}

/// Adds what to do about a state that is damaged: pages are read when they are first needed, so it may be found late.
fn advised(wrong: Wrong, args: &RunArgs) -> Wrong {
    match (wrong, &args.state) {
        (Wrong::Engine(error), Some(state)) if error.exit_code() == 3 && args.from_savepoint.is_none() => {
            Wrong::Advised(Box::new(error), inspect::way_back(state))
        }
        // Nobody gives names to the operators of a built-in job; the only one that comes and goes is the sink of `--output`.
        (Wrong::Engine(error @ Error::Restore(RestoreError::Operators { .. })), Some(_)) => {
            let (had, has) = if args.output.is_none() { ("with", "without") } else { ("without", "with") };
            let advice =
                format!("the state was made {had} `--output`, and this run is {has} it: run the same command again");
            Wrong::Advised(Box::new(error), advice)
        }
        (wrong, _) => wrong,
    }
}

fn announce(running: &Job) {
    // A job that had finished has no tasks; the report says so. One that goes on may have failed by now.
    if let (Some(epoch), false) = (running.restored_epoch(), running.metrics().tasks.is_empty()) {
        say(&format!("going on from epoch {epoch}"));
    }
}

/// Says what the job came to.
fn tell(args: &RunArgs, report: &Report<'_>, stop: Option<Stop>) -> Outcome {
    let summary = report.summary;
    if summary.finished_before {
        let epoch = summary.restored_epoch.unwrap_or(0);
        say(&format!(
            "{}: the state folder holds the finished job (epoch {epoch}); its results are committed, nothing is left to do; \
             to run it again, name another --state and --output",
            args.job
        ));
    } else {
        say(&report.text());
    }
    report.skipped().iter().for_each(|line| say(line));
    if args.json {
        print_json(&report.json())?;
    }
    let Some(stop) = stop else { return Ok(0) };
    match (&args.state, summary.last_epoch) {
        (Some(_), Some(epoch)) => {
            say(&format!("stopped after checkpoint {epoch}: run the same command to go on from there"))
        }
        _ => say("stopped, without checkpoints: the next run begins anew"),
    }
    Ok(stop.exit_code())
}
