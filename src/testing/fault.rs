//! What a bed or a simulation has found. It must not know how it was looked for.

use std::fmt;

/// What is wrong, and how to see it again. Its `Debug` is its text, so that `?` and `unwrap` in a test show it as it is meant
/// to be read.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Other output than was expected.
    #[error("{difference}\n  {run}")]
    Output {
        /// The first difference.
        difference: String,
        /// How it ran.
        run: String,
    },
    /// The dataflow could not be started, or failed.
    #[error("the job failed: {error}\n  {run}")]
    Job {
        /// With what.
        error: String,
        /// How it ran.
        run: String,
    },
    /// The job does not come to its end.
    #[error("the job has not ended after {steps} steps: it waits for something, or emits without end\n  {run}")]
    Stuck {
        /// How many steps it was given.
        steps: u64,
        /// How it ran.
        run: String,
    },
    /// A panic, be it a failed assertion, where results were looked at or the dataflow was drawn.
    #[error("{message}\n  {run}")]
    Panic {
        /// What it said.
        message: String,
        /// How it ran.
        run: String,
    },
    /// A source or a sink breaks its contract.
    #[error("{what}\n  {run}")]
    Contract {
        /// What it should have done and what it did.
        what: String,
        /// What was done with it.
        run: String,
    },
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Runs it; a panic in it is a fault.
pub(super) fn unless_panic<T>(run: &str, f: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    // What the panic may have left half done is not looked at again.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let message = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a text");
        Err(Fault::Panic { message: message.to_owned(), run: run.to_owned() })
    })
}
