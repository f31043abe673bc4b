//! Every shape of record goes through its encoding and back, and hostile bytes get an error, whatever the shape.

mod record_shapes;

use proptest::prelude::*;
use record_shapes::*;
use snapring::record::{
    DecodeError, Record, Schema, Text, ZERO_WIDTH_MAX, decode_batch, decode_batch_into, encode_batch, from_bytes,
    to_bytes,
};
use std::fmt::Debug;

/// What holds for every value of every type.
fn there_and_back<T: Record + PartialEq + Debug>(value: &T) {
    let bytes = to_bytes(value);
    assert_eq!(&from_bytes::<T>(&bytes).unwrap(), value);
    assert_eq!(T::schema().ty.width(), T::WIDTH, "{}", T::schema());
    let Some(width) = T::WIDTH else {
        assert!(!bytes.is_empty(), "counts are bounded by the bytes there are");
        return;
    };
    assert_eq!(bytes.len(), width);
    let mut stored = vec![0xff; width];
    value.store(&mut stored);
    assert_eq!(stored, bytes, "store writes every byte");
    assert_eq!(&T::load(&bytes).unwrap(), value);
    assert_eq!(T::load(&[bytes, vec![0]].concat()).err(), Some(DecodeError::Short));
}

fn into_used<T: Record + PartialEq + Debug>(values: &[T]) {
    for value in values {
        for used in values {
            let mut used: T = from_bytes(&to_bytes(used)).unwrap();
            used.decode_into(&mut to_bytes(value).as_slice()).unwrap();
            assert_eq!(&used, value);
        }
    }
    let mut bytes = Vec::new();
    encode_batch(values, &mut bytes);
    assert_eq!(decode_batch::<T>(&bytes).unwrap(), values);
}

fn hold<T: Record + PartialEq + Debug>(values: &[T]) {
    values.iter().for_each(there_and_back);
    into_used(values);
    let schema = T::schema();
    assert_eq!(Schema::decode(&mut schema.to_bytes().as_slice()).unwrap(), schema, "{schema}");
}

#[test]
fn every_shape_goes_there_and_back() {
    for_every_shape!(hold);
}

#[test]
fn the_encoding_is_what_the_docs_say() {
    let order = Flat { id: 0x0102, at: Point { x: 1.5, y: -2.0 }, ok: true, tag: 'é', code: "ab".parse().unwrap() };
    let mut expected = 0x0102u64.to_le_bytes().to_vec();
    expected.extend(1.5f64.to_le_bytes());
    expected.extend((-2.0f64).to_le_bytes());
    expected.extend([1, 0xe9, 0, 0, 0, 2, 0, b'a', b'b', 0, 0]);
    assert_eq!(to_bytes(&order), expected);
    assert_eq!(Flat::WIDTH, Some(expected.len()));
    assert_eq!(to_bytes(&("hé".to_string(), vec![1u16])), [3, 0, 0, 0, b'h', 0xc3, 0xa9, 1, 0, 0, 0, 1, 0]);
    assert_eq!(to_bytes(&None::<u32>), [0; 5]);
    assert_eq!(to_bytes(&Some(9u32)), [1, 9, 0, 0, 0]);
    assert_eq!(to_bytes(&None::<String>), [0]);
    assert_eq!(to_bytes(&State::Closed), [2, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(to_bytes(&State::Held(7)), [1, 0, 7, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(to_bytes(&State::Open { qty: 1, side: Side::Sell }), [0, 0, 1, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(to_bytes(&Event::Closed), [1, 0], "variable: nothing behind the index");
}

#[test]
fn schemas_name_types_and_offsets() {
    let show = |schema: Schema| schema.to_string();
    assert_eq!(
        show(Nested::schema()),
        "Nested { flat: Flat { id: u64, at: Point { x: f64, y: f64 }, ok: bool, tag: char, code: Text<4> }, \
         names: Vec<String>, pairs: Vec<(u8, Option<String>)>, type: Option<i8>, grid: [[u16; 2]; 3] }"
    );
    assert_eq!(show(State::schema()), "State { Open { qty: u32, side: Side { Buy, Sell } }, Held(u64), Closed }");
    assert_eq!(show(Unit::schema()), "Unit");
    assert_eq!(show(<((),)>::schema()), "((),)");
    let snapring::record::Type::Struct(_, fields) = Nested::schema().ty else { panic!("not a struct") };
    let offsets: Vec<_> = fields.iter().map(|field| field.offset_bytes).collect();
    assert_eq!(offsets, [Some(0), Some(35), None, None, None]);
    let snapring::record::Type::Enum { variants, body_bytes, .. } = State::schema().ty else { panic!("not an enum") };
    assert_eq!(variants[0].fields[1].offset_bytes, Some(6), "counted from the index");
    assert_eq!(body_bytes, Some(8));
    assert_ne!(Point::schema(), <(f64, f64)>::schema());
}

#[test]
fn one_value_has_one_encoding() {
    assert!(from_bytes::<bool>(&[2]).is_err());
    assert!(from_bytes::<char>(&0xd800u32.to_le_bytes()).is_err());
    assert!(from_bytes::<Option<u8>>(&[0, 1]).is_err(), "None with something in it");
    assert!(from_bytes::<Option<u8>>(&[2, 0]).is_err());
    assert!(from_bytes::<Text<2>>(&[1, 0, b'a', b'b']).is_err(), "something behind the text");
    assert!(from_bytes::<Text<2>>(&[3, 0, b'a', b'b']).is_err(), "longer than its limit");
    assert!(from_bytes::<Text<2>>(&[1, 0, 0xff, 0]).is_err(), "not UTF-8");
    assert_eq!(from_bytes::<Text<2>>(&[2, 0, 0xc3, 0xa9]).unwrap(), "\u{e9}");
    for unused in 3..22 {
        let mut bytes = [&[1, 0, b'a'][..], &[0; 19]].concat();
        assert_eq!(from_bytes::<Text<20>>(&bytes).unwrap(), "a");
        bytes[unused] = 1;
        assert!(from_bytes::<Text<20>>(&bytes).is_err(), "unused byte {unused}");
    }
    for wrong in 0..5 {
        let mut bytes = [1; 5];
        assert_eq!(from_bytes::<[bool; 5]>(&bytes).unwrap(), [true; 5]);
        bytes[wrong] = 2;
        assert!(from_bytes::<[bool; 5]>(&bytes).is_err(), "item {wrong}");
    }
    assert!(from_bytes::<State>(&[2, 0, 0, 0, 0, 0, 0, 0, 1, 0]).is_err(), "something in an empty variant");
    assert_eq!(
        from_bytes::<Side>(&[2, 0]),
        Err(DecodeError::Invalid("no variant of `Side` has this index")),
        "errors name the enum"
    );
    assert_eq!(from_bytes::<u8>(&[1, 2, 3]), Err(DecodeError::Trailing { bytes: 2 }));
}

#[test]
fn counts_are_not_believed() {
    let huge = u32::MAX.to_le_bytes();
    assert_eq!(decode_batch::<u64>(&huge), Err(DecodeError::Short));
    assert_eq!(decode_batch::<String>(&huge), Err(DecodeError::Short));
    assert_eq!(from_bytes::<String>(&huge), Err(DecodeError::Short));
    assert!(decode_batch::<()>(&huge).is_err());
    assert_eq!(decode_batch::<()>(&(ZERO_WIDTH_MAX as u32).to_le_bytes()).unwrap().len(), ZERO_WIDTH_MAX);
    // Large in memory, small when encoded: the room is taken as the items are read.
    let mut bytes = 1_000_000u32.to_le_bytes().to_vec();
    bytes.resize(1_000_004, 0xee);
    assert!(decode_batch::<Bulky<u8>>(&bytes).is_err());
}

#[test]
#[should_panic(expected = "items without bytes")]
fn a_list_that_could_not_be_read_is_not_written() {
    encode_batch(&[(); ZERO_WIDTH_MAX + 1], &mut Vec::new());
}

#[test]
fn batches_reuse_what_is_there() {
    let mut batch = vec!["a long enough text to be kept".to_string(), "b".to_string()];
    let (room, items) = (batch[0].as_ptr(), batch.as_ptr());
    let mut bytes = Vec::new();
    encode_batch(&["short".to_string()], &mut bytes);
    bytes.push(9);
    let mut input = bytes.as_slice();
    decode_batch_into(&mut batch, &mut input).unwrap();
    assert_eq!((batch.as_slice(), input), (["short".to_string()].as_slice(), [9u8].as_slice()));
    assert_eq!((batch[0].as_ptr(), batch.as_ptr()), (room, items));
}

#[test]
fn floats_keep_their_bits() {
    for bits in [0x7ff8_0000_0000_0001u64, 0x8000_0000_0000_0000, 0xfff0_0000_0000_0000] {
        assert_eq!(from_bytes::<f64>(&to_bytes(&f64::from_bits(bits))).unwrap().to_bits(), bits);
    }
}

#[test]
fn text_is_a_str_that_knows_its_limit() {
    let text: Text<6> = "Zürich".parse::<Text<7>>().unwrap_err_or_truncated();
    assert_eq!(text, "Züric");
    assert_eq!(Text::<2>::truncated("aé"), "a", "no half characters");
    assert!(Text::<4>::try_from("abc").unwrap() < Text::try_from("abd").unwrap());
    assert!(Text::<4>::try_from("ab").unwrap() < Text::try_from("abc").unwrap());
    assert_eq!(
        format!("[{:>5}] {:?}", Text::<4>::try_from("ab").unwrap(), Text::<4>::try_from("a\"").unwrap()),
        "[   ab] \"a\\\"\""
    );
    assert_eq!(
        "abcde".parse::<Text<4>>().unwrap_err().to_string(),
        "text of 5 bytes does not fit Text<4>, which holds at most 4"
    );
    assert_eq!(Text::<0>::default().len(), 0);
}

trait OrTruncated {
    fn unwrap_err_or_truncated(self) -> Text<6>;
}

impl OrTruncated for Result<Text<7>, snapring::record::TextTooLong> {
    fn unwrap_err_or_truncated(self) -> Text<6> {
        Text::truncated(&self.unwrap())
    }
}

proptest! {
    #[test]
    fn any_values(
        numbers in any::<(u8, i16, u32, i64, u128, f32, f64)>(),
        text in any::<String>(),
        lists in any::<Vec<Option<Vec<Option<i32>>>>>(),
        chars in any::<[char; 3]>(),
    ) {
        let bits = |(a, b, c, d, e, f, g): (u8, i16, u32, i64, u128, f32, f64)| (a, b, c, d, e, f.to_bits(), g.to_bits());
        prop_assert_eq!(bits(from_bytes(&to_bytes(&numbers)).unwrap()), bits(numbers));
        let record = (text.clone(), lists, chars, Text::<16>::truncated(&text));
        there_and_back(&record);
        there_and_back(&Wrapper { items: vec![record.0.clone()], last: Some(record) });
    }
}
