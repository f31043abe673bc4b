//! Whole runs of a user's dataflow, each repeatable by its seed.

use super::fault::unless_panic;
use super::{Fault, Seen, World};
use crate::dataflow::Dataflow;

/// Runs a dataflow once for each seed, on the caller's thread, in a [`World`] of its own: a clock that the simulation turns, a
/// simulated disk, tiny rings and batches, and a random choice of the task that steps next. Checkpoints come, time out and are
/// asked for; writes fail; the process is killed, or the machine loses power, at any step and any write; the job is started
/// anew, at another parallelism and now and then from an older checkpoint. In the end an undisturbed start finishes the job,
/// and `check` looks at what was committed.
///
/// `draw` draws the job anew for each start, with its sinks from [`World::sink`] and the same input each time. Sinks of other
/// kinds work too; what a plain one shows may be there more than once. Each run takes some ten times the time of an undisturbed
/// one, which comes first, to measure it: keep the input small.
///
/// ```
/// use snapring::Dataflow;
/// use snapring::connector::Generate;
/// use snapring::testing::simulate;
///
/// let seen = simulate(
///     0..20,
///     |world| {
///         let flow = Dataflow::new("sums");
///         flow.source("numbers", Generate::new(200, 3, |index| index))
///             .map(world.trip().before(|number| (number % 5, number))) // fails now and then
///             .key_by(|(key, _)| *key)
///             .fold_to_end("sums", 0, |sum, (_, number)| *sum += number)
///             .sink("results", world.sink("results"));
///         flow
///     },
///     |world| {
///         let mut sums = world.committed::<(u64, u64)>("results");
///         sums.sort();
///         assert_eq!(sums, [(0, 3900), (1, 3940), (2, 3980), (3, 4020), (4, 4060)]);
///     },
/// )?;
/// assert!(seen.crashes > 10 && seen.restores > 10);
/// # Ok::<(), snapring::testing::Fault>(())
/// ```
///
/// # Errors
/// The first seed at which the job fails by itself or does not end, `check` or `draw` panics, or a promise of the library is
/// broken.
pub fn simulate(
    seeds: impl IntoIterator<Item = u64>,
    draw: impl Fn(&mut World) -> Dataflow,
    check: impl Fn(&World),
) -> Result<Seen, Fault> {
    let mut seen = Seen::default();
    for seed in seeds {
        let mut world = World::new(seed, vec![1, 2, 3, 4]);
        let how = world.how();
        unless_panic(&how, || {
            world.live(&draw)?;
            check(&world);
            Ok(())
        })?;
        seen += &world.seen;
    }
    Ok(seen)
}
