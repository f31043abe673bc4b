//! Records of every shape, for the tests of records.

#![allow(dead_code, reason = "each test takes what it needs")]

use snapring::record::{Record, Text};

#[derive(Record, Clone, Debug, PartialEq)]
pub struct Unit;

#[derive(Record, Clone, Debug, PartialEq)]
pub struct Point {
    pub x: f64,
    pub y: f64,
}

#[derive(Record, Clone, Debug, PartialEq)]
pub struct Cents(pub i64);

#[derive(Record, Clone, Debug, PartialEq)]
pub struct Flat {
    pub id: u64,
    pub at: Point,
    pub ok: bool,
    pub tag: char,
    pub code: Text<4>,
}

#[derive(Record, Clone, Debug, PartialEq)]
pub struct Nested {
    pub flat: Flat,
    pub names: Vec<String>,
    pub pairs: Vec<(u8, Option<String>)>,
    pub r#type: Option<i8>,
    pub grid: [[u16; 2]; 3],
}

#[derive(Record, Clone, Copy, Debug, PartialEq)]
pub enum Side {
    Buy,
    Sell,
}

/// All fields fixed: kept in place.
#[derive(Record, Clone, Debug, PartialEq)]
pub enum State {
    Open { qty: u32, side: Side },
    Held(u64),
    Closed,
}

/// One field of variable length.
#[derive(Record, Clone, Debug, PartialEq)]
pub enum Event {
    Opened { by: String, legs: Vec<State> },
    Closed,
    Moved(Point, Option<Box<Event2>>),
}

#[derive(Record, Clone, Debug, PartialEq)]
pub struct Event2 {
    pub note: String,
}

#[derive(Record, Clone, Debug, PartialEq)]
pub struct Wrapper<T, U: Clone>
where
    U: PartialEq,
{
    pub items: Vec<T>,
    pub last: Option<U>,
}

#[derive(Record, Clone, Debug, PartialEq)]
pub struct Both<A, B> {
    pub a: A,
    pub b: B,
}

#[derive(Record, Clone, Debug, PartialEq)]
pub struct Buffer<const N: usize> {
    pub bytes: [u8; N],
    pub len: u16,
}

/// Generic: of variable length whatever it holds.
#[derive(Record, Clone, Debug, PartialEq)]
pub enum Either<A, B> {
    Left(A),
    Right { b: B },
    Neither,
}

#[derive(Record, Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "that it is large is the point")]
pub enum Bulky<T> {
    Small(T),
    Large([u64; 512]),
}

/// More fields than the compiler's recursion limit allows in a list of pairs.
macro_rules! wide {
    ($($name:ident)*) => {
        #[derive(Record, Clone, Debug, PartialEq)]
        pub struct Wide { $(pub $name: u16),* }
        impl Wide {
            pub fn of(first: u16) -> Self {
                let mut next = first;
                $(let $name = next; next = next.wrapping_add(1);)*
                let _ = next;
                Self { $($name),* }
            }
        }
    };
}
wide!(a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 b0 b1 b2 b3 b4 b5 b6 b7 b8 b9 c0 c1 c2 c3 c4 c5 c6 c7 c8 c9 d0 d1 d2 d3 d4 d5 d6
    d7 d8 d9 e0 e1 e2 e3 e4 e5 e6 e7 e8 e9 f0 f1 f2 f3 f4 f5 f6 f7 f8 f9 g0 g1 g2 g3 g4 g5 g6 g7 g8 g9 h0 h1 h2 h3 h4
    h5 h6 h7 h8 h9 i0 i1 i2 i3 i4 i5 i6 i7 i8 i9 j0 j1 j2 j3 j4 j5 j6 j7 j8 j9 k0 k1 k2 k3 k4 k5 k6 k7 k8 k9 l0 l1 l2
    l3 l4 l5 l6 l7 l8 l9 m0 m1 m2 m3 m4 m5 m6 m7 m8 m9 n0 n1 n2 n3 n4 n5 n6 n7 n8 n9);

pub fn flat() -> Flat {
    Flat { id: u64::MAX - 1, at: Point { x: 0.1, y: -1e300 }, ok: true, tag: '🦀', code: Text::truncated("JFK") }
}

pub fn nested(names: &[&str]) -> Nested {
    Nested {
        flat: flat(),
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        pairs: vec![(1, Some("x".into())), (2, None)],
        r#type: names.first().map(|_| -3),
        grid: [[1, 2], [3, 4], [5, u16::MAX]],
    }
}

pub fn states() -> Vec<State> {
    vec![State::Open { qty: 9, side: Side::Sell }, State::Held(u64::MAX), State::Closed]
}

pub fn events() -> Vec<Event> {
    vec![
        Event::Opened { by: "ada".into(), legs: states() },
        Event::Opened { by: "grace".into(), legs: vec![] },
        Event::Closed,
        Event::Moved(Point { x: 1.0, y: 2.0 }, None),
        Event::Moved(Point { x: 1.0, y: 2.0 }, Some(Box::new(Event2 { note: "n".into() }))),
    ]
}

/// Calls a generic function with values of every shape.
#[macro_export]
macro_rules! for_every_shape {
    ($check:ident) => {
        $check(&[0u8, 255]);
        $check(&[i8::MIN, 1]);
        $check(&[u16::MAX, 1]);
        $check(&[i16::MIN, 1]);
        $check(&[u32::MAX, 1]);
        $check(&[i32::MIN, 1]);
        $check(&[u64::MAX, 1]);
        $check(&[i64::MIN, 1]);
        $check(&[u128::MAX, 1]);
        $check(&[i128::MIN, 1]);
        $check(&[usize::MAX, 1]);
        $check(&[isize::MIN, 1]);
        $check(&[f32::MIN, 1.5]);
        $check(&[f64::MAX, -0.0]);
        $check(&[true, false]);
        $check(&['a', '🦀']);
        $check(&[String::new(), "é\0".into()]);
        $check(&[Text::<5>::EMPTY, Text::truncated("abcde")]);
        $check(&[Some(1u64), None]);
        $check(&[Some(String::from("x")), Some("y".into()), None]);
        $check(&[Some(Some(true)), Some(None), None]);
        $check(&[vec![1u8, 2], vec![], vec![3; 100]]);
        $check(&[vec![vec!["a".to_string()], vec![]], vec![vec!["b".into(), "c".into()]]]);
        $check(&[[1i64, -1], [0, 0]]);
        $check(&[[String::from("a"), "b".into()], ["c".into(), "d".into()]]);
        $check(&[[(); 3]]);
        $check(&[[String::new(); 0]]);
        $check(&[()]);
        $check(&[vec![(); 3], vec![]]);
        $check(&[(1u8,), (2,)]);
        $check(&[(1u8, 'c', -1i64), (2, 'd', 5)]);
        $check(&[(1u8, String::from("s"), vec![1.5f32]), (2, String::new(), vec![])]);
        $check(&[(1u8, 2u8, 3u8, 4u8, 5u8, 6u8, 7u8, 8u8, 9u8, 10u8, 11u8, 12u8)]);
        $check(&[Box::new((1u8, String::from("boxed")))]);
        $check(&[Box::new(7u64)]);
        $check(&[Unit]);
        $check(&[Cents(-1), Cents(i64::MAX)]);
        $check(&[Point { x: 0.0, y: f64::INFINITY }]);
        $check(&[flat()]);
        $check(&[nested(&[]), nested(&["a", ""]), nested(&["b"])]);
        $check(&[Side::Buy, Side::Sell]);
        $check(&states());
        $check(&[Some(State::Closed), None, Some(State::Held(3))]);
        $check(&events());
        $check(&[Wrapper::<u8, Point> { items: vec![1], last: None }]);
        $check(&[Wrapper { items: vec![Side::Buy], last: Some(String::from("w")) }]);
        $check(&[Both { a: 1u8, b: Side::Sell }]);
        $check(&[Both { a: String::from("a"), b: 1u128 }]);
        $check(&[Buffer { bytes: [7; 33], len: 9 }]);
        $check(&[Either::Left(1u8), Either::Right { b: 2u16 }, Either::Neither]);
        $check(&[Either::Left(String::from("l")), Either::Right { b: vec![1u8] }, Either::Neither]);
        $check(&[Bulky::Small(String::from("s")), Bulky::Large([1; 512])]);
        $check(&[Wide::of(0), Wide::of(9)]);
    };
}
