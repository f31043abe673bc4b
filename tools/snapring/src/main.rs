//! The command line of snapring. Data goes to standard output, everything else to standard error.

mod args;
mod audit;
mod doctor;
mod follow;
mod graph;
mod inspect;
mod jobs;
mod manual;
mod metrics;
mod notices;
mod outcome;
mod progress;
mod run;
mod saving;
mod settings;
mod signals;
mod summary;
mod units;

use args::{Cli, Command};
use clap::Parser;
use outcome::Outcome;
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    // First of all: what is said to be measured from the start of the process is measured from here.
    let started = Instant::now();
    outcome::exit(command(Cli::parse().command, started))
}

fn command(command: Command, started: Instant) -> Outcome {
    match command {
        Command::Jobs { json } => jobs::list(json),
        Command::Run(args) => run::run(&args, started),
        Command::Inspect(command) => inspect::inspect(&command),
        Command::Doctor { state, json } => doctor::examine(state.as_deref(), json),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { command } => manual::page(command.as_deref()),
    }
}
