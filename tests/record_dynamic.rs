//! Values decoded by their schema alone: they say what the typed values say, whatever the shape.

mod record_shapes;

use proptest::prelude::*;
use record_shapes::*;
use snapring::record::text::write_json;
use snapring::record::{Datum, DecodeError, Record, Scalar, Schema, Text, to_bytes};
use std::fmt::Debug;

fn agrees<T: Record + Debug>(value: &T) {
    // As from a snapshot: nothing of the type is left but bytes.
    let (schema, bytes) = (T::schema().to_bytes(), to_bytes(value));
    let schema = Schema::decode(&mut schema.as_slice()).unwrap();
    let datum = Datum::from_bytes(&schema.ty, &bytes).unwrap();
    assert_eq!(datum.to_string(), format!("{value:?}"));
    let mut json = Vec::new();
    write_json(&schema, &mut bytes.as_slice(), &mut json).unwrap();
    assert_eq!(datum.to_json(), String::from_utf8(json).unwrap());
    let longer = [bytes.as_slice(), &[0]].concat();
    assert_eq!(Datum::from_bytes(&schema.ty, &longer).err(), Some(DecodeError::Trailing { bytes: 1 }));
    let mut rest = longer.as_slice();
    let first = Datum::decode(&schema.ty, &mut rest).unwrap();
    assert_eq!((first.to_string(), rest), (datum.to_string(), [0].as_slice()));
    for end in 0..bytes.len() {
        assert!(Datum::from_bytes(&schema.ty, &bytes[..end]).is_err(), "cut after {end} bytes");
    }
}

fn all_agree<T: Record + Debug>(values: &[T]) {
    values.iter().for_each(agrees);
}

#[test]
fn every_shape_agrees() {
    for_every_shape!(all_agree);
    agrees(&[f64::NAN, f64::INFINITY, -0.0, 1e300]);
    agrees(&Ok::<u32, String>(7));
    agrees(&Err::<u32, _>("a\n\"b\"".to_owned()));
}

fn with<T: Record, R>(value: &T, look: impl FnOnce(&Datum<'_>) -> R) -> R {
    look(&Datum::from_bytes(&T::schema().ty, &to_bytes(value)).unwrap())
}

#[test]
fn fields_are_found_by_name() {
    let field = |datum: &Datum<'_>, name: &str| datum.field(name).map(Datum::to_string);
    with(&flat(), |flat| {
        assert_eq!(field(flat, "tag"), Some("'🦀'".into()));
        assert_eq!(flat.field("at").and_then(|at| field(at, "x")), Some("0.1".into()));
        assert_eq!(field(flat, "none"), None);
    });
    with(&State::Open { qty: 9, side: Side::Sell }, |state| assert_eq!(field(state, "qty"), Some("9".into())));
    with(&State::Held(3), |state| {
        assert_eq!((field(state, "0"), field(state, "qty")), (Some("3".into()), None));
    });
    // Through an option and what holds nothing else.
    with(&Some(Either::<Point, u8>::Left(Point { x: 1.5, y: 2.0 })), |some| {
        assert_eq!(field(some, "y"), Some("2.0".into()));
    });
    with(&None::<Point>, |none| assert_eq!(field(none, "y"), None));
    with(&(1u8, 2u8), |pair| assert_eq!(field(pair, "0"), None, "a tuple has no names"));
}

fn integer<T: Record>(value: &T) -> Option<i128> {
    with(value, |datum| datum.integer())
}

#[test]
fn integers_of_every_width_are_numbers() {
    assert_eq!(integer(&u8::MAX), Some(255));
    assert_eq!(integer(&i64::MIN), Some(i128::from(i64::MIN)));
    assert_eq!(integer(&i128::MIN), Some(i128::MIN));
    assert_eq!(integer(&(i128::MAX as u128)), Some(i128::MAX));
    assert_eq!(integer(&u128::MAX), None);
    assert_eq!(integer(&Cents(-4)), Some(-4));
    assert_eq!(integer(&1.0f64), None);
    assert_eq!(integer(&Some(1u8)), None);
}

#[test]
fn texts_are_borrowed_from_the_bytes() {
    let (schema, bytes) = (<(String, Text<4>)>::schema(), to_bytes(&("long".to_owned(), Text::<4>::truncated("abc"))));
    let Ok(Datum::Tuple(items)) = Datum::from_bytes(&schema.ty, &bytes) else { panic!("a pair") };
    for (item, expected) in items.iter().zip(["long", "abc"]) {
        let Datum::Plain(Scalar::Text(text)) = item else { panic!("a text") };
        assert!(*text == expected && bytes.as_ptr_range().contains(&text.as_ptr()));
    }
}

proptest! {
    #[test]
    fn any_values_agree(
        numbers in any::<(u8, i16, u32, i64, u128)>(), floats in any::<(f32, f64)>(), text in any::<String>(),
        mark in any::<Option<char>>(), list in any::<Vec<(bool, Option<String>)>>(), qty in any::<u32>(),
    ) {
        agrees(&numbers);
        agrees(&floats);
        agrees(&Wrapper { items: list, last: Some(text.clone()) });
        agrees(&vec![State::Open { qty, side: Side::Buy }, State::Closed]);
        agrees(&(mark, Either::<Text<9>, String>::Right { b: text.clone() }, Either::<_, u8>::Left(Text::<9>::truncated(&text))));
    }
}
