//! `snapring run`: from flags to a running job, and from there to its end.

use crate::args::{BadLines, Durability, Format, Protocol, RunArgs};
use crate::graph;
use crate::outcome::{Outcome, Wrong, print_json, say};
use crate::progress::Progress;
use crate::signals::{Signals, Stop};
use crate::summary::Report;
use snapring::error::{Cause, Error, Failure};
use snapring::runtime::{Checkpoints, Config, Job, Summary};
use snapring::snapshot;
use snapring_jobs::{BuiltIn, Options, Output};
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
    let running = flow.start(config(args))?;
    announce(&running);
    let stop = watch(&running, &signals, Progress::new(args.output.is_none() && !args.json));
    let summary = if stop.is_some() { stop_in_order(running, args)? } else { running.wait()? };
    report(args, &summary, before, stop)
}

/// An orderly end takes no longer: a checkpoint is given up after the same time. Who cannot wait sends a second signal.
const STOP_WITHIN: Duration = Duration::from_secs(600);

/// Stops with a last checkpoint, if the job has any.
fn stop_in_order(running: Job, args: &RunArgs) -> Result<Summary, Wrong> {
    let stopped = running.stop(STOP_WITHIN)?;
    for late in &stopped.late {
        say(&format!("warning: not stopped: {late}"));
    }
    match stopped.checkpoint {
        Err(reason) if args.state.is_some() => {
            Err(Error::Job(Box::new(Failure::new(Cause::LastCheckpoint(reason)))).into())
        }
        _ => Ok(stopped.summary),
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
    let Some(state) = &args.state else { return config };
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
    config.checkpoints(checkpoints)
}

fn announce(running: &Job) {
    for warning in running.warnings() {
        say(&format!("warning: {warning}"));
    }
    // Of a job that had finished the report says it.
    if let (Some(epoch), false) = (running.restored_epoch(), running.is_over()) {
        say(&format!("going on from epoch {epoch}"));
    }
}

/// Waits for the end of the job, or for a signal that comes before it.
fn watch(running: &Job, signals: &Signals, mut progress: Progress) -> Option<Stop> {
    let began = Instant::now();
    loop {
        if running.is_over() {
            return None;
        }
        if let Some(stop) = signals.stop() {
            return Some(stop);
        }
        progress.show(|| running.progress());
        // So that looking late adds at most half a percent to what is measured.
        std::thread::sleep((began.elapsed() / 200).clamp(Duration::from_millis(1), Duration::from_millis(20)));
    }
}

fn report(args: &RunArgs, summary: &Summary, before: Duration, stop: Option<Stop>) -> Outcome {
    let report = Report { job: &args.job, summary, before };
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
