//! The sinks in memory.

use super::place;
use crate::connector::{Collect, Memory};
use crate::error::ConnectorError;
use crate::operator::{Place, Sink, Writer};

#[test]
fn collect_shows_what_was_flushed() {
    let sink = Collect::<u64>::new();
    let place = Place { store_id: None, ..place(1, false, 1) };
    sink.claim(&place).unwrap().recover(&[]).unwrap();
    let mut writer = sink.writer(&place, 0).unwrap();
    writer.write(1).unwrap();
    assert!(sink.take().is_empty());
    writer.flush().unwrap();
    writer.write(2).unwrap();
    assert!(writer.prepare(1).unwrap().is_none());
    assert_eq!(sink.take(), [1, 2]);
}

#[test]
fn memory_publishes_at_commit_and_outlives_its_writers() {
    let sink = Memory::<u64>::new();
    let mut committer = sink.claim(&place(1, false, 1)).unwrap();
    assert!(matches!(sink.claim(&place(1, false, 1)), Err(ConnectorError::Foreign { .. })), "in use");
    let mut writer = sink.writer(&place(1, false, 1), 0).unwrap();
    assert!(writer.prepare(1).unwrap().is_none(), "never empty");
    writer.write(7).unwrap();
    let first = writer.prepare(2).unwrap().unwrap();
    writer.write(8).unwrap();
    writer.prepare(3).unwrap().unwrap();
    committer.sync(std::slice::from_ref(&first)).unwrap();
    assert_eq!((sink.committed(), sink.pending().len()), (vec![], 2));
    drop((committer, writer));

    let mut committer = sink.claim(&place(1, true, 2)).unwrap();
    committer.recover(std::slice::from_ref(&first)).unwrap();
    committer.recover(std::slice::from_ref(&first)).unwrap();
    assert_eq!((sink.committed(), sink.pending().len()), (vec![7], 0));
}

#[test]
fn what_was_not_synced_is_lost_with_the_power_and_missed() {
    let sink = Memory::<u64>::new();
    let committer = sink.claim(&place(1, false, 1)).unwrap();
    let mut writer = sink.writer(&place(1, false, 1), 0).unwrap();
    writer.write(7).unwrap();
    let part = writer.prepare(1).unwrap().unwrap();
    drop((committer, writer));
    sink.lose_power();
    assert!(sink.claim(&place(1, true, 2)).unwrap().recover(&[part]).is_err());
}

#[test]
fn memory_belongs_to_one_store() {
    let sink = Memory::<u64>::new();
    assert!(sink.claim(&Place { store_id: None, ..place(1, false, 1) }).is_err(), "no checkpoints");
    assert!(sink.claim(&place(1, true, 1)).is_err(), "restored, and never used");
    let mut committer = sink.claim(&place(1, false, 1)).unwrap();
    let mut writer = sink.writer(&place(1, false, 1), 0).unwrap();
    writer.write(7).unwrap();
    let part = writer.prepare(1).unwrap().unwrap();
    committer.commit(&[part]).unwrap();
    drop(committer);
    assert!(sink.claim(&place(1, false, 2)).is_err(), "fresh, and it holds parts");
    assert!(sink.claim(&place(2, true, 2)).is_err(), "of another store");
    sink.claim(&place(1, true, 2)).unwrap();
}
