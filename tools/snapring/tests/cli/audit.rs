//! `--audit`: while money goes round, every checkpoint that is made holds all of it, under every exact protocol.

use crate::support::{Ran, Room, end, run, snapring, wait_for};
use serde_json::Value;
use snapring::page::FrozenPages;
use snapring::record::{Record, to_bytes};
use snapring::snapshot::{ChannelPart, Checkpoint, Entry, Reader, RestoredEntry, Side, Store, StoreOptions};

const JOB: [&str; 9] =
    ["run", "transfers", "--accounts", "50", "--amount", "100", "--parallelism", "2", "--checkpoint-interval"];
const TOTAL: i64 = 5000;

#[derive(Record)]
struct Sent {
    amount: i64,
}

/// The lines of JSON of a run.
fn objects(ran: &Ran) -> Vec<Value> {
    ran.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Checks the lines of audits; says how many there are, and how often money was on its way.
#[track_caller]
fn check(audits: &[Value], protocol: &str) -> (usize, usize) {
    for audit in audits {
        let [state, channels, total] =
            ["state", "channels", "total"].map(|part| audit[part].as_i64().expect("a number"));
        assert_eq!((total, state + channels), (TOTAL, TOTAL), "{audit}");
        assert_eq!(audit["protocol"], protocol);
    }
    let epochs: Vec<_> = audits.iter().map(|audit| audit["epoch"].as_u64().expect("an epoch")).collect();
    assert!(epochs.is_sorted_by(|a, b| a < b), "{epochs:?}");
    (audits.len(), audits.iter().filter(|audit| audit["channels"] != 0).count())
}

#[test]
fn every_checkpoint_of_every_exact_protocol_holds_all_the_money() {
    for protocol in snapring::Protocol::ALL.into_iter().filter(|protocol| protocol.is_exact()) {
        let room = Room::new();
        let more = ["10ms", "--protocol", protocol.name(), "--state", &room.at("S"), "--transfers", "300000"];
        let ran = run([&JOB[..], &more, &["--audit", "--json"]].concat()).ok();
        let mut lines = objects(&ran);
        let summary = lines.pop().expect("a summary");
        assert_eq!((&summary["job"], &summary["protocol"]), (&"transfers".into(), &protocol.name().into()));
        let (audits, on_the_way) = check(&lines, protocol.name());
        assert!(audits > 1 && on_the_way > 0, "{protocol}: {on_the_way} of {audits}");
    }
}

#[test]
fn a_killed_job_is_audited_when_it_goes_on() {
    let room = Room::new();
    let state = room.at("S");
    let more = ["10ms", "--protocol", "unaligned", "--initiators", "all", "--state", &state, "--audit", "--json"];
    for _ in 0..3 {
        let mut job = snapring([&JOB[..], &more].concat()).spawn().expect("the binary can be started");
        let newest = || run(["inspect", "ls", &state, "--json"]).stdout;
        let before = newest();
        wait_for(|| newest() != before);
        std::thread::sleep(std::time::Duration::from_millis(100));
        job.kill().expect("a child can be killed");
        let (audits, _) = check(&objects(&end(job)), "unaligned");
        assert!(audits > 0, "at least the one that was waited for");
    }
    let lines = run(["inspect", "channels", &state, "--records", "2", "--json"]).ok();
    let object = &objects(&lines)[0];
    assert_eq!((&object["protocol"], &object["job"]), (&"unaligned".into(), &"transfers".into()));
}

#[test]
fn people_read_it_beside_the_results() {
    let room = Room::new();
    let ran = run([&JOB[..], &["10ms", "--state", &room.at("S"), "--transfers", "1000", "--audit"]].concat()).ok();
    assert_eq!(ran.lines().len(), 50, "a balance for each account: {ran:?}");
    let said = ran.stderr.lines().find(|line| line.starts_with("audit of epoch")).expect("an audit");
    assert!(said.contains("(aligned)") && said.ends_with("= 5000"), "{said}");
}

/// An entry that builds on that of the epoch before.
fn unchanged(entry: RestoredEntry) -> Entry {
    let (page_bytes, count, paged) = (entry.page_bytes, entry.page_count, entry.paged);
    let pages = paged.then(|| FrozenPages::of(Vec::new(), Vec::new(), page_bytes, count, false));
    let RestoredEntry { operator, state, task, tasks, schema, root, .. } = entry;
    Entry { operator, state, task, tasks, schema, root, pages }
}

#[test]
fn money_that_is_there_too_often_is_a_failure() {
    let room = Room::new();
    let state = room.at("S");
    let args = [&JOB[..], &["10ms", "--state", &state, "--transfers", "1000", "--audit"]].concat();
    run(&args).ok();
    // One more checkpoint, as the last one but with money on its way.
    let reader = Reader::open(&room.path("S")).unwrap();
    let newest = reader.epochs().last().expect("the last checkpoint").epoch;
    let last = reader.read(newest).unwrap();
    let parts = vec![ChannelPart { from: 0, to: 0, to_tasks: 2, records: 1, bytes: to_bytes(&Sent { amount: 7 }) }];
    let (operator, state) = ("transfers".to_owned(), Side::Output.state("transfers->accounts"));
    let (schema, root) = (Sent::schema().to_bytes(), to_bytes(&parts));
    let mut entries: Vec<Entry> = last.entries.into_iter().map(unchanged).collect();
    entries.push(Entry { operator, state, task: 0, tasks: 2, schema, root, pages: None });
    let mut store = Store::open(&room.path("S"), StoreOptions::default()).unwrap();
    store.commit(&Checkpoint { epoch: newest + 1, header: last.header, entries }).unwrap();
    drop(store);
    let epoch = format!("audit of epoch {} (aligned)", newest + 1);
    run(&args).exits(1, &[&epoch, "7 of the money is there too often", "= 5007, and not 50"]);
}
