//! Panics of user code become failures that name the operator. It does not know what ran.
//!
//! User code runs in a task's steps, in the commit of a sink's parts, and in the `drop` of what it made: whoever calls any
//! of it goes through here, so that no panic takes a thread away without a word.

use crate::error::{Cause, Failed, Failure};
use crate::operator::take_blamed;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs code that may panic. What it was working on must not be used again, other than to poison or drop it.
pub(super) fn caught<R>(run: impl FnOnce() -> Result<R, Failed>) -> Result<R, Failed> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let failure = Failure::new(Cause::Panic(message_of(&*panic)));
        Err(Failed(Box::new(match take_blamed() {
            Some(name) => failure.at(&name),
            None => failure,
        })))
    })
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "with a value that is no text".to_owned())
}
