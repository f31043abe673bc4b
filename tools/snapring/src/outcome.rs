//! How a command ends: what it prints, and what it leaves with.

use snapring::error::{Cause, ConnectorError, Error};
use std::io::{self, Write};
use std::process::ExitCode;

/// What a command ends with: an exit code, or what went wrong.
pub type Outcome = Result<u8, Wrong>;

/// Whatever goes wrong.
#[derive(Debug)]
pub enum Wrong {
    /// Flags that do not go together, or a value that makes no sense.
    Usage(String),
    /// The library refused or failed.
    Engine(Error),
    /// The same, and what to do about it here.
    Advised(Box<Error>, String),
    /// The system refused something of the command line's own.
    System(&'static str, io::Error),
    /// Standard output refused.
    Stdout(io::Error),
    /// The job has come to something that must not be.
    Failed(String),
    /// What was asked for is not there.
    Missing(String),
    /// What was inspected is damaged, and that has been said.
    Damaged,
}

impl<E: Into<Error>> From<E> for Wrong {
    fn from(error: E) -> Self {
        Self::Engine(error.into())
    }
}

impl Wrong {
    /// A reader that has what it wanted (`| head`) is no error.
    fn is_reader_gone(&self) -> bool {
        match self {
            Self::Stdout(error) => error.kind() == io::ErrorKind::BrokenPipe,
            Self::Engine(Error::Connector(ConnectorError::ReaderGone)) => true,
            Self::Engine(Error::Job(failure)) => matches!(failure.cause, Cause::Connector(ConnectorError::ReaderGone)),
            _ => false,
        }
    }

    fn exit_code(&self) -> u8 {
        match self {
            _ if self.is_reader_gone() => 0,
            Self::Failed(_) => 1,
            Self::Usage(_) => 2,
            Self::Engine(error) => error.exit_code(),
            Self::Advised(error, _) => error.exit_code(),
            Self::System(..) | Self::Stdout(_) | Self::Missing(_) => 5,
            Self::Damaged => 3,
        }
    }

    fn message(&self) -> Option<String> {
        match self {
            _ if self.is_reader_gone() => None,
            Self::Usage(reason) => Some(format!("{reason}\n\nFor more information, try '--help'.")),
            Self::Engine(error) => Some(error.to_string()),
            Self::Advised(error, advice) => Some(format!("{error}\nhint: {advice}")),
            Self::System(action, error) => Some(format!("cannot {action}: {error}")),
            Self::Stdout(error) => Some(format!("cannot write to standard output: {error}")),
            Self::Failed(what) | Self::Missing(what) => Some(what.clone()),
            Self::Damaged => None,
        }
    }
}

/// Says what there is to say, and leaves.
pub fn exit(outcome: Outcome) -> ExitCode {
    let code = outcome.unwrap_or_else(|wrong| {
        if let Some(message) = wrong.message() {
            say(&format!("error: {message}"));
        }
        wrong.exit_code()
    });
    ExitCode::from(code)
}

/// Says something on standard error. If nobody can hear it there is nobody to complain to.
pub fn say(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Data, on standard output.
pub fn print(data: impl AsRef<[u8]>) -> Outcome {
    let mut stdout = io::stdout().lock();
    stdout.write_all(data.as_ref()).and_then(|()| stdout.flush()).map_err(Wrong::Stdout)?;
    Ok(0)
}

/// A JSON value and a line feed, on standard output.
pub fn print_json(value: &serde_json::Value) -> Outcome {
    print(format!("{value}\n"))
}
