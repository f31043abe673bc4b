//! CSV: headers, cells, quotes, and each way in which a row can be wrong.

use super::{all, cause, drain, file, gzip};
use crate::connector::Csv;
use crate::error::ConnectorError;
use crate::operator::{Read, Reader, Source};
use crate::record::Record;
use proptest::prelude::*;
use tempfile::TempDir;

#[derive(Record, Clone, Debug, PartialEq)]
struct Flight {
    dest: String,
    delay: Option<i64>,
}

fn flight(dest: &str, delay: Option<i64>) -> Flight {
    Flight { dest: dest.to_owned(), delay }
}

fn csv(folder: &TempDir, text: impl AsRef<[u8]>) -> Csv<Flight> {
    Csv::open(file(folder, "flights.csv", text.as_ref())).unwrap().na("NA")
}

#[test]
fn columns_are_found_by_name_in_each_file() {
    let folder = TempDir::new().unwrap();
    let one =
        file(&folder, "one", b"\xef\xbb\xbforigin,delay,dest\r\nJFK,3,BOS\r\n\r\nEWR,NA,\"A, \"\"B\"\"\"\r\nLGA,,X");
    let two = file(&folder, "two", &gzip(b"dest,delay\nIAH,-7\n"));
    let three = file(&folder, "three", b"dest,delay\n");
    let flights = Csv::<Flight>::open_all([one, two, three]).unwrap().na("NA");
    let expected = [flight("BOS", Some(3)), flight("A, \"B\"", None), flight("X", None), flight("IAH", Some(-7))];
    assert_eq!(all(&flights).unwrap(), expected);
    for split_bytes in 1..80 {
        let flights = Csv::<Flight>::open(folder.path().join("one")).unwrap().na("NA").split_bytes(split_bytes);
        assert_eq!(all(&flights).unwrap(), expected[..3], "{split_bytes}");
    }
}

#[test]
fn other_delimiters_and_single_columns() {
    let folder = TempDir::new().unwrap();
    let semicolons = csv(&folder, "delay;dest\n1;a,b\n").delimiter(b';');
    assert_eq!(all(&semicolons).unwrap(), [flight("a,b", Some(1))]);
    let numbers = Csv::<u64>::open(file(&folder, "numbers", b"n\n1\n2\n")).unwrap();
    assert_eq!(all(&numbers).unwrap(), [1, 2]);
}

#[test]
fn a_wrong_header_is_refused_before_the_job_begins() {
    let folder = TempDir::new().unwrap();
    for (text, why) in [
        (&b"dest,late\nx,1\n"[..], "delay"),
        (b"", "no first line"),
        (b"\n\n", "no first line"),
        (b"dest,delay,\xff\n", "UTF-8"),
        (b"dest,delay,delay\n", "two columns"),
    ] {
        let flights = csv(&folder, text);
        match flights.splits() {
            Err(error @ ConnectorError::Header { .. }) => assert!(error.to_string().contains(why), "{error}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_malformed_row_is_named_by_file_and_line() {
    let folder = TempDir::new().unwrap();
    for (row, why) in [
        ("x,soon", "delay"),
        ("x", "1 cells"),
        ("x,1,2", "3 cells"),
        ("\"x,1", "`multiline`"),
        ("x\r,1", "carriage return"),
        ("x,\"1\ny\",2", "`multiline`"),
    ] {
        let text = format!("dest,delay\na,1\nb,2\n{row}\nc,3\n");
        for (flights, split_bytes) in
            [(csv(&folder, &text), 4), (csv(&folder, &text), 1000), (csv(&folder, gzip(text.as_bytes())), 4)]
        {
            match cause(all(&flights.split_bytes(split_bytes))) {
                error @ ConnectorError::Malformed { line: 4, .. } => {
                    assert!(error.to_string().contains("flights.csv:4: "), "{error}");
                    assert!(error.to_string().contains(why), "{error}");
                }
                other => panic!("{row}: {other:?}"),
            }
        }
    }
    let broken = csv(&folder, b"dest,delay\n\xff,1\n");
    assert!(matches!(cause(all(&broken)), ConnectorError::Malformed { line: 2, .. }));
}

#[test]
fn quoted_line_ends_are_read_where_splitting_is_off() {
    let folder = TempDir::new().unwrap();
    let text = "\"dest\",delay\n\"a\nb\r\n\n\"\"c\",1\nd,2\n\"e\n\",\"\"";
    for text in [text.as_bytes().to_vec(), gzip(text.as_bytes())] {
        let flights = csv(&folder, &text).split_bytes(3).multiline().split_bytes(3);
        let splits = flights.splits().unwrap();
        assert_eq!(splits.len(), 1);
        let expected = [flight("a\nb\r\n\n\"c", Some(1)), flight("d", Some(2)), flight("e\n", None)];
        assert_eq!(all(&flights).unwrap(), expected);
        let mut reader = flights.open(&splits[0], 0).unwrap();
        for read in 0..=expected.len() {
            assert_eq!(drain(&flights, &splits[0], reader.offset(), 1).unwrap(), expected[read..]);
            reader.read(1, &mut Vec::new()).unwrap();
        }
    }
    let unclosed = csv(&folder, "dest,delay\na,1\n\"b,2\nc,3\n").multiline();
    match cause(all(&unclosed)) {
        error @ ConnectorError::Malformed { line: 3, .. } => assert!(error.to_string().contains("never closed")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_quoted_cell_without_end_does_not_fill_the_memory() {
    let folder = TempDir::new().unwrap();
    let text = [&b"dest,delay\n\"a\n"[..], &b"0123456789abcdef\n".repeat(1 << 20)].concat();
    let error = cause(all(&csv(&folder, text).multiline()));
    assert!(matches!(error, ConnectorError::Malformed { line: 2, .. }), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_bytes_give_rows_or_an_error(
        text in proptest::collection::vec(prop::sample::select(&b"a1,\"\"\n\n\r\xff"[..]), 0..60),
        split_bytes in 1u64..40,
        multiline in any::<bool>(),
    ) {
        let folder = TempDir::new().unwrap();
        let flights = csv(&folder, [b"dest,delay\n", &text[..]].concat()).split_bytes(split_bytes);
        let flights = if multiline { flights.multiline() } else { flights };
        let _ = all(&flights);
    }

    #[test]
    fn every_row_belongs_to_one_split_and_every_offset_is_one_to_go_on_from(
        rows in proptest::collection::vec(("[a-z,\"]{0,6}", proptest::option::of(any::<i64>())), 0..20),
        split_bytes in 1u64..120,
        compressed in any::<bool>(),
    ) {
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let cell = |delay: &Option<i64>| delay.map_or("NA".to_owned(), |delay| delay.to_string());
        let mut text = "delay,other,dest\n".to_owned();
        rows.iter().for_each(|(dest, delay)| text += &format!("{},x,{}\n", cell(delay), quoted(dest)));
        let folder = TempDir::new().unwrap();
        let bytes = if compressed { gzip(text.as_bytes()) } else { text.into_bytes() };
        let flights = csv(&folder, bytes).split_bytes(split_bytes);
        let expected: Vec<_> = rows.iter().map(|(dest, delay)| flight(dest, *delay)).collect();
        prop_assert_eq!(all(&flights).unwrap(), expected);
        for split in flights.splits().unwrap() {
            let whole = drain(&flights, &split, 0, 100).unwrap();
            let mut reader = flights.open(&split, 0).unwrap();
            for read in 0.. {
                prop_assert_eq!(&drain(&flights, &split, reader.offset(), 2).unwrap()[..], &whole[read.min(whole.len())..]);
                if reader.read(1, &mut Vec::new()).unwrap() == Read::Done {
                    break;
                }
            }
        }
    }
}
