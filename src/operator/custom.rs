//! What a user writes whose operator is more than a fold: [`Operator`].

use super::{Emit, KeyedState};
use crate::error::Failed;
use crate::record::Record;

/// A keyed operator of one's own: what it does with a record, given what it holds of the record's key.
///
/// It is drawn by [`KeyedStream::process`](crate::dataflow::KeyedStream::process). Its state is the library's:
/// it is checkpointed, restored and handed over to another number of tasks without a word here. The operator itself is
/// shared by all tasks and has no state (`&self`): what changes between two records is in its [`KeyedState`], or it would not
/// survive.
///
/// ```
/// use snapring::connector::{Collect, Items};
/// use snapring::error::Failed;
/// use snapring::operator::{Emit, Operator, Value};
/// use snapring::{Config, Dataflow, Record};
///
/// #[derive(Clone, Record)]
/// struct Login {
///     user: u64,
///     right: bool,
/// }
///
/// /// Emits a user who was wrong three times in a row.
/// struct ThreeWrong;
///
/// impl Operator for ThreeWrong {
///     type Key = u64;
///     type In = Login;
///     type Out = u64;
///     /// How often the user has been wrong since the last time that all was right.
///     type State = Value<u32>;
///
///     fn on_record<E: Emit<u64>>(
///         &self,
///         user: &u64,
///         login: Login,
///         wrong: &mut Value<u32>,
///         out: &mut E,
///     ) -> Result<(), Failed> {
///         if login.right {
///             wrong.clear(); // nothing is kept of a user of whom all is well
///             return Ok(());
///         }
///         let times = wrong.get_or_insert_with(|| 0)?;
///         *times += 1;
///         if *times == 3 { out.emit(*user) } else { Ok(()) }
///     }
/// }
///
/// let login = |user, right| Login { user, right };
/// let logins = vec![login(1, false), login(2, false), login(1, false), login(2, true), login(1, false), login(2, false)];
/// let suspects = Collect::new();
/// let flow = Dataflow::new("logins");
/// flow.source("logins", Items::new(logins))
///     .key_by(|login| login.user)
///     .process("three-wrong", ThreeWrong) // named: it has state
///     .sink("suspects", suspects.clone());
/// flow.start(Config::new().unpinned_workers(1))?.wait()?;
/// assert_eq!(suspects.take(), [1]);
/// # Ok::<(), snapring::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a keyed operator",
    note = "implement `snapring::operator::Operator` for it; for one value per key, changed by a closure, there is `.fold(…)`"
)]
pub trait Operator: Send + Sync + 'static {
    /// What the records were keyed by.
    type Key: Record;
    /// What it takes.
    type In: Record;
    /// What it emits.
    type Out: Send + 'static;
    /// What it holds of a key. A checkpoint keeps its schema, by which a later version of it
    /// [migrates](crate::docs::guide::state#other-types) the values.
    type State: KeyedState;

    /// Takes one record. What the key's `state` is afterwards is there when its next record comes, in this process or after
    /// a restore. An emission is part of the same moment: a checkpoint has both or neither.
    ///
    /// # Errors
    /// [`Failed::user`] stops the job, and names operator, task, epoch and record; what `emit` returned is passed on by `?`.
    fn on_record<E: Emit<Self::Out>>(
        &self,
        key: &Self::Key,
        record: Self::In,
        state: &mut Self::State,
        out: &mut E,
    ) -> Result<(), Failed>;

    /// The input has ended: called once for each key of which there is anything, however often the job is restarted meanwhile,
    /// in no particular order. Does nothing unless it is written.
    ///
    /// # Errors
    /// As [`Operator::on_record`].
    fn on_end<E: Emit<Self::Out>>(&self, key: &Self::Key, state: &mut Self::State, out: &mut E) -> Result<(), Failed> {
        let _ = (key, state, out);
        Ok(())
    }
}
