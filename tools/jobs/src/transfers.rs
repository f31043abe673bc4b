//! Money on its way: accounts send each other part of what they have, for as long as the job runs. A transfer leaves one
//! account as a message and arrives at another by the back edge of a loop. So at most moments part of the money is in no
//! account, and only a consistent cut of states *and* channels holds all of it.

use crate::Output;
use crate::random::{below, mixed};
use snapring::connector::Generate;
use snapring::dataflow::{Dataflow, Stream};
use snapring::error::{ConnectorError, Failed};
use snapring::operator::{Emit, Operator, Value};
use snapring::record::Record;

/// How the job is to be.
#[derive(Clone, Copy, Debug)]
pub struct Transfers {
    /// Accounts, numbered from 0.
    pub accounts: u64,
    /// What each begins with.
    pub amount: i64,
    /// Another seed sends other parts to other accounts.
    pub seed: u64,
    /// Ends after so many transfers; none: never.
    pub transfers: Option<u64>,
}

/// Part of an account's money on its way to another. What the source of the job gives are transfers of nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Record)]
pub struct Transfer {
    /// The account that gets it.
    pub to: u64,
    /// How much it is.
    pub amount: i64,
    /// So many further transfers come of it, one after the other.
    pub hops_left: u64,
}

/// What is kept of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Record)]
pub struct Account {
    /// What it has.
    pub balance: i64,
    /// Transfers that it has sent.
    pub sent: u64,
}

/// What an account has in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Record)]
pub struct Balance {
    /// The account.
    pub account: u64,
    /// What it has.
    pub balance: i64,
}

/// Parts of the generated input: enough to go round among tasks, and never dependent on how many there are.
const SPLITS: u32 = 64;

/// Draws the job.
///
/// # Errors
/// The output's path is that of a file.
pub fn transfers(job: Transfers, output: &Output) -> Result<Dataflow, ConnectorError> {
    let flow = Dataflow::new("transfers");
    output.take("balances", balances(job, &flow))?;
    Ok(flow)
}

/// The job without its end: draws it into a dataflow, and gives what each account has when no transfer is left.
pub fn balances(job: Transfers, flow: &Dataflow) -> Stream<Balance> {
    let Transfers { accounts, amount, seed, transfers } = job;
    let limit = transfers.map_or_else(|| "without end".to_owned(), |transfers| transfers.to_string());
    let kicks = Generate::new(accounts, SPLITS, move |account| job.kick(account))
        .label(format!("accounts {accounts}, amount {amount}, seed {seed}, transfers {limit}"));
    let (on_the_way, arriving) = flow.source("kicks", kicks).feedback::<Transfer>("transfers");
    let (sent, balances) = arriving.key_by(|transfer| transfer.to).process(ACCOUNTS, job).partition_result();
    on_the_way.close(sent);
    balances
}

/// The operator that holds the accounts. The records of all channels of the job are [`Transfer`]s.
pub const ACCOUNTS: &str = "accounts";

impl Transfers {
    /// The transfer of nothing that has an account begin. All together they have as many hops as there are to be transfers.
    fn kick(&self, account: u64) -> Transfer {
        let share = |all: u64| all / self.accounts + u64::from(account < all % self.accounts);
        Transfer { to: account, amount: 0, hops_left: self.transfers.map_or(u64::MAX, share) }
    }
}

/// Where the money is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Money {
    /// In accounts.
    pub state: i128,
    /// On its way between them.
    pub channels: i128,
}

impl Money {
    /// All of it: `accounts × amount`, in every consistent cut.
    #[must_use]
    pub fn total(&self) -> i128 {
        self.state + self.channels
    }
}

impl Operator for Transfers {
    type Key = u64;
    type In = Transfer;
    /// A transfer goes round again, a balance leaves the loop.
    type Out = Result<Transfer, Balance>;
    type State = Value<Account>;

    fn on_record<E: Emit<Self::Out>>(
        &self,
        number: &u64,
        arrived: Transfer,
        account: &mut Value<Account>,
        out: &mut E,
    ) -> Result<(), Failed> {
        let account = account.get_or_insert_with(|| Account { balance: self.amount, sent: 0 })?;
        account.balance += arrived.amount;
        if arrived.hops_left == 0 {
            return Ok(());
        }
        let (own_seed, draw) = (mixed(self.seed, *number), 2 * account.sent);
        // What an account has is at least nothing, and any part of it may go, up to all.
        let amount = below(account.balance.unsigned_abs() + 1, own_seed, draw).cast_signed();
        let to = below(self.accounts, own_seed, draw + 1);
        account.balance -= amount;
        account.sent += 1;
        out.emit(Ok(Transfer { to, amount, hops_left: arrived.hops_left - 1 }))
    }

    fn on_end<E: Emit<Self::Out>>(
        &self,
        number: &u64,
        account: &mut Value<Account>,
        out: &mut E,
    ) -> Result<(), Failed> {
        match account.get()? {
            Some(account) => out.emit(Err(Balance { account: *number, balance: account.balance })),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: Transfers = Transfers { accounts: 7, amount: 100, seed: 3, transfers: Some(1000) };

    #[test]
    fn the_kicks_share_out_the_transfers() {
        let hops: Vec<u64> = (0..7).map(|account| JOB.kick(account).hops_left).collect();
        assert_eq!(hops, [143, 143, 143, 143, 143, 143, 142]);
        assert_eq!(Transfers { transfers: None, ..JOB }.kick(0).hops_left, u64::MAX);
    }
}
