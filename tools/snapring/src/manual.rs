//! What a shell and `man` want to know of the command line.

use crate::args::Cli;
use crate::outcome::{Outcome, Wrong, print};
use clap::CommandFactory;

/// Prints a completion script.
pub fn completions(shell: clap_complete::Shell) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "snapring", &mut script);
    print(script)
}

/// Prints the manual page of the whole, or of one command.
pub fn page(of: Option<&str>) -> Outcome {
    let whole = Cli::command();
    let command = match of {
        None => whole,
        Some(name) => {
            let found = whole.find_subcommand(name).cloned();
            let found = found.ok_or_else(|| Wrong::Usage(format!("there is no command `{name}`")))?;
            found.display_name(format!("snapring-{name}")).bin_name(format!("snapring {name}"))
        }
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page).map_err(|error| Wrong::System("make the manual page", error))?;
    print(page)
}
