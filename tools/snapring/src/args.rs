//! What the command line takes. It knows which flags go together; what they do is said elsewhere.
//!
//! What is not built yet is no flag here, or a value that is refused: nothing is ever ignored.

use crate::units;
use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use snapring::runtime::Initiators;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Streaming dataflows whose state survives kill -9, every record counted exactly once.
#[derive(Debug, Parser)]
#[command(name = "snapring", version, arg_required_else_help = true, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 ok; 1 the job failed; 2 usage; 3 snapshot corrupt; 4 snapshot does not fit the job or its input; \
5 file or environment; 130 after SIGINT, 143 after SIGTERM";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the built-in jobs
    Jobs {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Run a built-in job
    ///
    /// Results go to standard output, or exactly once into files with --output. Everything else goes to standard error.
    Run(Box<RunArgs>),
    /// Look into a state folder; the job may be running
    #[command(subcommand)]
    Inspect(InspectCommand),
    /// Say what of this machine a job will meet: cores, memory, limits, the disk
    ///
    /// Everything is read or measured within seconds, and nothing is changed. A warning is no failure: only a folder that
    /// cannot be used is (exit code 5).
    Doctor {
        /// The folder that a job is to be given with --state: tries its file system, with a file that is removed again
        #[arg(long, value_name = "DIR")]
        state: Option<PathBuf>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a completion script for a shell
    Completions { shell: clap_complete::Shell },
    /// Print a manual page: of snapring, or of one of its commands
    Man {
        /// `run`, `inspect` …
        command: Option<String>,
    },
}

#[derive(Args, Debug)]
pub struct RunArgs {
    /// The job; `snapring jobs` lists them
    #[arg(value_parser = PossibleValuesParser::new(snapring_jobs::jobs().iter().map(|job| job.name)))]
    pub job: String,

    /// Read this file instead of the bundled sample; may be given several times. Gzip is known by its first bytes
    #[arg(long, value_name = "FILE")]
    pub input: Vec<PathBuf>,

    /// Write results into files in this folder, each exactly once however often the job is killed and run again; needs
    /// --state
    #[arg(long, value_name = "DIR", requires = "state")]
    pub output: Option<PathBuf>,

    /// What becomes of a line of CSV that is no record [default: fail]
    #[arg(long)]
    pub bad_lines: Option<BadLines>,

    /// The form of results [default: csv]
    #[arg(long)]
    pub format: Option<Format>,

    /// Take checkpoints into this folder, and go on from the newest one that is there
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,

    /// Begin with this savepoint: the folder of --state must be new or empty, and is begun with a checked copy of the file;
    /// --output is that of the job which made it, or a copy
    #[arg(long, value_name = "FILE", requires = "state", conflicts_with = "epoch")]
    pub from_savepoint: Option<PathBuf>,

    /// On SIGUSR1, copy a checkpoint into this file while the job runs on; what is there already is left alone
    #[arg(long, value_name = "FILE", requires = "state")]
    pub savepoint: Option<PathBuf>,

    /// Pin one worker to each of these cores [default: all that are allowed]
    #[arg(long, value_delimiter = ',', value_name = "CORE,...")]
    pub cores: Option<Vec<usize>>,

    /// Tasks per operator, at most 256 [default: as many as there are workers]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub parallelism: Option<u32>,

    /// Read at most so many records per second, over all sources together
    #[arg(long, value_name = "RECORDS_PER_S", value_parser = clap::value_parser!(u64).range(1..))]
    pub rate: Option<u64>,

    /// What a worker does that has nothing to do [default: park]
    #[arg(long)]
    pub idle: Option<Idle>,

    /// Print the dataflow as it is drawn, with the loops that are found in it, and do not run it: in words, or for a picture
    /// in Graphviz's language, --graph=dot
    #[arg(long, value_name = "FORM", num_args = 0..=1, require_equals = true, default_missing_value = "words")]
    pub graph: Option<GraphForm>,

    /// Print one JSON object on standard output when the job has ended, and no results: name a folder with --output to keep them
    #[arg(long)]
    pub json: bool,

    /// When the job has ended, also tell what each task, channel and phase of checkpoints came to: as a table on standard
    /// error, or with --json in the object
    #[arg(long)]
    pub metrics: bool,

    /// How checkpoints are taken [default: aligned with --state, none without]
    #[arg(long)]
    pub protocol: Option<Protocol>,

    /// Who begins a cut under chandy-lamport and unaligned: the sources, all tasks at once, or the sources and the tasks of
    /// these stages and operators [default: all under unaligned, else sources]
    #[arg(long, value_name = "sources|all|NAME,...", value_parser = Initiators::from_str)]
    pub initiators: Option<Initiators>,

    /// Under aligned-then-unaligned: when a checkpoint that is not aligned yet is cut unaligned [default: 20ms]
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub unaligned_after: Option<Duration>,

    /// From the begin of one checkpoint to the begin of the next: 10ms, 1.5s, 2m [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = units::duration, requires = "state")]
    pub checkpoint_interval: Option<Duration>,

    /// Checkpoints to keep, at least 2 [default: 3]
    #[arg(long, value_name = "N", requires = "state", value_parser = clap::value_parser!(u32).range(2..))]
    pub keep: Option<u32>,

    /// What a checkpoint survives [default: power-loss]
    #[arg(long, requires = "state")]
    pub durability: Option<Durability>,

    /// Threads that write large checkpoints [default: half as many as there are cores, at most 4]
    #[arg(long, value_name = "N", requires = "state", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub writer_threads: Option<u16>,

    /// Write checkpoints no faster than so much a second, at least 64KiB: 200MiB, 1.5GiB, 500kB. The job keeps the memory bus
    /// and the disk, and checkpoints take longer [default: as fast as it goes]
    #[arg(long, value_name = "BYTES", requires = "state", value_parser = units::rate)]
    pub writer_bandwidth: Option<u64>,

    /// Read and check all state before going on from a checkpoint, instead of each page when it is first needed
    #[arg(long, requires = "state")]
    pub verify: bool,

    /// After a failure, go on from the newest checkpoint without leaving: up to so many times in a row without a new checkpoint
    /// in between, after 100 ms and then twice as long each time, at most 10 s [default: 0]
    #[arg(long, value_name = "N", requires = "state")]
    pub restarts: Option<u32>,

    /// Go back to this checkpoint instead of going on from the newest one; `snapring inspect ls` lists them. Output files
    /// written since are moved aside, into a subfolder
    #[arg(long, value_name = "N", requires = "state")]
    pub epoch: Option<u64>,

    /// With --epoch: go back even where results cannot be taken back, and have them twice
    #[arg(long, requires = "epoch")]
    pub accept_duplicates: bool,

    /// What the checkpoint has of an operator, source or sink of the name OLD is that of NEW. Once for each; a rule may stay
    /// when it has been applied
    #[arg(long, value_name = "OLD=NEW", requires = "state", value_parser = renamed)]
    pub renamed: Vec<(String, String)>,

    /// transfers: read each checkpoint back while the job runs, and say in a line where the money is: with --json on standard
    /// output, else on standard error. Fails if any is missing, or is there twice
    #[arg(long, requires = "state")]
    pub audit: bool,

    /// keyed-count: different keys [default: 1000000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub keys: Option<u64>,

    /// keyed-count: events to generate [default: 10000000]
    #[arg(long, value_name = "N")]
    pub events: Option<u64>,

    /// keyed-count, transfers: another seed gives other events, or transfers [default: 1]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// transfers: accounts [default: 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub accounts: Option<u64>,

    /// transfers: what each account begins with [default: 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..=1_000_000_000))]
    pub amount: Option<i64>,

    /// transfers: end after so many [default: never]
    #[arg(long, value_name = "N")]
    pub transfers: Option<u64>,

    /// tokens: tokens that go round [default: 1000]
    #[arg(long, value_name = "N")]
    pub tokens: Option<u64>,

    /// tokens: operators on the loop, each behind a ring [default: 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub operators: Option<u32>,

    /// tokens: times that each of them goes round [default: 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub laps: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Comma-separated values without a header line
    Csv,
    /// JSON lines: an object per line
    Jsonl,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BadLines {
    /// The job fails, and names it
    Fail,
    /// It is left out and counted; the first ones are shown at the end
    Skip,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GraphForm {
    /// A line a chain, with its outputs; then the loops
    Words,
    /// DOT: loops in frames, feedback edges dashed
    Dot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Idle {
    /// It looks again at once: lowest latency, and a whole core per worker even if there is nothing to do. As park where
    /// there are more workers than cores
    Spin,
    /// It lets others run and looks again: a whole core per worker too, but one that others can have
    Yield,
    /// It sleeps until it is woken: less than 1 % of a core per idle worker, also where --rate makes it look every 10 ms
    Park,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Protocol {
    /// An input waits at its barrier until all inputs have it
    Aligned,
    /// A task is cut at the first marker, and saves what its other inputs bring until theirs
    ChandyLamport,
    /// The cut is seen over whatever lies queued, and what lies queued is saved: soon, also under backpressure
    Unaligned,
    /// Aligned; what takes longer than --unaligned-after is cut unaligned
    AlignedThenUnaligned,
    /// No input waits: after a restart no record is missing, but some may count twice
    AtLeastOnce,
    /// All tasks pause, everything is saved, all go on
    StopTheWorld,
    /// No checkpoints
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Durability {
    /// A loss of power: each checkpoint is synced to the disk
    PowerLoss,
    /// A crash of the process: nothing is synced
    ProcessCrash,
}

#[derive(Debug, Subcommand)]
pub enum InspectCommand {
    /// List the checkpoints
    Ls {
        /// The folder that a job was given with --state, or a savepoint
        state_dir: PathBuf,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Read everything and check it against its checksums
    Verify {
        /// The folder that a job was given with --state, or a savepoint
        state_dir: PathBuf,
        /// Only this checkpoint
        #[arg(long, value_name = "N")]
        epoch: Option<u64>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// List what a checkpoint holds of channels: records that were on their way when it was taken
    Channels {
        /// The folder that a job was given with --state, or a savepoint
        state_dir: PathBuf,
        /// This checkpoint [default: the newest one]
        #[arg(long, value_name = "N")]
        epoch: Option<u64>,
        /// Show up to so many records of each channel, the first ones
        #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
        records: usize,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Give up old checkpoints of a job that is not running; their space is used again
    ///
    /// Without --keep or --epoch all but the newest one go. The newest one always stays. The file becomes no shorter by it: see
    /// compact.
    Prune {
        /// The folder that a job was given with --state
        state_dir: PathBuf,
        /// Keep the newest N [default: 1]
        #[arg(long, value_name = "N", conflicts_with = "epoch", value_parser = clap::value_parser!(u32).range(1..))]
        keep: Option<u32>,
        /// Give up this checkpoint; may be given several times
        #[arg(long, value_name = "N")]
        epoch: Vec<u64>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Write the checkpoints of a job that is not running into a new file without gaps, and remove the old one
    ///
    /// Needs room for both. Ended at any moment, the folder holds the same checkpoints.
    Compact {
        /// The folder that a job was given with --state
        state_dir: PathBuf,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Say which tasks waited for room at which others when a checkpoint was taken, and whether they did so in a circle
    ///
    /// Unaligned and stop-the-world checkpoints show it, for they keep what found no room. Of a job that stands, only a
    /// checkpoint which all tasks begin at once can still be taken: --protocol unaligned --initiators all.
    Deadlock {
        /// The folder that a job was given with --state, or a savepoint
        state_dir: PathBuf,
        /// This checkpoint [default: the newest one]
        #[arg(long, value_name = "N")]
        epoch: Option<u64>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

/// Two names: `old=new`.
fn renamed(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((old, new)) if !old.is_empty() && !new.is_empty() => Ok((old.to_owned(), new.to_owned())),
        _ => Err(format!("`{text}` does not say what was renamed: write OLD=NEW")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_is_well_formed() {
        Cli::command().debug_assert();
    }
}
