//! The text bridge: what records look like as CSV and JSON, and how cells become records.

mod record_shapes;

use proptest::prelude::*;
use record_shapes::*;
use snapring::record::text::{CellError, Columns, ColumnsError, Row, column_names, write_csv, write_json};
use snapring::record::{Record, Text, from_bytes, to_bytes};

fn json<T: Record>(record: &T) -> String {
    let (bytes, mut out) = (to_bytes(record), Vec::new());
    let mut input = bytes.as_slice();
    write_json(&T::schema(), &mut input, &mut out).unwrap();
    assert!(input.is_empty());
    String::from_utf8(out).unwrap()
}

fn csv<T: Record>(record: &T) -> String {
    let (bytes, mut out) = (to_bytes(record), Vec::new());
    let mut input = bytes.as_slice();
    write_csv(&T::schema(), &mut input, &mut out).unwrap();
    assert!(input.is_empty());
    String::from_utf8(out).unwrap()
}

#[test]
fn json_of_every_kind() {
    assert_eq!(json(&u64::MAX), "18446744073709551615");
    assert_eq!(json(&i64::MIN), "-9223372036854775808");
    assert_eq!(json(&u128::MAX), "\"340282366920938463463374607431768211455\"");
    assert_eq!(json(&i128::MIN), "\"-170141183460469231731687303715884105728\"");
    assert_eq!(json(&[1.5, -0.0, 1e300, f64::MIN_POSITIVE]), "[1.5,-0.0,1e300,2.2250738585072014e-308]");
    assert_eq!(json(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY]), "[\"NaN\",\"Infinity\",\"-Infinity\"]");
    assert_eq!(json(&(f32::NAN, 0.1f32)), "[\"NaN\",0.1]");
    assert_eq!(json(&"a\"b\\c\n\r\t\u{1}\u{1f}é🦀/".to_string()), "\"a\\\"b\\\\c\\n\\r\\t\\u0001\\u001fé🦀/\"");
    assert_eq!(json(&('"', true, ())), "[\"\\\"\",true,[]]");
    assert_eq!(json(&(Some(1u8), None::<u8>, None::<String>)), "[1,null,null]");
    assert_eq!(json(&Unit), "{}");
    assert_eq!(json(&Cents(-5)), "-5");
    assert_eq!(
        json(&nested(&["a"])),
        "{\"flat\":{\"id\":18446744073709551614,\"at\":{\"x\":0.1,\"y\":-1e300},\"ok\":true,\"tag\":\"🦀\",\
         \"code\":\"JFK\"},\"names\":[\"a\"],\"pairs\":[[1,\"x\"],[2,null]],\"type\":-3,\"grid\":[[1,2],[3,4],[5,65535]]}"
    );
    assert_eq!(
        json(&states()),
        "[{\"Open\":{\"qty\":9,\"side\":\"Sell\"}},{\"Held\":18446744073709551615},\"Closed\"]"
    );
    assert_eq!(
        json(&events()[3..].to_vec()),
        "[{\"Moved\":[{\"x\":1.0,\"y\":2.0},null]},{\"Moved\":[{\"x\":1.0,\"y\":2.0},{\"note\":\"n\"}]}]"
    );
}

#[test]
fn csv_of_every_kind() {
    assert_eq!(csv(&("plain".to_string(), 1u64, -2i8, 0.5f64, true, 'c')), "plain,1,-2,0.5,true,c");
    assert_eq!(
        csv(&("a,b".to_string(), "say \"hi\"".to_string(), "two\nlines".to_string())),
        "\"a,b\",\"say \"\"hi\"\"\",\"two\nlines\""
    );
    assert_eq!(csv(&('"', ',', 1u128)), "\"\"\"\",\",\",1");
    assert_eq!(csv(&(None::<i64>, Some(3i64), Some(String::new()))), ",3,");
    assert_eq!(csv(&String::new()), "\"\"", "not an empty line");
    assert_eq!(csv(&None::<u8>), "\"\"");
    assert_eq!(csv(&(f64::NAN, f32::NEG_INFINITY)), "NaN,-inf");
    assert_eq!(csv(&(Side::Sell, State::Closed, State::Held(1))), "Sell,Closed,\"{\"\"Held\"\":1}\"");
    assert_eq!(csv(&(vec![1u8, 2], vec![3u8], Cents(7))), "\"[1,2]\",[3],7");
    assert_eq!(csv(&flat()), "18446744073709551614,\"{\"\"x\"\":0.1,\"\"y\"\":-1e300}\",true,🦀,JFK");
    assert_eq!(column_names(&Flat::schema()), ["id", "at", "ok", "tag", "code"]);
    assert_eq!(column_names(&<(u8, u8)>::schema()), ["0", "1"]);
    assert_eq!(column_names(&String::schema()), ["value"]);
}

#[derive(Record, Clone, Debug, PartialEq)]
struct Line {
    id: u64,
    delay: Option<i32>,
    name: String,
    code: Option<Text<3>>,
    side: Side,
    fee: Cents,
    ok: bool,
    mark: Option<char>,
    rate: f64,
    note: Option<String>,
}

/// A row as a CSV reader leaves it.
fn cells(row: &[&str]) -> (String, Vec<usize>) {
    let ends = row.iter().scan(0, |end, cell| {
        *end += cell.len();
        Some(*end)
    });
    (row.concat(), ends.collect())
}

fn parse<T: Record>(columns: &Columns, row: &[&str]) -> Result<T, CellError> {
    let (text, ends) = cells(row);
    let mut bytes = vec![9];
    let parsed = columns.parse(Row::new(text.as_bytes(), &ends), &mut bytes);
    assert!(parsed.is_ok() || bytes == [9], "nothing is left behind by a bad row");
    parsed.map(|()| from_bytes(&bytes[1..]).unwrap())
}

fn line() -> Line {
    Line {
        id: 7,
        delay: Some(-3),
        name: "a,\"b\"".into(),
        code: Some(Text::truncated("JFK")),
        side: Side::Sell,
        fee: Cents(12),
        ok: true,
        mark: Some('é'),
        rate: 0.1,
        note: Some("n".into()),
    }
}

const GOOD: [&str; 10] = ["7", "-3", "a,\"b\"", "JFK", "Sell", "12", "true", "é", "0.1", "n"];

#[test]
fn cells_become_a_record() {
    let columns = Columns::in_order(&Line::schema()).unwrap().na("NA");
    assert_eq!(parse::<Line>(&columns, &GOOD), Ok(line()));
    let none = ["7", "NA", "NA", "", "Buy", " 12 ", "0", "NA", "-inf", ""];
    let expected = Line {
        delay: None,
        name: "NA".into(),
        code: None,
        side: Side::Buy,
        ok: false,
        mark: None,
        rate: f64::NEG_INFINITY,
        note: None,
        ..line()
    };
    assert_eq!(parse::<Line>(&columns, &none), Ok(expected));
}

#[test]
fn a_header_may_be_in_any_order_and_have_more() {
    #[derive(Record, Debug, PartialEq)]
    struct Trip {
        from: String,
        to: String,
    }
    let columns = Columns::new(&Trip::schema(), &["to", "by", " from "]).unwrap();
    assert_eq!(parse::<Trip>(&columns, &["IAH", "car", "EWR"]), Ok(Trip { from: "EWR".into(), to: "IAH".into() }));
    let error = Columns::new(&Trip::schema(), &["by", "To"]).unwrap_err();
    assert_eq!(error.to_string(), "no column `from`, `to`; there are `by`, `To`");
    let twice = Columns::new(&Trip::schema(), &["to", "from", "to"]).unwrap_err();
    assert_eq!(twice, ColumnsError::Twice("to".into()));
    let pairs = Columns::new(&<(String, u8)>::schema(), &["any", "name"]).unwrap();
    assert_eq!(parse::<(String, u8)>(&pairs, &["x", "1"]), Ok(("x".into(), 1)));
    assert!(Columns::new(&<(String, u8)>::schema(), &["one"]).is_err());
    let single = Columns::in_order(&Cents::schema()).unwrap();
    assert_eq!(parse::<Cents>(&single, &["5"]), Ok(Cents(5)));
    let error = Columns::in_order(&nested(&[]).schema_of()).unwrap_err().to_string();
    assert!(error.starts_with("field `flat` is Flat {") && error.contains("try_map"), "{error}");
}

trait SchemaOf: Record {
    fn schema_of(&self) -> snapring::record::Schema {
        Self::schema()
    }
}

impl<T: Record> SchemaOf for T {}

#[test]
fn a_bad_cell_is_named() {
    let columns = Columns::in_order(&Line::schema()).unwrap().na("NA");
    let bad = [
        (0, "-1", "column `id`: \"-1\" is not u64"),
        (0, "", "column `id`: \"\" is not u64"),
        (0, "NA", "column `id`: \"NA\" is not u64"),
        (0, "18446744073709551616", "column `id`: \"18446744073709551616\" is not u64"),
        (1, "3.5", "column `delay`: \"3.5\" is not Option<i32>"),
        (3, "KJFK", "column `code`: \"KJFK\" is not Option<Text<3>>"),
        (4, "sell", "column `side`: \"sell\" is not Side { Buy, Sell }"),
        (6, "yes", "column `ok`: \"yes\" is not bool"),
        (7, "ab", "column `mark`: \"ab\" is not Option<char>"),
        (8, "1,5", "column `rate`: \"1,5\" is not f64"),
    ];
    for (cell, text, expected) in bad {
        let mut row = GOOD;
        row[cell] = text;
        assert_eq!(parse::<Line>(&columns, &row).unwrap_err().to_string(), expected);
    }
    let error = parse::<Line>(&columns, &GOOD[1..]).unwrap_err();
    assert_eq!(error, CellError::Count { found: 9, expected: 10 });
    let long = "é".repeat(1000);
    let shown = parse::<(u8,)>(&Columns::in_order(&<(u8,)>::schema()).unwrap(), &[&long]).unwrap_err().to_string();
    assert!(shown.contains('…') && shown.len() < 200, "{shown}");
    let mut out = Vec::new();
    let text = Columns::in_order(&String::schema()).unwrap();
    assert!(text.parse(Row::new(&[0xff], &[1]), &mut out).is_err(), "not UTF-8");
    assert!(text.parse(Row::new(b"a", &[9]), &mut out).is_ok_and(|()| out == [0; 4]), "an end beyond the text");
}

/// Cells of a CSV text of one row.
fn read(csv: &str) -> Vec<String> {
    let (mut cells, mut chars, mut quoted) = (vec![String::new()], csv.chars().peekable(), false);
    while let Some(char) = chars.next() {
        match char {
            '"' if quoted && chars.next_if_eq(&'"').is_some() => cells.last_mut().unwrap().push('"'),
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            char => cells.last_mut().unwrap().push(char),
        }
    }
    cells
}

proptest! {
    #[test]
    fn a_row_reads_back(
        id in any::<u64>(), delay in any::<Option<i32>>(), name in any::<String>(), fee in any::<i64>(), ok in any::<bool>(),
        mark in any::<Option<char>>(), rate in any::<f64>(), note in any::<Option<String>>(),
    ) {
        let note = note.filter(|note| !note.is_empty());
        let line = Line { id, delay, name, fee: Cents(fee), ok, mark, rate, note, ..line() };
        let text = csv(&line);
        let cells = read(&text);
        let cells: Vec<_> = cells.iter().map(String::as_str).collect();
        prop_assert_eq!(parse::<Line>(&Columns::in_order(&Line::schema()).unwrap(), &cells), Ok(line));
    }
}
