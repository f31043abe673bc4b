//! Where output differs first. Records are compared by their encodings, and shown as JSON.

use crate::record::text::write_json;
use crate::record::{Record, to_bytes};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What of the order of the output counts.
pub(super) enum Order<T> {
    /// All of it, where one task runs; nothing, where several do.
    Exact,
    /// Nothing.
    Any,
    /// The order within each key.
    #[allow(clippy::type_complexity)] // a function, and nowhere else
    PerKey(Arc<dyn Fn(&T) -> Vec<u8>>),
}

impl<T> fmt::Debug for Order<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exact => "Exact",
            Self::Any => "Any",
            Self::PerKey(_) => "PerKey",
        })
    }
}

/// The first difference; none: the output is as expected.
pub(super) fn difference<T: Record>(order: &Order<T>, one_task: bool, expected: &[T], found: &[T]) -> Option<String> {
    let (all, theirs) = (expected.iter().map(to_bytes).collect(), found.iter().map(to_bytes).collect());
    match order {
        Order::Exact if one_task => in_order::<T>("", all, theirs),
        Order::Exact | Order::Any => in_any_order::<T>(all, theirs),
        // First which ones are missing, for that says more than what comes in their places.
        Order::PerKey(key) => in_any_order::<T>(all, theirs).or_else(|| per_key(&**key, expected, found)),
    }
}

type Encoded = Vec<Vec<u8>>;

fn in_order<T: Record>(of: &str, expected: Encoded, found: Encoded) -> Option<String> {
    let at = (0..expected.len().max(found.len())).find(|at| expected.get(*at) != found.get(*at))?;
    let text = |record: Option<&Vec<u8>>| record.map_or("nothing more".to_owned(), |record| json::<T>(record));
    Some(format!(
        "output {at}{of} (counted from 0): expected {}, found {}; {} were expected, {} found",
        text(expected.get(at)),
        text(found.get(at)),
        expected.len(),
        found.len()
    ))
}

fn in_any_order<T: Record>(mut expected: Encoded, mut found: Encoded) -> Option<String> {
    expected.sort_unstable();
    found.sort_unstable();
    let differing = (0..expected.len().max(found.len())).find(|at| expected.get(*at) != found.get(*at))?;
    let missing = match (expected.get(differing), found.get(differing)) {
        (Some(expected), Some(found)) => expected.cmp(found) == Ordering::Less,
        (expected, _) => expected.is_some(),
    };
    let record = if missing { &expected[differing] } else { &found[differing] };
    let times = |records: &Encoded| records.iter().filter(|other| *other == record).count();
    Some(format!(
        "{}: {} was expected {} times, found {} times; {} were expected in all, {} found",
        if missing { "output is missing" } else { "output that was not expected" },
        json::<T>(record),
        times(&expected),
        times(&found),
        expected.len(),
        found.len()
    ))
}

fn per_key<T: Record>(key: &dyn Fn(&T) -> Vec<u8>, expected: &[T], found: &[T]) -> Option<String> {
    let parted = |records: &[T]| {
        let mut keys = BTreeMap::<Vec<u8>, Encoded>::new();
        records.iter().for_each(|record| keys.entry(key(record)).or_default().push(to_bytes(record)));
        keys
    };
    let (expected, mut found) = (parted(expected), parted(found));
    expected
        .into_iter()
        .find_map(|(key, records)| in_order::<T>(" of its key", records, found.remove(&key).unwrap_or_default()))
}

/// A record as a person reads it.
pub(super) fn json<T: Record>(encoded: &[u8]) -> String {
    let mut text = Vec::new();
    match write_json(&T::schema(), &mut &*encoded, &mut text) {
        Ok(()) => String::from_utf8_lossy(&text).into_owned(),
        Err(error) => format!("a record that does not fit its schema ({error})"),
    }
}
