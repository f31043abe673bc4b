//! `snapring run`: from flags to a running job, and from there to its end.

use crate::args::{BadLines, Durability, Format, Idle, Protocol, RunArgs};
use crate::follow::{Follow, Last, Seen};
use crate::graph;
use crate::inspect;
use crate::metrics;
use crate::outcome::{Outcome, Wrong, print_json, say};
use crate::progress::Progress;
use crate::signals::{Signals, Stop};
use crate::summary::Report;
use snapring::channel::Wait;
use snapring::error::{Cause, Error, Failure};
use snapring::runtime::{Checkpoints, Config, Job, Restart, Stopped, Summary};
use snapring::snapshot;
use snapring_jobs::{BuiltIn, Options, Output};
use std::path::Path;
use std::time::{Duration, Instant};

/// Runs a job to its end, or to a signal.
pub fn run(args: &RunArgs, started: Instant) -> Outcome {
    let job = snapring_jobs::job(&args.job).expect("the parser knows the jobs");
    check(args, job).map_err(Wrong::Usage)?;
    let flow = (job.draw)(&options(args))?;
    if args.graph {
        return graph::show(&flow.graph(), args.json);
    }
    let signals = Signals::watch().map_err(|error| Wrong::System("watch for signals", error))?;
    let before = started.elapsed();
    let running = flow.start(config(args)).map_err(|error| advised(error.into(), args))?;
    announce(&running);
    let mut follow = Follow::new(&signals, Progress::new(args.output.is_none() && !args.json));
    let stop = follow.run(&running);
    let (ended, seen) = match stop {
        Some(stop) => stop_in_order(running, args, follow, stop),
        None => {
            let seen = follow.end(&running);
            (running.wait().map_err(Wrong::from), seen)
        }
    };
    if args.metrics && !args.json {
        metrics::text(&seen.metrics, &seen.fills).lines().for_each(say);
    }
    let summary = ended.map_err(|wrong| advised(wrong, args))?;
    let report = Report { job: &args.job, summary: &summary, before, seen: &seen, metrics: args.metrics };
    tell(args, &report, stop)
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
    let summary = match last {
        Err(wrong) => Err(wrong),
        Ok(Last::Over) => running.wait().map_err(Wrong::from),
        // If the job is about to end by itself, this waits for that; if not, it tries once more, and says why not.
        Ok(Last::Failed) => running.stop(left()).map_err(Wrong::from).and_then(with_last_checkpoint),
        Ok(Last::Made) => running.abort(left()).map_err(Wrong::from).map(without_late),
        Ok(Last::Restarted) => {
            let stopped = running.abort(left()).map_err(Wrong::from).map(without_late);
            stopped.and_then(|_| Err(no_last_checkpoint("the job failed while it was taken".to_owned())))
        }
        Ok(Last::Late) => {
            let stopped = running.abort(ABORT_WITHIN).map_err(Wrong::from).map(without_late);
            stopped.and_then(|_| Err(no_last_checkpoint(format!("it was not durable within {STOP_WITHIN:?}"))))
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

fn with_last_checkpoint(stopped: Stopped) -> Result<Summary, Wrong> {
    let checkpoint = stopped.checkpoint.clone();
    let summary = without_late(stopped);
    checkpoint.map(|_| summary).map_err(no_last_checkpoint)
}

fn no_last_checkpoint(reason: String) -> Wrong {
    Error::Job(Box::new(Failure::new(Cause::LastCheckpoint(reason)))).into()
}

/// Adds what to do about a state that is damaged: pages are read when they are first needed, so it may be found late.
fn advised(wrong: Wrong, args: &RunArgs) -> Wrong {
    match (wrong, &args.state) {
        (Wrong::Engine(error), Some(state)) if error.exit_code() == 3 => {
            Wrong::Advised(Box::new(error), inspect::way_back(state))
        }
        (wrong, _) => wrong,
    }
}

/// What the parser cannot check: flags that do not go with each other or with the job.
fn check(args: &RunArgs, job: &BuiltIn) -> Result<(), String> {
    let given = [
        ("inputs", "--input", !args.input.is_empty()),
        ("bad_lines", "--bad-lines", args.bad_lines.is_some()),
        ("keys", "--keys", args.keys.is_some()),
        ("events", "--events", args.events.is_some()),
        ("seed", "--seed", args.seed.is_some()),
    ];
    for (option, flag, is_given) in given {
        if is_given && !job.options.contains(&option) {
            return Err(format!("job `{}` takes no {flag}", job.name));
        }
    }
    match args.protocol {
        None => {}
        Some(Protocol::Aligned) if args.state.is_some() => {}
        Some(Protocol::Aligned) => {
            return Err("--protocol aligned takes checkpoints: say where with --state".to_owned());
        }
        Some(Protocol::None) if args.state.is_none() => {}
        Some(Protocol::None) => return Err("--protocol none takes no checkpoints: leave out --state".to_owned()),
        Some(_) => return Err("this protocol is not built yet: aligned and none are".to_owned()),
    }
    if args.json && args.output.is_none() && args.format.is_some() {
        return Err("--json prints no results, so --format says nothing: name a folder with --output".to_owned());
    }
    Ok(())
}

fn options(args: &RunArgs) -> Options {
    let format = match args.format {
        None | Some(Format::Csv) => snapring_jobs::Format::Csv,
        Some(Format::Jsonl) => snapring_jobs::Format::JsonLines,
    };
    let output = match &args.output {
        Some(folder) => Output::Folder(folder.clone(), format),
        None if args.json => Output::Nowhere,
        None => Output::Stdout(format),
    };
    let defaults = Options::default();
    Options {
        inputs: args.input.clone(),
        output,
        bad_lines: match args.bad_lines {
            None | Some(BadLines::Fail) => snapring_jobs::BadLines::Fail,
            Some(BadLines::Skip) => snapring_jobs::BadLines::Skip,
        },
        keys: args.keys.unwrap_or(defaults.keys),
        events: args.events.unwrap_or(defaults.events),
        seed: args.seed.unwrap_or(defaults.seed),
    }
}

fn config(args: &RunArgs) -> Config {
    let mut config = Config::new();
    if let Some(cores) = &args.cores {
        config = config.cores(cores.iter().copied());
    }
    if let Some(tasks) = args.parallelism {
        config = config.parallelism(tasks);
    }
    if let Some(rate) = args.rate {
        config = config.rate_per_s(rate);
    }
    if let Some(idle) = args.idle {
        config = config.wait(match idle {
            Idle::Spin => Wait::Spin,
            Idle::Yield => Wait::Yield,
            Idle::Park => Wait::Park,
        });
    }
    if let Some(restarts) = args.restarts {
        config = config.restart(Restart::attempts(restarts));
    }
    match &args.state {
        Some(state) => config.checkpoints(checkpoints(args, state)),
        None => config,
    }
}

fn checkpoints(args: &RunArgs, state: &Path) -> Checkpoints {
    let interval = args.checkpoint_interval.unwrap_or(Duration::from_secs(1));
    let mut checkpoints = Checkpoints::every(interval).to(state).verify_on_restore(args.verify);
    if let Some(keep) = args.keep {
        checkpoints = checkpoints.keep(keep);
    }
    if let Some(durability) = args.durability {
        checkpoints = checkpoints.durability(match durability {
            Durability::PowerLoss => snapshot::Durability::PowerLoss,
            Durability::ProcessCrash => snapshot::Durability::ProcessCrash,
        });
    }
    if let Some(epoch) = args.epoch {
        checkpoints = checkpoints.from_epoch(epoch);
    }
    if args.accept_duplicates {
        checkpoints = checkpoints.accept_duplicates();
    }
    checkpoints
}

fn announce(running: &Job) {
    // Of a job that had finished the report says it.
    if let (Some(epoch), false) = (running.restored_epoch(), running.is_over()) {
        say(&format!("going on from epoch {epoch}"));
    }
}

/// Says what the job came to.
fn tell(args: &RunArgs, report: &Report<'_>, stop: Option<Stop>) -> Outcome {
    let summary = report.summary;
    if summary.finished_before {
        let epoch = summary.restored_epoch.unwrap_or(0);
        say(&format!(
            "{}: the state folder holds the finished job (epoch {epoch}); its results are committed, nothing is left to do",
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
