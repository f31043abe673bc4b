//! What a checkpoint holds of channels, read back without the types of the records.

mod record_shapes;
mod store_support;

use record_shapes::{Event, Unit, events};
use snapring::error::StoreError;
use snapring::record::{Record, to_bytes};
use snapring::snapshot::{ChannelPart, Checkpoint, EdgePart, Entry, REST, Reader, Side, Store};
use store_support::{entry, options};

fn part<T: Record>(from: u32, to: u32, records: &[T]) -> ChannelPart {
    let bytes = records.iter().flat_map(to_bytes).collect();
    ChannelPart { from, to, to_tasks: 2, records: records.len() as u64, bytes }
}

fn kept<T: Record>(side: Side, edge: &str, task: u32, parts: &Vec<ChannelPart>) -> Entry {
    let (operator, state) = ("count".to_owned(), side.state(edge));
    Entry { operator, state, task, tasks: 2, schema: T::schema().to_bytes(), root: to_bytes(parts), pages: None }
}

/// A store with a table's entry and these.
fn store_with(entries: Vec<Entry>) -> (tempfile::TempDir, Reader) {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path(), options()).unwrap();
    let table = entry(1, &[0, 1], 2, true).entries;
    let entries = table.into_iter().chain(entries).collect();
    store.commit(&Checkpoint { epoch: 1, header: Vec::new(), entries }).unwrap();
    let reader = Reader::open(dir.path()).unwrap();
    (dir, reader)
}

fn shown(edge: &EdgePart, part: &ChannelPart) -> Vec<String> {
    edge.records(part).map(|record| record.unwrap().to_string()).collect()
}

#[test]
fn channels_are_read_beside_a_writer() {
    let log = vec![part(REST, 1, &events()[..1]), part(0, 1, &events()[1..]), part::<Event>(1, 1, &[])];
    let leftovers = vec![part(0, 0, &[7u64, 8])];
    let (_dir, reader) = store_with(vec![
        kept::<Event>(Side::Input, "split->count", 1, &log),
        kept::<u64>(Side::Output, "count->out", 0, &leftovers),
    ]);
    let edges = reader.channels(1).unwrap();
    let [input, output] = edges.as_slice() else { panic!("{edges:?}") };
    assert_eq!((input.edge.as_str(), input.side, input.operator.as_str()), ("split->count", Side::Input, "count"));
    assert_eq!((input.task, input.tasks, &input.parts), (1, 2, &log));
    let found: Vec<_> = input.parts.iter().flat_map(|part| shown(input, part)).collect();
    assert_eq!(found, events().iter().map(|event| format!("{event:?}")).collect::<Vec<_>>());
    assert_eq!((output.edge.as_str(), output.side), ("count->out", Side::Output));
    assert_eq!(shown(output, &output.parts[0]), ["7", "8"]);
    assert!(matches!(reader.channels(2), Err(StoreError::NoEpoch { epoch: 2, .. })));
}

#[test]
fn an_epoch_without_channels_has_none() {
    let (_dir, reader) = store_with(vec![]);
    assert_eq!(reader.channels(1).unwrap(), []);
}

fn message<T>(result: Result<T, StoreError>) -> String {
    match result {
        Err(error @ StoreError::Corrupt { .. }) => error.to_string(),
        Err(error) => panic!("not corrupt: {error}"),
        Ok(_) => panic!("it was accepted"),
    }
}

#[test]
fn damage_names_the_file_and_the_entry() {
    let good = || kept::<u64>(Side::Input, "a->b", 1, &vec![part(0, 1, &[7u64, 8])]);
    let place = "epoch 1, operator `count`, state `input:a->b`, task 1 of 2";
    for (bad, what) in [(Entry { root: vec![1, 0], ..good() }, "list"), (Entry { schema: vec![9], ..good() }, "schema")]
    {
        let (dir, reader) = store_with(vec![bad]);
        let said = message(reader.channels(1));
        assert!(said.contains(place) && said.contains(what), "{said}");
        assert!(said.contains(dir.path().to_str().unwrap()), "{said}");
    }
    let wrong = |records, bytes: &[u8]| {
        let part = ChannelPart { from: 0, to: 1, to_tasks: 2, records, bytes: bytes.to_vec() };
        let (_dir, reader) = store_with(vec![kept::<u64>(Side::Input, "a->b", 1, &vec![part])]);
        let edges = reader.channels(1).unwrap();
        let mut records = edges[0].records(&edges[0].parts[0]);
        let failed = records.find(Result::is_err).expect("it is noticed");
        assert!(records.next().is_none(), "nothing follows an error");
        message(failed)
    };
    let short = wrong(2, &[0; 15]);
    assert!(short.contains(place) && short.contains("record 2 of 2: the bytes end"), "{short}");
    assert!(wrong(u64::MAX, &[0; 16]).contains("record 3 of 18446744073709551615"));
    assert!(wrong(1, &[0; 16]).contains("8 bytes are left"));
    assert!(wrong(0, &[0; 1]).contains("1 bytes are left"));
}

#[test]
fn records_without_bytes_are_as_many_as_they_say() {
    let (_dir, reader) = store_with(vec![kept::<Unit>(Side::Input, "a->b", 0, &vec![part(0, 0, &[Unit, Unit, Unit])])]);
    let edges = reader.channels(1).unwrap();
    assert_eq!(shown(&edges[0], &edges[0].parts[0]), ["Unit", "Unit", "Unit"]);
}
