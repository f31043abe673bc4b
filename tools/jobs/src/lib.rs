//! The built-in jobs. Each has a file that reads like a textbook example: the types of its records, and a function that
//! draws the dataflow from its input to its output. Here is the list of them, for tools that offer a choice. A job knows
//! nothing of cores, checkpoints or command lines: whoever starts it says how it runs.

mod audit;
mod components;
mod keyed_count;
mod output;
mod random;
mod reachability;
mod routes;
mod sample;
mod tokens;
mod transfers;
mod wordcount;

pub use audit::Audit;
pub use components::{Edge, NodeComponent, components};
pub use keyed_count::{KeyCount, keyed_count};
pub use output::Output;
pub use reachability::{Line, Reached, reachability};
pub use routes::{Flight, RouteLine, routes};
pub use snapring::connector::{BadLines, Format};
pub use tokens::{Token, Tokens, tokens};
pub use transfers::{ACCOUNTS, Account, Balance, Money, Transfer, Transfers, balances, transfers};
pub use wordcount::{WordCount, wordcount, words};

use sample::inputs_or_sample;
use snapring::connector::{Csv, Lines};
use snapring::dataflow::Dataflow;
use snapring::error::Error;
use std::path::PathBuf;

/// What a job can be told.
#[derive(Clone, Debug)]
pub struct Options {
    /// The files to read; none: the job's bundled sample.
    pub inputs: Vec<PathBuf>,
    /// Where results go.
    pub output: Output,
    /// What becomes of a line that is no record.
    pub bad_lines: BadLines,
    /// `keyed-count`: different keys.
    pub keys: u64,
    /// `keyed-count`: events.
    pub events: u64,
    /// `keyed-count`, `transfers`: another seed gives other events, or transfers.
    pub seed: u64,
    /// `transfers`: accounts.
    pub accounts: u64,
    /// `transfers`: what each account begins with.
    pub amount: i64,
    /// `transfers`: ends after so many; none: never.
    pub transfers: Option<u64>,
    /// `tokens`: tokens.
    pub tokens: u64,
    /// `tokens`: operators on the loop.
    pub operators: u32,
    /// `tokens`: times that each token goes round.
    pub laps: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            inputs: Vec::new(),
            output: Output::Stdout(Format::Csv),
            bad_lines: BadLines::Fail,
            keys: 1_000_000,
            events: 10_000_000,
            seed: 1,
            accounts: 1000,
            amount: 1000,
            transfers: None,
            tokens: 1000,
            operators: 4,
            laps: 1000,
        }
    }
}

impl Options {
    /// How `transfers` is to be.
    #[must_use]
    pub fn transfers(&self) -> Transfers {
        let Self { accounts, amount, seed, transfers, .. } = *self;
        Transfers { accounts, amount, seed, transfers }
    }

    fn tokens(&self) -> Tokens {
        let Self { tokens, operators, laps, .. } = *self;
        Tokens { tokens, operators, laps }
    }
}

/// A job as a tool sees it.
#[derive(Clone, Copy, Debug)]
pub struct BuiltIn {
    /// What it is called.
    pub name: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// Which of the [`Options`] it takes beside the output, by their field names.
    pub options: &'static [&'static str],
    /// Draws it.
    pub draw: fn(&Options) -> Result<Dataflow, Error>,
}

/// All built-in jobs.
#[must_use]
pub fn jobs() -> &'static [BuiltIn] {
    &JOBS
}

static JOBS: [BuiltIn; 7] = [
    BuiltIn {
        name: "wordcount",
        about: "How often each word occurs in text files: word,count, once per word when the input has ended",
        options: &["inputs"],
        draw: |options| {
            let files = inputs_or_sample(&options.inputs, "bible-genesis.txt")?;
            Ok(wordcount(Lines::open_all(files)?, &options.output)?)
        },
    },
    BuiltIn {
        name: "routes",
        about: "Running totals of each flight route: origin,dest,n,cancelled,delay_sum_min after every flight",
        options: &["inputs", "bad_lines"],
        draw: |options| {
            let files = inputs_or_sample(&options.inputs, "flights-2013-01.csv.gz")?;
            Ok(routes(Csv::open_all(files)?.bad_lines(options.bad_lines), &options.output)?)
        },
    },
    BuiltIn {
        name: "keyed-count",
        about: "A running count per key over generated events: key,count after every event; the one to measure with",
        options: &["keys", "events", "seed"],
        draw: |options| Ok(keyed_count(options.keys, options.events, options.seed, &options.output)?),
    },
    BuiltIn {
        name: "transfers",
        about: "Money sent from account to account round a loop: account,balance, once per account if there is an end",
        options: &["accounts", "amount", "seed", "transfers"],
        draw: |options| Ok(transfers(options.transfers(), &options.output)?),
    },
    BuiltIn {
        name: "components",
        about: "Connected components of a graph, from its edges source,target: node,component when the loop has ended",
        options: &["inputs", "bad_lines"],
        draw: |options| {
            let files = inputs_or_sample(&options.inputs, "wordnet-verbs.csv.gz")?;
            Ok(components(Csv::open_all(files)?.bad_lines(options.bad_lines), &options.output)?)
        },
    },
    BuiltIn {
        name: "reachability",
        about: "What can be reached, from edges source,target and starts source,: start,node as soon as it is known",
        options: &["inputs", "bad_lines"],
        draw: |options| {
            let files = inputs_or_sample(&options.inputs, "wordnet-verbs-reach.csv.gz")?;
            Ok(reachability(Csv::open_all(files)?.bad_lines(options.bad_lines), &options.output)?)
        },
    },
    BuiltIn {
        name: "tokens",
        about: "Tokens round a loop of operators that do nothing: token,laps at the end; the price of a barrier in a loop",
        options: &["tokens", "operators", "laps"],
        draw: |options| Ok(tokens(options.tokens(), &options.output)?),
    },
];

/// The job of this name.
#[must_use]
pub fn job(name: &str) -> Option<&'static BuiltIn> {
    jobs().iter().find(|job| job.name == name)
}
