//! Auditing `transfers`: checkpoints of real runs, and others made by hand in which money is missing.

use snapring::error::{Error, StoreError};
use snapring::page::Pool;
use snapring::record::{Record, to_bytes};
use snapring::runtime::{Checkpoints, Config};
use snapring::snapshot::{ChannelPart, Checkpoint, Entry, Reader, Side, Store, StoreOptions};
use snapring::state::{Hasher, Table, range_of};
use snapring_jobs::{Account, Money, Output, Transfer, Transfers, transfers};
use std::path::Path;
use std::time::Duration;

const JOB: Transfers = Transfers { accounts: 100, amount: 50, seed: 3, transfers: Some(20_000) };

/// Runs it to its end, with checkpoints into this folder.
fn run(job: Transfers, state: &Path) {
    let flow = transfers(job, &Output::Nowhere).unwrap();
    let checkpoints = Checkpoints::every(Duration::from_millis(5)).to(state).keep(1000);
    flow.start(Config::new().parallelism(2).checkpoints(checkpoints)).unwrap().wait().unwrap();
}

/// The accounts of one task, and what pages they lie in.
fn accounts<A: Record>(of: &[(u64, A)]) -> Entry {
    let pool = Pool::new(StoreOptions::default().page_bytes as usize, usize::MAX);
    let mut table = Table::<u64, A>::new(&pool, Hasher::default(), range_of(0, 1)).unwrap();
    for (number, account) in of {
        let hash = Hasher::default().hash(number, &mut Vec::new());
        let account = snapring::record::from_bytes(&to_bytes(account)).unwrap();
        table.insert(hash, number, account).unwrap();
    }
    let (root, pages) = table.freeze();
    let (operator, schema) = ("accounts".to_owned(), <(u64, A)>::schema().to_bytes());
    Entry { operator, state: "table".to_owned(), task: 0, tasks: 1, schema, root, pages: Some(pages) }
}

fn channel<T: Record>(side: Side, edge: &str, records: &[T]) -> Entry {
    let bytes = records.iter().flat_map(to_bytes).collect();
    let parts = vec![ChannelPart { from: 0, to: 0, to_tasks: 1, records: records.len() as u64, bytes }];
    let (operator, state, root) = ("accounts".to_owned(), side.state(edge), to_bytes(&parts));
    Entry { operator, state, task: 0, tasks: 1, schema: T::schema().to_bytes(), root, pages: None }
}

/// One more epoch, with a header that a real job has made.
fn commit(state: &Path, entries: Vec<Entry>) -> u64 {
    let reader = Reader::open(state).unwrap();
    let newest = reader.epochs().last().expect("the last checkpoint").epoch;
    let header = reader.header(newest).unwrap();
    let mut store = Store::open(state, StoreOptions::default()).unwrap();
    store.commit(&Checkpoint { epoch: newest + 1, header, entries }).unwrap();
    newest + 1
}

#[test]
fn every_checkpoint_of_a_run_holds_all_the_money() {
    let dir = tempfile::tempdir().unwrap();
    run(JOB, dir.path());
    let reader = Reader::open(dir.path()).unwrap();
    assert_eq!(JOB.total(), 5000);
    for info in reader.epochs() {
        let audit = JOB.audit(&reader, info.epoch).unwrap();
        assert_eq!((audit.epoch, audit.money.total()), (info.epoch, 5000), "{audit:?}");
    }
}

#[test]
fn money_is_added_up_over_accounts_and_channels() {
    let dir = tempfile::tempdir().unwrap();
    run(Transfers { transfers: Some(0), ..JOB }, dir.path());
    let account = |balance| Account { balance, sent: 1 };
    let sent = |amount| Transfer { to: 1, amount, hops_left: 9 };
    let epoch = commit(
        dir.path(),
        vec![
            accounts(&[(3, account(30)), (4, account(60)), (5, account(0))]),
            channel(Side::Input, "feedback transfers", &[sent(20), sent(15)]),
            channel(Side::Output, "kicks->accounts", &[Some(Err::<u8, _>(sent(25))), Some(Ok(9)), None]),
            channel(Side::Input, "accounts->balances", &[7u64, 8]),
            channel(Side::Input, "other", &[(), ()]),
        ],
    );
    let audit = JOB.audit(&Reader::open(dir.path()).unwrap(), epoch).unwrap();
    assert_eq!(audit.money, Money { state: 5000 - 20 + 10 - 50, channels: 60 });
    assert_eq!((audit.money.total(), audit.protocol.as_str()), (5000, "aligned"));
    let less = commit(dir.path(), vec![accounts(&[(3, account(49))])]);
    let audit = JOB.audit(&Reader::open(dir.path()).unwrap(), less).unwrap();
    assert_eq!(audit.money, Money { state: 4999, channels: 0 });
}

#[test]
fn what_is_no_audit_is_told() {
    let dir = tempfile::tempdir().unwrap();
    run(Transfers { transfers: Some(0), ..JOB }, dir.path());
    let refused = |entry: Entry| {
        let epoch = commit(dir.path(), vec![entry]);
        let error = JOB.audit(&Reader::open(dir.path()).unwrap(), epoch).unwrap_err();
        assert_eq!(error.exit_code(), 3, "{error}");
        assert!(error.to_string().contains("operator `accounts`, state"), "{error}");
    };
    let good = || accounts(&[(3, Account { balance: 1, sent: 1 })]);
    refused(Entry { schema: u64::schema().to_bytes(), ..good() });
    refused(Entry { schema: <(u64, u64)>::schema().to_bytes(), ..good() });
    refused(Entry { schema: vec![9], ..good() });
    refused(Entry { root: vec![1; 52], ..good() });
    refused(Entry { root: Vec::new(), ..channel(Side::Input, "a->b", &[1u8]) });
    let absent = JOB.audit(&Reader::open(dir.path()).unwrap(), 9999).unwrap_err();
    assert!(matches!(absent, Error::Store(StoreError::NoEpoch { epoch: 9999, .. })), "{absent}");
}
