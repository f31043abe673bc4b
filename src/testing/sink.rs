//! The bed for exactly-once sinks: every order of what a job and bad luck may do to one. The job is modelled in `sink_job`.

use super::Fault;
use super::fault::unless_panic;
use super::sink_job::{Job, Step};
use crate::operator::Sink;

/// A place where a sink writes, and the view of one who reads there.
pub trait Outlet {
    /// What writes there.
    type Sink: Sink;

    /// An empty place.
    fn empty() -> Self;

    /// The sink, as a process that starts now would make it.
    fn sink(&self) -> Self::Sink;

    /// A record that can be told by its number when it is read.
    fn record(number: u64) -> <Self::Sink as Sink>::In;

    /// The numbers of what is committed, in any order.
    fn committed(&self) -> Vec<u64>;

    /// How many parts are prepared and not committed: after a restore there is none. 0 where they are kept in the checkpoint.
    fn pending(&self) -> usize {
        0
    }

    /// A loss of power: what was not synced is gone. False if this cannot be tried here.
    fn lose_power(&self) -> bool {
        false
    }
}

/// Holds an exactly-once sink against its contract: every order of up to `steps` of writing, preparing, syncing, an epoch
/// becoming durable, committing (a part, or all), crashing, losing power, and going back to an older epoch, if the sink says
/// that it can retract. Then a longer course, with a crash (or the like) at any two places. After each step every record is
/// committed at most once, and none ahead of its epoch; after each restore and at the end, each record of the durable epoch
/// exactly once.
///
/// Returns the number of orders that were tried: with 5 steps about a thousand, and with each further one three times as many.
///
/// ```
/// use snapring::connector::Memory;
/// use snapring::testing::{Outlet, check_sink};
///
/// struct InMemory(Memory<u64>);
///
/// impl Outlet for InMemory {
///     type Sink = Memory<u64>;
///
///     fn empty() -> Self {
///         Self(Memory::new())
///     }
///     fn sink(&self) -> Memory<u64> {
///         self.0.clone()
///     }
///     fn record(number: u64) -> u64 {
///         number
///     }
///     fn committed(&self) -> Vec<u64> {
///         self.0.committed()
///     }
///     fn pending(&self) -> usize {
///         self.0.pending().len()
///     }
///     fn lose_power(&self) -> bool {
///         self.0.lose_power();
///         true
///     }
/// }
///
/// assert!(check_sink::<InMemory>(4)? > 100);
/// # Ok::<(), snapring::testing::Fault>(())
/// ```
///
/// # Errors
/// The first order after which it is not so, or in which the sink returns an error or panics.
pub fn check_sink<O: Outlet>(steps: usize) -> Result<u64, Fault> {
    Ok(short_orders::<O>(steps)? + long_course::<O>()?)
}

/// All orders of up to `length` steps, the shortest first; how many.
fn short_orders<O: Outlet>(length: usize) -> Result<u64, Fault> {
    let (mut orders, mut count) = (vec![Vec::new()], 0);
    for _ in 0..=length {
        let mut longer = Vec::new();
        for order in orders {
            if run::<O>(&order)? {
                count += 1;
                longer.extend(Step::ALL.map(|step| [&order[..], &[step]].concat()));
            }
        }
        orders = longer;
    }
    Ok(count)
}

/// Longer orders than can all be tried: three epochs, with something going wrong after any step, and again.
fn long_course<O: Outlet>() -> Result<u64, Fault> {
    use Step::*;
    let course = [
        Write,
        Prepare,
        Write,
        Prepare,
        Sync,
        Write,
        Durable,
        CommitFirst,
        Write,
        Commit,
        Prepare,
        Sync,
        Durable,
        Commit,
        Write,
        Prepare,
        Sync,
        Durable,
    ];
    let mut orders = 0;
    for wrong in [Crash, PowerFailure, GoBack] {
        for first in 0..=course.len() {
            for second in 0..=course.len() {
                let order = [&course[..first], &[wrong], &course[..second], &[wrong, Crash]].concat();
                orders += u64::from(run::<O>(&order)?);
            }
        }
    }
    Ok(orders)
}

/// Does the steps, and comes to an end; false if a step makes no sense.
fn run<O: Outlet>(steps: &[Step]) -> Result<bool, Fault> {
    let run = format!("after {steps:?}");
    unless_panic(&run, || {
        let outlet = O::empty();
        Job::run(&outlet, steps).map_err(|what| Fault::Contract { what, run: run.clone() })
    })
}
