//! `--audit`: each checkpoint of `transfers` is read back while the job runs, as anybody could who has its state folder, and
//! all the money must be there.

use crate::outcome::{Wrong, print};
use serde_json::Value;
use snapring::Protocol;
use snapring::error::{Error, StoreError};
use snapring::snapshot::Reader;
use snapring_jobs::{Audit, Money, Transfers};
use std::path::{Path, PathBuf};

/// What has been audited.
pub struct Audits {
    job: Transfers,
    state: PathBuf,
    as_json: bool,
    reader: Option<Reader>,
    /// The newest checkpoint when it was looked last; none: it has not been looked yet.
    looked: Option<Option<u64>>,
    /// The newest that was audited.
    audited: u64,
}

impl Audits {
    pub fn new(job: Transfers, state: &Path, as_json: bool) -> Self {
        Self { job, state: state.to_owned(), as_json, reader: None, looked: None, audited: 0 }
    }

    /// Audits what has come since the last look, if the job knows of a newer checkpoint than then.
    pub fn look(&mut self, newest: Option<u64>, say: impl Fn(&str)) -> Result<(), Wrong> {
        if self.looked == Some(newest) {
            return Ok(());
        }
        self.looked = Some(newest);
        self.all(say)
    }

    /// Audits what has come since the last look. Those that have expired meanwhile cannot be read any more.
    pub fn all(&mut self, say: impl Fn(&str)) -> Result<(), Wrong> {
        let reader = match &mut self.reader {
            Some(reader) => {
                reader.refresh()?;
                reader
            }
            none => none.insert(Reader::open(&self.state)?),
        };
        for info in reader.epochs() {
            if info.epoch <= self.audited {
                continue;
            }
            self.audited = info.epoch;
            match self.job.audit(reader, info.epoch) {
                Ok(audit) => tell(&self.job, &audit, self.as_json, &say)?,
                Err(Error::Store(StoreError::NoEpoch { .. })) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// A line for a checkpoint; if money is missing, or is there twice, that is a failure. Under a protocol that may count records
/// twice it is none.
fn tell(job: &Transfers, audit: &Audit, as_json: bool, say: &impl Fn(&str)) -> Result<(), Wrong> {
    let Audit { epoch, protocol, money } = audit;
    let (all, total) = (job.total(), money.total());
    if as_json {
        let (protocol, Money { state, channels }) = (Value::from(protocol.as_str()), money);
        // By hand, for the order of the fields and because sums may need more than 64 bits.
        print(format!(
            "{{\"epoch\":{epoch},\"protocol\":{protocol},\"state\":{state},\"channels\":{channels},\"total\":{total}}}\n"
        ))?;
    } else {
        say(&format!(
            "audit of epoch {epoch} ({protocol}): {} in accounts + {} on the way = {total}",
            money.state, money.channels
        ));
    }
    let is_exact = protocol.parse().is_ok_and(Protocol::is_exact);
    if total == all || !is_exact {
        return Ok(());
    }
    let (what, amount) = if total < all { ("is missing", all - total) } else { ("is there too often", total - all) };
    Err(Wrong::Failed(format!(
        "audit of epoch {epoch} ({protocol}): {amount} of the money {what}: {} in accounts + {} on the way = {total}, and not \
         {} accounts × {} = {all}",
        money.state, money.channels, job.accounts, job.amount
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(protocol: &str, state: i128, channels: i128) -> Result<(), Wrong> {
        let job = Transfers { accounts: 10, amount: 5, seed: 1, transfers: None };
        let audit = Audit { epoch: 7, protocol: protocol.to_owned(), money: Money { state, channels } };
        tell(&job, &audit, false, &|_| ())
    }

    fn message(result: Result<(), Wrong>) -> String {
        match result {
            Err(Wrong::Failed(message)) => message,
            other => panic!("no failure: {other:?}"),
        }
    }

    #[test]
    fn a_wrong_total_is_a_failure_where_cuts_are_exact() {
        assert!(told("unaligned", 30, 20).is_ok() && told("at-least-once", 30, 30).is_ok());
        let less = message(told("unaligned", 30, 19));
        assert!(less.contains("epoch 7 (unaligned): 1 of the money is missing: 30 in accounts + 19"), "{less}");
        assert!(less.contains("not 10 accounts × 5 = 50"), "{less}");
        assert!(message(told("aligned", 60, 0)).contains("10 of the money is there too often"));
        assert!(told("unheard-of", 60, 0).is_ok(), "nobody knows what it promises");
    }
}
