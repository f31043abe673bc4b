//! Rows to a stream.

use super::{cause, place};
use crate::connector::{Csv, JsonLines};
use crate::error::ConnectorError;
use crate::operator::{Sink, Writer};
use std::io::Read;

#[test]
fn rows_leave_at_the_end_of_a_batch() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let sink = Csv::<u64>::stdout().to(writer);
    assert!(!sink.exactly_once());
    let place = place(1, false, 1);
    sink.claim(&place).unwrap().recover(&[]).unwrap();
    let mut first = sink.writer(&place, 0).unwrap();
    let mut second = sink.writer(&place, 1).unwrap();
    first.write(1).unwrap();
    second.write(3).unwrap();
    first.write(2).unwrap();
    first.flush().unwrap();
    assert!(second.prepare(1).unwrap().is_none());
    drop((first, second, sink));
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(text, "1\n2\n3\n");
}

#[test]
fn a_reader_that_has_gone_stops_the_job() {
    let (reader, writer) = std::io::pipe().unwrap();
    let sink = JsonLines::<u64>::stdout().to(writer);
    let mut writer = sink.writer(&place(1, false, 1), 0).unwrap();
    drop(reader);
    writer.write(1).unwrap();
    assert!(matches!(cause(writer.flush()), ConnectorError::ReaderGone));
}

#[test]
fn a_full_buffer_does_not_wait_for_the_end_of_the_batch() {
    let (reader, writer) = std::io::pipe().unwrap();
    let sink = Csv::<u64>::stdout().to(writer);
    let mut writer = sink.writer(&place(1, false, 1), 0).unwrap();
    drop(reader);
    let failed = (0..1_000_000).find_map(|number| writer.write(number).err());
    assert!(matches!(cause(Err::<(), _>(failed.unwrap())), ConnectorError::ReaderGone));
}
