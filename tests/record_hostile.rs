//! Damaged, truncated and made-up bytes: an error, or a value that encodes to these very bytes; never a panic, and never
//! an allocation that the bytes do not justify. The same bytes go through the schema's walkers, which must agree.

mod record_shapes;

use record_shapes::*;
use snapring::record::text::{write_csv, write_json};
use snapring::record::{
    Datum, DecodeError, Input, Record, Schema, Text, Type, decode_batch, decode_batch_into, encode_batch, to_bytes,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fmt::Debug;

/// Remembers the largest allocation of each thread.
struct Watching;

thread_local!(static LARGEST: Cell<usize> = const { Cell::new(0) });

// SAFETY: everything is handed to the system's allocator as it came.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.set(LARGEST.get().max(layout.size()));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`, and all places come from `System`.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static WATCHING: Watching = Watching;

/// xorshift: the same bytes in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    /// What a disk, a cable or a foe may have done to some bytes.
    fn damage(&mut self, good: &[u8]) -> Vec<u8> {
        let mut bytes = good.to_vec();
        match self.below(6) {
            0 => bytes.truncate(self.below(good.len())),
            1 => bytes = (0..self.below(64)).map(|_| self.next() as u8).collect(),
            2 => bytes = (0..self.below(64)).map(|_| (self.next() & 3) as u8).collect(),
            3 if good.len() >= 4 => {
                let at = self.below(good.len() - 3);
                let count = u32::MAX >> self.below(32);
                bytes[at..at + 4].copy_from_slice(&count.to_le_bytes());
            }
            _ => {
                for _ in 0..=self.below(3) {
                    let at = self.below(bytes.len());
                    bytes.get_mut(at).into_iter().for_each(|byte| *byte ^= 1 << (self.0 & 7));
                }
            }
        }
        bytes
    }
}

const ROUNDS: usize = 400;

/// An input of up to 4 KiB or so justifies this much, doubled growth and large items included.
const ALLOCATION_BYTES_MAX: usize = 4 << 20;

fn survives<T: Record + PartialEq + Debug>(values: &[T]) {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut batch = Vec::new();
    encode_batch(values, &mut batch);
    LARGEST.set(0);
    for round in 0..ROUNDS {
        let good = to_bytes(&values[round % values.len()]);
        let bad = random.damage(&good);
        one::<T>(&good, &bad);
        let bad = random.damage(&batch);
        if let Ok(items) = decode_batch::<T>(&bad) {
            let mut again = Vec::new();
            encode_batch(&items, &mut again);
            assert_eq!(again, bad);
        }
        let mut used = decode_batch::<T>(&batch).unwrap();
        let _ = decode_batch_into(&mut used, &mut bad.as_slice());
        used.iter().for_each(|item| assert!(T::decode(&mut to_bytes(item).as_slice()).is_ok(), "any valid value"));
        let _ = Vec::<Vec<T>>::decode(&mut bad.as_slice());
    }
    assert!(LARGEST.get() < ALLOCATION_BYTES_MAX, "{} bytes for {}", LARGEST.get(), T::schema());
}

fn one<T: Record + PartialEq + Debug>(good: &[u8], bad: &[u8]) {
    let mut rest = bad;
    let decoded = T::decode(&mut rest);
    let read = &bad[..bad.len() - rest.len()];
    let mut used = T::decode(&mut &good[..]).unwrap();
    let used_result = used.decode_into(&mut &bad[..]);
    assert_eq!(used_result.is_ok(), decoded.is_ok());
    if T::WIDTH == Some(bad.len()) {
        assert_eq!(T::load(bad).is_ok(), decoded.is_ok());
    } else {
        assert!(T::load(bad).is_err(), "another length");
    }
    // Text may well be longer than the bytes, and a tree has a node for what takes no bytes: only what decoding takes counts.
    let largest = LARGEST.get();
    let (schema, mut left) = (T::schema(), bad);
    let datum = Datum::decode(&schema.ty, &mut left);
    let many = DecodeError::Invalid("too many values without bytes");
    assert!(datum.is_ok() == decoded.is_ok() || datum == Err(many), "{datum:?} of {schema}: {bad:?}");
    LARGEST.set(largest);
    let Ok(value) = decoded else { return };
    assert!(datum.is_err() || left == rest, "{schema}");
    assert_eq!(to_bytes(&value), read, "one value, one encoding");
    assert_eq!(to_bytes(&used), read);
    let (mut json, mut csv) = (bad, bad);
    write_json(&T::schema(), &mut json, &mut Vec::new()).unwrap();
    write_csv(&T::schema(), &mut csv, &mut Vec::new()).unwrap();
    assert_eq!((json, csv), (rest, rest), "the schema tells the same bytes");
    LARGEST.set(largest);
}

#[test]
fn every_shape_survives() {
    for_every_shape!(survives);
}

fn walk(schema: &Schema, bytes: Input<'_>) {
    let mut out = Vec::new();
    let _ = write_json(schema, &mut &bytes[..], &mut out);
    let _ = write_csv(schema, &mut &bytes[..], &mut out);
    if let Ok(datum) = Datum::decode(&schema.ty, &mut &bytes[..]) {
        assert!(!datum.to_string().contains(char::is_control), "one line, whatever the names are");
    }
    assert!(out.len() < 64 << 20, "{} bytes of text from {} bytes with {schema}", out.len(), bytes.len());
}

fn schema_survives<T: Record + PartialEq + Debug>(values: &[T]) {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let good = T::schema().to_bytes();
    let data = to_bytes(&values[0]);
    LARGEST.set(0);
    for end in 0..good.len() {
        assert!(Schema::decode(&mut &good[..end]).is_err(), "cut after {end} bytes");
    }
    for _ in 0..ROUNDS {
        let bad = random.damage(&good);
        if let Ok(schema) = Schema::decode(&mut bad.as_slice()) {
            assert_eq!(Schema::decode(&mut schema.to_bytes().as_slice()).as_ref(), Ok(&schema));
            walk(&schema, &data);
            walk(&schema, &random.damage(&data));
        }
    }
    assert!(LARGEST.get() < 128 << 20);
}

#[test]
fn every_schema_survives() {
    for_every_shape!(schema_survives);
}

fn nested_schema(levels: usize) -> Schema {
    Schema::new((0..levels).fold(Type::U8, |ty, _| Type::Option(Box::new(ty))))
}

#[test]
fn schemas_nest_only_so_deep() {
    let deepest = nested_schema(snapring::record::DEPTH_MAX - 1);
    assert_eq!(Schema::decode(&mut deepest.to_bytes().as_slice()), Ok(deepest));
    assert!(Schema::decode(&mut nested_schema(snapring::record::DEPTH_MAX).to_bytes().as_slice()).is_err());
    let bottomless = [[1].as_slice(), &vec![16; 1 << 20]].concat();
    assert!(Schema::decode(&mut bottomless.as_slice()).is_err());
}

#[test]
fn schemas_that_lie_are_refused() {
    let refused = |ty: Type| assert!(Schema::decode(&mut Schema::new(ty).to_bytes().as_slice()).is_err());
    let huge = |ty| Type::Array(u32::MAX, Box::new(ty));
    refused(huge(huge(Type::U8)));
    refused(Type::Text(65_536));
    let Type::Struct(name, mut fields) = Point::schema().ty else { panic!("not a struct") };
    fields[1].offset_bytes = Some(4);
    refused(Type::Struct(name.clone(), fields.clone()));
    fields[1].offset_bytes = None;
    refused(Type::Struct(name, fields));
    let Type::Enum { name, variants, .. } = State::schema().ty else { panic!("not an enum") };
    refused(Type::Enum { name: name.clone(), variants: variants.clone(), body_bytes: Some(7) });
    refused(Type::Struct("x".repeat(5000), Vec::new()));
    let newer = [2, 0];
    assert!(Schema::decode(&mut newer.as_slice()).unwrap_err().to_string().contains("newer version"));
}

#[test]
fn values_without_bytes_end_some_time() {
    let empty = || Type::Array(u32::MAX, Box::new(Type::Tuple(vec![Type::Tuple(vec![]); 100])));
    for ty in [empty(), Type::Array(1 << 19, Box::new(empty())), Type::List(Box::new(Type::Tuple(vec![empty()])))] {
        let schema = Schema::decode(&mut Schema::new(ty).to_bytes().as_slice()).unwrap();
        let mut out = Vec::new();
        assert!(write_json(&schema, &mut [0xff, 0xff, 0xff, 0].as_slice(), &mut out).is_err());
        assert!(Datum::decode(&schema.ty, &mut [0xff, 0xff, 0xff, 0].as_slice()).is_err());
        assert!(out.len() < 64 << 20);
    }
}
