//! Tokens that go round a loop of operators that do nothing: what remains is the price of the loop, and of a barrier in it.

use crate::Output;
use snapring::connector::Generate;
use snapring::dataflow::Dataflow;
use snapring::error::ConnectorError;
use snapring::record::Record;

/// How the job is to be.
#[derive(Clone, Copy, Debug)]
pub struct Tokens {
    /// Tokens, numbered from 0.
    pub tokens: u64,
    /// Operators on the loop, each behind a ring, at least 1.
    pub operators: u32,
    /// So many times each token goes round, at least 1.
    pub laps: u64,
}

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Record)]
pub struct Token {
    /// Its number.
    pub token: u64,
    /// The laps that it has gone.
    pub laps: u64,
}

/// Parts of the generated input: enough to go round among tasks, and never dependent on how many there are.
const SPLITS: u32 = 64;

/// Draws the job.
///
/// # Errors
/// The output's path is that of a file.
pub fn tokens(job: Tokens, output: &Output) -> Result<Dataflow, ConnectorError> {
    let Tokens { tokens, operators, laps } = job;
    let flow = Dataflow::new("tokens");
    let source = Generate::new(tokens, SPLITS, |token| Token { token, laps: 0 });
    let source = flow.source("tokens", source.label(format!("tokens {tokens}, laps {laps}")));
    let (again, mut stream) = source.feedback::<Token>("operator-1");
    for number in 2..=operators {
        stream = stream.stage(&format!("operator-{number}"));
    }
    let (going, done) =
        stream.map(|token| Token { laps: token.laps + 1, ..token }).split(move |token| token.laps < laps);
    again.close(going);
    output.take("done", done)?;
    Ok(flow)
}
