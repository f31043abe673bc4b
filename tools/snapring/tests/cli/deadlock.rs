//! `inspect deadlock`: who waited for room at whom, out of what a checkpoint holds of channels.

use crate::support::{Room, run, wait_for};
use serde_json::{Value, json};
use snapring::connector::Generate;
use snapring::record::{Record, to_bytes};
use snapring::runtime::{Initiators, TaskState};
use snapring::snapshot::{ChannelPart, Checkpoint, Durability, Entry, REST, Side, Store, StoreOptions};
use snapring::{Checkpoints, Config, Dataflow, Protocol};

/// What a job says at the head of a checkpoint.
#[derive(Record)]
struct Header {
    job: String,
    attempt: u32,
    hash: String,
    hash_seed: u64,
    finished: bool,
    made_unix_ns: u64,
    went_back: Option<String>,
    undone: Vec<(u64, u64)>,
    protocol: String,
}

fn header(protocol: &str, finished: bool) -> Vec<u8> {
    to_bytes(&Header {
        job: "by hand".to_owned(),
        attempt: 1,
        hash: "rapidhash-v3".to_owned(),
        hash_seed: 1,
        finished,
        made_unix_ns: 1,
        went_back: None,
        undone: Vec::new(),
        protocol: protocol.to_owned(),
    })
}

/// Numbers of one edge at one task of two: from, to, how many.
fn entry(side: Side, edge: &str, operator: &str, task: u32, channels: &[(u32, u32, u64)]) -> Entry {
    let part = |&(from, to, records): &(u32, u32, u64)| {
        let bytes = (0..records).flat_map(|number| to_bytes(&number)).collect();
        ChannelPart { from, to, to_tasks: 2, records, bytes }
    };
    let parts: Vec<ChannelPart> = channels.iter().map(part).collect();
    let (operator, state, schema) = (operator.to_owned(), side.state(edge), u64::schema().to_bytes());
    Entry { operator, state, task, tasks: 2, schema, root: to_bytes(&parts), pages: None }
}

/// A state folder with a checkpoint for each of these headers, all of the same channels.
fn store(room: &Room, headers: &[Vec<u8>], entries: impl Fn() -> Vec<Entry>) -> String {
    let mut store = Store::open(&room.path("S"), StoreOptions { keep: 5, ..StoreOptions::default() }).unwrap();
    for (epoch, header) in (1..).zip(headers) {
        store.commit(&Checkpoint { epoch, header: header.clone(), entries: entries() }).unwrap();
    }
    room.at("S")
}

fn parsed(args: &[&str]) -> Value {
    serde_json::from_str(&run(args).ok().stdout).expect("JSON")
}

/// `split` 0 waits for `accounts` 1, which waits for the head of the loop, which waits for `accounts` 1; `split` 1 waits for
/// `accounts` 0, which does not wait.
fn circle() -> Vec<Entry> {
    vec![
        entry(Side::Output, "split->accounts", "split", 0, &[(0, 1, 4)]),
        entry(Side::Output, "split->accounts", "split", 1, &[(1, 0, 3), (1, 1, 0)]),
        entry(Side::Input, "split->accounts", "accounts", 0, &[(REST, 0, 9), (0, 0, 7), (1, 0, 0)]),
        entry(Side::Output, "feedback again", "accounts", 1, &[(1, 0, 2)]),
        entry(Side::Output, "again->accounts #2", "again", 0, &[(0, 1, 5)]),
    ]
}

#[test]
fn a_circle_is_found_and_named() {
    let room = Room::new();
    let state = store(&room, &[header("unaligned", false)], circle);
    let told = run(["inspect", "deadlock", &state]).ok().lines();
    assert_eq!(
        told,
        [
            "accounts 0 has not come to 9 of split->accounts, brought by a restore",
            "accounts 0 has not come to 7 of split->accounts, from split 0",
            "accounts 1 waits for room in the ring to again 0 (2 of feedback again)",
            "again 0 waits for room in the ring to accounts 1 (5 of again->accounts #2)",
            "split 0 waits for room in the ring to accounts 1 (4 of split->accounts)",
            "split 1 waits for room in the ring to accounts 0 (3 of split->accounts)",
            "in a circle: accounts 1 → again 0 → accounts 1",
        ]
    );
    let object = parsed(&["inspect", "deadlock", &state, "--json"]);
    assert_eq!(object["circle"], json!(["accounts 1", "again 0"]));
    assert_eq!(
        (&object["shows_waits"], &object["job"], &object["epoch"]),
        (&json!(true), &json!("by hand"), &json!(1))
    );
    assert_eq!(
        object["tasks"][3],
        json!({
            "task": "split 0", "has_not_come_to": [],
            "waits_for_room_at": [{ "task": "accounts 1", "edge": "split->accounts", "records": 4 }],
        })
    );
    assert_eq!(object["tasks"][0]["has_not_come_to"][0]["task"], Value::Null);
}

#[test]
fn what_a_protocol_cannot_show_is_said() {
    let room = Room::new();
    let headers = ["unaligned", "aligned", "chandy-lamport", "aligned-then-unaligned"].map(|name| header(name, false));
    let headers = [&headers[..], &[header("unaligned", true)]].concat();
    let log = || vec![entry(Side::Input, "feedback again", "again", 0, &[(1, 0, 2)])];
    let state = store(&room, &headers, log);
    let said = [
        "epoch 1: nobody waits for room",
        "epoch 2, aligned: it cannot show who waits for room",
        "epoch 3, chandy-lamport: it cannot show who waits for room",
        "epoch 4, aligned-then-unaligned: it shows who waits for room only where it was not aligned in time",
        "epoch 5, the job had finished",
    ];
    for (epoch, said) in (1..).zip(said) {
        let args = ["inspect", "deadlock", &state, "--epoch", &format!("{epoch}")];
        let told = run(args).ok().lines();
        // The chain at the other end is not known by its name.
        assert_eq!(told[0], "again 0 has not come to 2 of feedback again, from feedback again 1");
        assert!(told.len() == 2 && told[1].starts_with(said), "{told:#?}");
        assert_eq!(told[1].contains("--initiators all"), (2..=3).contains(&epoch), "{told:#?}");
        assert_eq!(parsed(&[&args[..], &["--json"]].concat())["shows_waits"], json!(epoch == 1));
    }
    run(["inspect", "deadlock", &state, "--epoch", "9"]).exits(2, &["--epoch 9"]);
    run(["inspect", "deadlock", &room.at("none")]).exits(5, &["no store here"]);
}

#[test]
fn a_real_job_that_nobody_reads_from_is_cut_and_read() {
    let room = Room::new();
    let flow = Dataflow::new("unread");
    let numbers =
        flow.source("numbers", Generate::new(u64::MAX, 1, |index| index)).stage("middle").map(|number| number);
    let mut results = numbers.stage("last").output("results");
    let checkpoints = Checkpoints::on_demand().to(room.path("S")).durability(Durability::ProcessCrash);
    let checkpoints = checkpoints.protocol(Protocol::Unaligned).initiators(Initiators::All);
    let config = Config::new().unpinned_workers(2).parallelism(1).ring_capacity(2).batch_len_max(10);
    let job = flow.start(config.checkpoints(checkpoints)).unwrap();
    wait_for(|| job.metrics().tasks.iter().all(|task| task.state == TaskState::BlockedByOutput));
    assert_eq!(job.checkpoint().unwrap().wait().unwrap().epoch, 1);
    assert!(results.poll().unwrap().is_some());
    drop(job);

    let told = run(["inspect", "deadlock", &room.at("S"), "--epoch", "1"]).ok().lines();
    for line in
        ["middle 0 waits for room in the ring to last 0 (", "numbers 0 waits for room in the ring to middle 0 ("]
    {
        assert!(told.iter().any(|told| told.starts_with(line)), "{told:#?}");
    }
    assert!(told.iter().any(|told| told.starts_with("last 0 has not come to ")), "{told:#?}");
    assert_eq!(told.last().unwrap(), "epoch 1: nobody waits in a circle");
}
