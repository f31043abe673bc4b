//! Errors, one enum a phase. Each says what happened, where, and what to do; [`Error::exit_code`] is what a command
//! line leaves with.

mod connector;
mod decode;
mod failure;
mod state;
mod store;

pub use connector::ConnectorError;
pub use decode::DecodeError;
pub use failure::{Cause, Failed, Failure};
pub use state::{PoolExhausted, StateError};
pub use store::StoreError;
