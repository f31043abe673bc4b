//! Types that have changed: whether their values can be migrated and what becomes of them, against a slow model; and what is
//! said when they cannot.

mod model;
mod types;

use model::{allowed, turn};
use snapring::record::{Datum, DecodeError, Evolution, Record, Schema, Text, Type, from_bytes, to_bytes};
use types::*;

/// Compares an evolution with the model, on some values and on damaged ones.
fn compare(then: &Type, now: &Type, dice: &mut Dice, values: usize) -> bool {
    let evolution = Evolution::between(then, now);
    assert_eq!(evolution.is_ok(), allowed(then, now), "{then} to {now}: {:?}", evolution.err());
    let Ok(evolution) = evolution else { return false };
    for _ in 0..values {
        let (mut old, mut new) = (Vec::new(), vec![9]);
        any_value(dice, then, &mut old);
        evolution.apply(&old, &mut new).unwrap_or_else(|error| panic!("{then} to {now}, {old:?}: {error}"));
        assert_eq!(new.remove(0), 9);
        let datum = Datum::from_bytes(then, &old).unwrap();
        let migrated = Datum::from_bytes(now, &new).unwrap_or_else(|error| panic!("{then} to {now}, {datum}: {error}"));
        assert_eq!(format!("{migrated:?}"), format!("{:?}", turn(&datum, then, now)), "{then} to {now}");
        assert!(!evolution.is_identity() || old == new, "{then} to {now} is no identity");
        compare_damaged(then, &evolution, old, dice);
    }
    true
}

/// What is no value of the old type is an error, and leaves what was there.
fn compare_damaged(then: &Type, evolution: &Evolution, mut old: Vec<u8>, dice: &mut Dice) {
    match (dice.below(3), old.len()) {
        (0, _) => old.push(0),
        (1, len @ 1..) => old.truncate(dice.below(len as u64) as usize),
        (_, len @ 1..) => old[dice.below(len as u64) as usize] ^= 1 << dice.below(8),
        _ => {}
    }
    let mut out = vec![1, 2, 3];
    let (applied, is_value) = (evolution.apply(&old, &mut out), Datum::from_bytes(then, &old));
    // A tree takes memory where the bytes take none, and so it gives up earlier.
    if is_value != Err(DecodeError::Invalid("too many values without bytes")) {
        assert_eq!(applied.is_ok(), is_value.is_ok(), "{then}, {old:?}");
    }
    assert!(out.starts_with(&[1, 2, 3]) && (out.len() == 3 || applied.is_ok()));
}

#[test]
fn every_pair_of_a_grid_of_types_is_as_the_model_says() {
    let boxed = |ty: Type| Box::new(ty);
    let mut grid: Vec<Type> = vec![Type::Text(0), Type::Text(3), Type::Text(8), Type::Tuple(vec![])];
    let plain = [
        Type::U8,
        Type::U16,
        Type::U32,
        Type::U64,
        Type::U128,
        Type::I8,
        Type::I16,
        Type::I32,
        Type::I64,
        Type::I128,
        Type::F32,
        Type::F64,
        Type::Bool,
        Type::Char,
        Type::String,
    ];
    let pairs = [("a", Type::U8), ("b", Type::String), ("c", Type::I64)];
    for ty in &plain {
        grid.push(ty.clone());
        grid.push(Type::Option(boxed(ty.clone())));
    }
    for item in [Type::U8, Type::I64, Type::String, Type::Tuple(vec![]), Type::Option(boxed(Type::U8))] {
        grid.push(Type::List(boxed(item.clone())));
        grid.push(Type::Array(2, boxed(item.clone())));
        grid.push(Type::Array(0, boxed(item.clone())));
        grid.push(Type::Option(boxed(Type::Option(boxed(item.clone())))));
        grid.push(Type::Tuple(vec![item.clone(), Type::U16]));
        grid.push(structure("S", &[("a", item.clone()), ("b", Type::U32)]));
        grid.push(structure("T", &[("b", Type::U64), ("a", item.clone()), ("c", Type::Bool)]));
        grid.push(choice("E", &[("X", &[("0", item.clone())]), ("Y", &[])]));
        grid.push(choice("F", &[("Y", &[]), ("Z", &[("0", Type::U128)]), ("X", &[("n", Type::U8), ("0", item)])]));
    }
    grid.extend([structure("S", &pairs), structure("S", &pairs[..1]), structure("S", &[])]);
    let mut dice = Dice(1);
    let (mut can, mut cannot) = (0, 0);
    for then in &grid {
        for now in &grid {
            *(if compare(then, now, &mut dice, 4) { &mut can } else { &mut cannot }) += 1;
        }
    }
    assert!(can > 250 && cannot > 2000, "{can} pairs fit, {cannot} do not");
}

#[test]
fn types_that_change_at_random_are_as_the_model_says() {
    let (mut can, mut same) = (0, 0);
    for seed in 0..20_000 {
        let mut dice = Dice(seed);
        let then = any_type(&mut dice, 3);
        let now = changed(&mut dice, &then, 3);
        // What comes out of a snapshot is what was put in, so that the types are such as there can be.
        assert_eq!(Schema::decode(&mut Schema::new(now.clone()).to_bytes().as_slice()).unwrap().ty, now);
        can += u32::from(compare(&then, &now, &mut dice, 3));
        same += u32::from(then == now);
    }
    assert!(can > 10_000 && same < 8_000, "{can} could, {same} had not changed");
}

#[test]
fn what_does_not_fit_is_told_by_its_path() {
    let reason = |then: &Type, now: &Type| Evolution::between(then, now).unwrap_err().to_string();
    let leg = |price| structure("Leg", &[("price", price)]);
    let order = |price| structure("Order", &[("legs", Type::List(Box::new(leg(price))))]);
    assert_eq!(reason(&order(Type::U64), &order(Type::U32)), "`legs[].price`: u64 cannot become u32");
    assert_eq!(reason(&order(Type::U64), &order(leg(Type::U8))), "`legs[].price`: u64 cannot become the struct Leg");
    let side = choice("Side", &[("Buy", &[]), ("Sell", &[])]);
    let fewer = choice("Side", &[("Sell", &[])]);
    assert_eq!(reason(&side, &fewer), "its variant `Buy` is no more, and a value may be one");
    let (without, with) = (structure("S", &[]), structure("S", &[("side", side.clone())]));
    let none = "`side`: it is new, and the enum Side has no zero to begin with: make it an Option";
    assert_eq!(reason(&without, &with), none);
    assert!(Evolution::between(&without, &structure("S", &[("side", Type::Option(Box::new(side)))])).is_ok());
    let tuples = [Type::I16, Type::U16].map(|item| Type::Tuple(vec![Type::U8, item]));
    assert_eq!(reason(&tuples[0], &tuples[1]), "`1`: i16 cannot become u16");
    let inner = |ty| choice("E", &[("X", &[("n", ty)])]);
    assert_eq!(reason(&inner(Type::Bool), &inner(Type::U8)), "`::X.n`: bool cannot become u8");
}

#[test]
fn names_of_types_mean_nothing_and_what_only_they_change_stays_as_it_is() {
    let identity = |then: &Type, now: &Type| Evolution::between(then, now).unwrap().is_identity();
    let fields = [("a", Type::Bool), ("b", Type::Text(4))];
    assert!(identity(&structure("Old", &fields), &structure("New", &fields)));
    assert!(!identity(&structure("S", &fields), &structure("S", &[fields[1].clone(), fields[0].clone()])));
    let (two, three) = ([("X", &[][..]), ("Y", &[])], [("X", &[][..]), ("Y", &[]), ("Z", &[])]);
    assert!(identity(&choice("E", &two), &choice("E", &three)), "a variant behind the others");
    assert!(!identity(&choice("E", &two), &choice("E", &[three[0], three[2], three[1]])));
    // The same bytes, but in a table they would lie otherwise.
    let generic = |ty: Type| match ty {
        Type::Enum { name, variants, .. } => Type::Enum { name, variants, body_bytes: None },
        ty => ty,
    };
    assert!(!identity(&choice("E", &two), &generic(choice("E", &two))));
}

/// A list of things without bytes is bounded by nothing but this.
#[test]
fn a_count_alone_makes_nobody_work_for_ever() {
    let units = Type::List(Box::new(Type::Tuple(vec![])));
    let now = Type::List(Box::new(structure("S", &[])));
    let grows = Type::List(Box::new(structure("S", &[("a", Type::U8)])));
    let then = Type::List(Box::new(structure("T", &[])));
    for (then, now) in [(&units, &units), (&then, &now), (&then, &grows)] {
        let evolution = Evolution::between(then, now).unwrap();
        assert!(evolution.apply(&u32::MAX.to_le_bytes(), &mut Vec::new()).is_err());
        evolution.apply(&1000u32.to_le_bytes(), &mut Vec::new()).unwrap();
    }
    let array = Type::Array(u32::MAX, Box::new(Type::Tuple(vec![])));
    assert!(Evolution::between(&array, &units).is_err());
}

#[test]
fn typed_values_come_out_as_one_would_write_them() {
    mod then {
        #[derive(snapring::Record)]
        pub struct Trade {
            pub id: u32,
            pub symbol: snapring::Text<4>,
            pub side: Side,
            pub prices: [f32; 2],
            pub gone: String,
        }
        #[derive(snapring::Record)]
        pub enum Side {
            Buy,
            Sell(u8),
        }
    }
    #[derive(Record, Debug, PartialEq)]
    struct Deal {
        side: Option<Direction>,
        note: String,
        symbol: String,
        prices: Vec<f64>,
        id: i64,
        venue: Text<3>,
    }
    #[derive(Record, Debug, PartialEq)]
    enum Direction {
        Sell(u16),
        Short,
        Buy,
    }
    let old = then::Trade {
        id: 7,
        symbol: "SNAP".parse().unwrap(),
        side: then::Side::Sell(3),
        prices: [1.5, -2.0],
        gone: "x".into(),
    };
    let mut new = Vec::new();
    let evolution = Evolution::to::<Deal>(&then::Trade::schema().ty).unwrap();
    evolution.apply(&to_bytes(&old), &mut new).unwrap();
    let expected = Deal {
        side: Some(Direction::Sell(3)),
        note: String::new(),
        symbol: "SNAP".into(),
        prices: vec![1.5, -2.0],
        id: 7,
        venue: Text::EMPTY,
    };
    assert_eq!(from_bytes::<Deal>(&new).unwrap(), expected);
    let old = then::Trade { side: then::Side::Buy, ..old };
    new.clear();
    evolution.apply(&to_bytes(&old), &mut new).unwrap();
    assert_eq!(from_bytes::<Deal>(&new).unwrap(), Deal { side: Some(Direction::Buy), ..expected });
    let _ = Direction::Short;
}
