//! The command line of snapring. Data goes to standard output, everything else to standard error.

mod args;
mod graph;
mod inspect;
mod jobs;
mod outcome;
mod progress;
mod run;
mod signals;
mod summary;

use args::{Cli, Command};
use clap::{CommandFactory, Parser};
use outcome::{Outcome, Wrong, print};
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
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "snapring", &mut script);
            print(&script)
        }
        Command::Man => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page).map_err(|error| Wrong::System("make the manual page", error))?;
            print(&page)
        }
    }
}
