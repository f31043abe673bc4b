//! From flags to what a job is told and how it runs. What a flag means is decided here, and what the parser cannot check.

use crate::args::{BadLines, Durability, Format, GraphForm, Idle, Protocol, RunArgs};
use snapring::Protocol as Cut;
use snapring::channel::Wait;
use snapring::runtime::{Checkpoints, Config, Restart};
use snapring::snapshot;
use snapring_jobs::{BuiltIn, Options, Output};
use std::path::Path;
use std::time::Duration;

/// What the parser cannot check: flags that do not go with each other or with the job.
pub fn check(args: &RunArgs, job: &BuiltIn) -> Result<(), String> {
    let given = [
        ("inputs", "--input", !args.input.is_empty()),
        ("bad_lines", "--bad-lines", args.bad_lines.is_some()),
        ("keys", "--keys", args.keys.is_some()),
        ("events", "--events", args.events.is_some()),
        ("seed", "--seed", args.seed.is_some()),
        ("accounts", "--accounts", args.accounts.is_some()),
        ("amount", "--amount", args.amount.is_some()),
        ("transfers", "--transfers", args.transfers.is_some()),
        ("tokens", "--tokens", args.tokens.is_some()),
        ("operators", "--operators", args.operators.is_some()),
        ("laps", "--laps", args.laps.is_some()),
    ];
    for (option, flag, is_given) in given {
        if is_given && !job.options.contains(&option) {
            return Err(format!("job `{}` takes no {flag}", job.name));
        }
    }
    if args.audit && job.name != "transfers" {
        return Err(format!("job `{}` takes no --audit: there is no money in it", job.name));
    }
    check_protocol(args)?;
    let mut cores = args.cores.clone().unwrap_or_default();
    cores.sort_unstable();
    if let Some(pair) = cores.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("--cores names core {} twice: each has one worker", pair[0]));
    }
    if let (Some(state), Some(output)) = (&args.state, &args.output)
        && is_same(state, output)
    {
        return Err(format!("--state and --output are both {}: name two folders", state.display()));
    }
    if args.json && args.graph == Some(GraphForm::Dot) {
        return Err("--graph=dot and --json are two languages: leave out one of them".to_owned());
    }
    if args.json && args.output.is_none() && args.format.is_some() {
        return Err("--json prints no results, so --format says nothing: name a folder with --output".to_owned());
    }
    Ok(())
}

fn check_protocol(args: &RunArgs) -> Result<(), String> {
    let protocol = protocol(args);
    let Some(cut) = protocol else {
        let given = args.protocol.is_some();
        if args.initiators.is_some() || args.unaligned_after.is_some() {
            return Err("--initiators and --unaligned-after are about checkpoints: say where with --state".to_owned());
        }
        return match &args.state {
            Some(_) if given => Err("--protocol none takes no checkpoints: leave out --state".to_owned()),
            _ => Ok(()),
        };
    };
    if args.state.is_none() {
        return Err(format!("--protocol {cut} takes checkpoints: say where with --state"));
    }
    if args.initiators.is_some() && !matches!(cut, Cut::ChandyLamport | Cut::Unaligned) {
        return Err(format!("--initiators goes with --protocol chandy-lamport or unaligned, not with {cut}"));
    }
    if args.unaligned_after.is_some() && cut != Cut::AlignedThenUnaligned {
        return Err(format!("--unaligned-after goes with --protocol aligned-then-unaligned, not with {cut}"));
    }
    if args.output.is_some() && !cut.is_exact() {
        return Err(format!(
            "--output holds each result exactly once, and under {cut} some may come twice: choose another --protocol, or \
             leave out --output"
        ));
    }
    Ok(())
}

/// How checkpoints are taken; none: there are none.
pub fn protocol(args: &RunArgs) -> Option<Cut> {
    match args.protocol {
        Some(Protocol::None) => None,
        None => args.state.is_some().then_some(Cut::Aligned),
        Some(Protocol::Aligned) => Some(Cut::Aligned),
        Some(Protocol::ChandyLamport) => Some(Cut::ChandyLamport),
        Some(Protocol::Unaligned) => Some(Cut::Unaligned),
        Some(Protocol::AlignedThenUnaligned) => Some(Cut::AlignedThenUnaligned),
        Some(Protocol::AtLeastOnce) => Some(Cut::AtLeastOnce),
        Some(Protocol::StopTheWorld) => Some(Cut::StopTheWorld),
    }
}

/// Whether two paths are one folder, as far as they are there.
fn is_same(one: &Path, other: &Path) -> bool {
    one == other || one.canonicalize().ok().is_some_and(|one| other.canonicalize().ok() == Some(one))
}

pub fn options(args: &RunArgs) -> Options {
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
        accounts: args.accounts.unwrap_or(defaults.accounts),
        amount: args.amount.unwrap_or(defaults.amount),
        transfers: args.transfers,
        tokens: args.tokens.unwrap_or(defaults.tokens),
        operators: args.operators.unwrap_or(defaults.operators),
        laps: args.laps.unwrap_or(defaults.laps),
    }
}

pub fn config(args: &RunArgs) -> Config {
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
    if args.output.is_none() && !args.json {
        // Whoever reads the results may take their time: `| less` is no operator that does not return.
        config = config.watchdog(Duration::MAX);
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
    if let Some(protocol) = protocol(args) {
        checkpoints = checkpoints.protocol(protocol);
    }
    if let Some(initiators) = &args.initiators {
        checkpoints = checkpoints.initiators(initiators.clone());
    }
    if let Some(limit) = args.unaligned_after {
        checkpoints = checkpoints.unaligned_after(limit);
    }
    if let Some(keep) = args.keep {
        checkpoints = checkpoints.keep(keep);
    }
    if let Some(durability) = args.durability {
        checkpoints = checkpoints.durability(match durability {
            Durability::PowerLoss => snapshot::Durability::PowerLoss,
            Durability::ProcessCrash => snapshot::Durability::ProcessCrash,
        });
    }
    if let Some(threads) = args.writer_threads {
        checkpoints = checkpoints.writer_threads(usize::from(threads));
    }
    if let Some(bytes_per_s) = args.writer_bandwidth {
        checkpoints = checkpoints.writer_bytes_per_s(bytes_per_s);
    }
    if let Some(file) = &args.from_savepoint {
        checkpoints = checkpoints.from_savepoint(file);
    }
    if let Some(epoch) = args.epoch {
        checkpoints = checkpoints.from_epoch(epoch);
    }
    if args.accept_duplicates {
        checkpoints = checkpoints.accept_duplicates();
    }
    for (old, new) in &args.renamed {
        checkpoints = checkpoints.renamed(old, new);
    }
    checkpoints
}
