//! `inspect channels`, and the columns of `inspect ls` that tell of channels.

use crate::plain::some_flights;
use crate::support::{Room, run};
use serde_json::{Value, json};
use snapring::record::{Record, to_bytes};
use snapring::snapshot::{ChannelPart, Checkpoint, Entry, REST, Reader, Side, Store, StoreOptions};

#[derive(Record)]
struct Transfer {
    to: u32,
    amount: i64,
    note: String,
}

fn transfer(amount: i64) -> Transfer {
    Transfer { to: 7, amount, note: "a\nb".to_owned() }
}

fn part(from: u32, to: u32, amounts: &[i64]) -> ChannelPart {
    let bytes = amounts.iter().flat_map(|amount| to_bytes(&transfer(*amount))).collect();
    ChannelPart { from, to, to_tasks: 2, records: amounts.len() as u64, bytes }
}

fn entry(side: Side, edge: &str, parts: &Vec<ChannelPart>) -> Entry {
    let (operator, state, schema) = ("accounts".to_owned(), side.state(edge), Transfer::schema().to_bytes());
    Entry { operator, state, task: 0, tasks: 2, schema, root: to_bytes(parts), pages: None }
}

/// The folder of a real job, and one more checkpoint in it with these entries. Says its epoch.
fn with_channels(room: &Room, entries: Vec<Entry>) -> u64 {
    let input = room.file("f.csv", some_flights(0, 100));
    run(room.stateful("routes", &[&input], &["--parallelism", "2"])).ok();
    let reader = Reader::open(&room.path("S")).unwrap();
    let newest = reader.epochs().last().expect("the last checkpoint").epoch;
    let header = reader.header(newest).unwrap();
    let mut store = Store::open(&room.path("S"), StoreOptions::default()).unwrap();
    store.commit(&Checkpoint { epoch: newest + 1, header, entries }).unwrap();
    newest + 1
}

fn two_edges() -> Vec<Entry> {
    vec![
        entry(Side::Output, "split->accounts", &vec![part(0, 1, &[4])]),
        entry(Side::Input, "feedback transfers", &vec![part(1, 0, &[2, -3]), part(REST, 0, &[1])]),
    ]
}

fn parsed(args: &[&str]) -> Value {
    let ran = run(args).ok();
    assert_eq!(ran.stdout.lines().count(), 1);
    serde_json::from_str(&ran.stdout).expect("JSON")
}

#[test]
fn channels_are_listed_with_their_first_records() {
    let room = Room::new();
    let epoch = with_channels(&room, two_edges());
    let state = room.at("S");
    let lines = run(["inspect", "channels", &state]).ok().lines();
    let words: Vec<Vec<&str>> = lines.iter().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(words[1], ["feedback", "transfers", "rest", "-", "0", "1", "19"]);
    assert_eq!(words[2], ["feedback", "transfers", "log", "1", "0", "2", "38"]);
    assert_eq!(words[3], ["split->accounts", "leftovers", "0", "1", "1", "19"]);
    assert_eq!(lines[4], "4 records, 76 B, in 3 parts of channels");
    assert_eq!(lines.len(), 5);

    let more = run(["inspect", "channels", &state, "--records", "1"]).ok().lines();
    assert_eq!(more.len(), 8, "{more:#?}");
    assert_eq!(more[4], r#"  Transfer { to: 7, amount: 2, note: "a\nb" }"#);

    let object = parsed(&["inspect", "channels", &state, "--records", "9", "--json"]);
    assert_eq!((&object["epoch"], &object["job"]), (&json!(epoch), &json!("routes")));
    assert_eq!((&object["records"], &object["bytes"], &object["protocol"]), (&json!(4), &json!(76), &json!("aligned")));
    assert_eq!(
        object["channels"][1],
        json!({
            "edge": "feedback transfers", "kind": "log", "from": 1, "to": 0, "operator": "accounts", "task": 0,
            "tasks": 2, "records": 2, "bytes": 38, "schema": "Transfer { to: u32, amount: i64, note: String }",
            "first": [{ "to": 7, "amount": 2, "note": "a\nb" }, { "to": 7, "amount": -3, "note": "a\nb" }],
        })
    );
    assert_eq!((&object["channels"][0]["from"], &object["channels"][0]["kind"]), (&Value::Null, &json!("rest")));
}

#[test]
fn ls_tells_protocol_and_bytes_of_channels() {
    let room = Room::new();
    with_channels(&room, two_edges());
    let epochs = &parsed(&["inspect", "ls", &room.at("S"), "--json"])["epochs"];
    let bytes: Vec<_> = epochs.as_array().unwrap().iter().map(|epoch| epoch["channel_bytes"].as_u64()).collect();
    assert_eq!((bytes.last(), bytes[0]), (Some(&Some(76)), Some(0)));
    assert_eq!(epochs[0]["protocol"], "aligned");
    let listed = run(["inspect", "ls", &room.at("S")]).ok().lines();
    assert!(listed[0].contains("channels") && listed.last().unwrap().contains("76 B  aligned"), "{listed:#?}");
}

#[test]
fn an_epoch_without_channels_has_an_empty_list() {
    let room = Room::new();
    let epoch = with_channels(&room, two_edges()) - 1;
    let args = ["inspect", "channels", &room.at("S"), "--epoch", &epoch.to_string()];
    assert_eq!(run(args).ok().lines()[1..], ["0 records, 0 B, in 0 parts of channels"]);
    let object = parsed(&[args.as_slice(), &["--json"]].concat());
    assert_eq!((&object["channels"], &object["epoch"]), (&json!([]), &json!(epoch)));
}

#[test]
fn what_is_damaged_or_not_there_is_named() {
    let room = Room::new();
    let cut = ChannelPart { records: 3, ..part(1, 0, &[2]) };
    with_channels(&room, vec![entry(Side::Input, "a->b", &vec![cut])]);
    let state = room.at("S");
    run(["inspect", "channels", &state]).ok();
    let place = ["state `input:a->b`", "from task 1 to task 0", "record 2 of 3", &state];
    run(["inspect", "channels", &state, "--records", "9"]).exits(3, &place);
    run(["inspect", "channels", &state, "--epoch", "999"]).exits(2, &["--epoch 999", "the store keeps"]);
    run(["inspect", "channels", &room.at("none")]).exits(5, &["no store here"]);
    let bad = Room::new();
    with_channels(&bad, vec![Entry { root: vec![9], ..entry(Side::Input, "a->b", &Vec::new()) }]);
    run(["inspect", "channels", &bad.at("S")]).exits(3, &["state `input:a->b`", "list of channels"]);
    let empty = Room::new();
    drop(Store::open(&empty.path("S"), StoreOptions::default()).unwrap());
    run(["inspect", "channels", &empty.at("S")]).exits(5, &["no checkpoint"]);
}
