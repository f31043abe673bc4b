//! A table by key, as a state sees it that does not know the type of the key: of the key that was entered. With a
//! time-to-live, the time of the last write stands before each value.

use super::super::kept::value;
use super::super::kept_table::KeptTable;
use super::super::operating::Open;
use super::super::viewing::Viewing;
use super::timer::Timer;
use super::{Keys, Opening, Tables};
use crate::error::{Error, Failed, StateError};
use crate::record::{Record, to_bytes};
use crate::snapshot::Entry;

/// What there is of a key.
pub(super) enum Found<V> {
    Nothing,
    Value(V),
    /// Something whose time is over: it is still in the table, but nobody may see it.
    Over(V),
}

/// Takes what was removed because its time was over.
pub(super) type Gone<'a, V> = dyn FnMut(V) -> Result<(), StateError> + 'a;

/// A table by key, of one key at a time.
pub(super) trait ByKey<V>: Send {
    fn name(&self) -> &str;
    fn enter(&mut self, hash: u64, key: &[u8]);
    /// What there is of the key.
    fn get(&mut self) -> Result<Found<V>, StateError>;
    /// Sets it, with the time.
    fn put(&mut self, value: V) -> Result<(), StateError>;
    fn remove(&mut self) -> Result<(), StateError>;
    /// Whether values have a time-to-live.
    fn is_timed(&self) -> bool;
    fn prefetch(&self, hashes: &[u64]);
    fn tick(&mut self, clock_ns: u64);
    /// Removes some of what is over.
    fn tidy(&mut self, records: u64, gone: &mut Gone<'_, V>) -> Result<(), StateError>;
    fn keys(&self, from: u64, keys: &mut Keys) -> Result<Option<u64>, StateError>;
    fn freeze(&mut self, open: &Open, entries: &mut Vec<Entry>);
    fn settle(&mut self, durable: bool);
    fn view(&mut self, open: &Open, asked: &mut Viewing<'_>) -> Result<bool, Failed>;
    fn hydrate(&mut self) -> Result<bool, Failed>;
    fn forget(&mut self) -> Result<(), Failed>;
}

/// How a value lies in a table: as it is, or with a time.
trait Stored<V>: Record {
    fn of(value: V, written_ns: u64) -> Self;
    fn written_ns(&self) -> u64;
    fn value(self) -> V;
}

impl<V: Record> Stored<V> for V {
    fn of(value: V, _: u64) -> V {
        value
    }
    fn written_ns(&self) -> u64 {
        u64::MAX
    }
    fn value(self) -> V {
        self
    }
}

/// What a state with a time-to-live has in place of a value.
// The time comes first: it is looked at without decoding the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Record)]
pub struct Timed<V> {
    /// When it was written, by the job's clock: nanoseconds since 1970.
    pub written_ns: u64,
    /// The value.
    pub value: V,
}

impl<V: Record> Stored<V> for Timed<V> {
    fn of(value: V, written_ns: u64) -> Self {
        Self { written_ns, value }
    }
    fn written_ns(&self) -> u64 {
        self.written_ns
    }
    fn value(self) -> V {
        self.value
    }
}

/// The key that was entered, decoded when it is first needed.
struct Entered<K> {
    hash: u64,
    bytes: Vec<u8>,
    key: Option<K>,
    is_decoded: bool,
}

impl<K: Record> Entered<K> {
    #[inline]
    fn key(&mut self) -> Result<(u64, &K), StateError> {
        let mut input = self.bytes.as_slice();
        match &mut self.key {
            Some(_) if self.is_decoded => {}
            Some(key) => key.decode_into(&mut input)?,
            None => self.key = Some(K::decode(&mut input)?),
        }
        self.is_decoded = true;
        Ok((self.hash, self.key.as_ref().expect("just decoded")))
    }
}

struct Keyed<K, S> {
    name: String,
    table: KeptTable<K, S>,
    entered: Entered<K>,
    timer: Option<Timer>,
    /// Some key has been asked for since records were last counted.
    is_used: bool,
    /// What has been found to be over.
    over: Vec<(u64, K)>,
}

/// Names the tables of a state.
pub(super) fn tables<K: Record, V: Record>(name: &str, is_timed: bool, tables: &mut Tables) {
    match is_timed {
        false => tables.add::<K, V>(name.to_owned()),
        true => tables.add::<K, Timed<V>>(name.to_owned()),
    }
}

/// Opens the table of a state.
pub(super) fn open<K: Record, V: Record>(
    opening: &Opening<'_>,
    name: &str,
    ttl_ns: Option<u64>,
) -> Result<Box<dyn ByKey<V>>, Error> {
    match ttl_ns {
        None => Ok(Box::new(Keyed::<K, V>::open(opening, name, None)?)),
        Some(ttl_ns) => {
            let open = opening.open;
            let clocks = opening.restored.iter().filter(|entry| entry.state == clock_of(name));
            let kept: Vec<u64> = clocks.map(|entry| value(entry, open.epoch)).collect::<Result<_, _>>()?;
            let start = crate::state::range_of(open.task, open.tasks).start;
            let timer = Timer::new(open, ttl_ns, kept.into_iter().max().unwrap_or(0), start);
            Ok(Box::new(Keyed::<K, Timed<V>>::open(opening, name, Some(timer))?))
        }
    }
}

fn clock_of(name: &str) -> String {
    format!("{name}/clock")
}

impl<K: Record, S: Record> Keyed<K, S> {
    fn open(opening: &Opening<'_>, name: &str, timer: Option<Timer>) -> Result<Self, Error> {
        let table = KeptTable::open(opening.open, name, opening.restored.iter().copied())?;
        let entered = Entered { hash: 0, bytes: Vec::new(), key: None, is_decoded: false };
        Ok(Self { name: name.to_owned(), table, entered, timer, is_used: false, over: Vec::new() })
    }

    fn is_over<V>(&self, stored: &S) -> bool
    where
        S: Stored<V>,
    {
        self.timer.as_ref().is_some_and(|timer| timer.is_over(stored.written_ns()))
    }
}

impl<K: Record, V: Record, S: Stored<V>> ByKey<V> for Keyed<K, S> {
    fn name(&self) -> &str {
        &self.name
    }

    #[inline]
    fn enter(&mut self, hash: u64, key: &[u8]) {
        let entered = &mut self.entered;
        (entered.hash, entered.is_decoded) = (hash, false);
        entered.bytes.clear();
        entered.bytes.extend_from_slice(key);
    }

    fn get(&mut self) -> Result<Found<V>, StateError> {
        self.is_used = true;
        let (hash, key) = self.entered.key()?;
        Ok(match self.table.get(hash, key)? {
            None => Found::Nothing,
            Some(stored) if self.is_over(&stored) => Found::Over(stored.value()),
            Some(stored) => Found::Value(stored.value()),
        })
    }

    fn put(&mut self, value: V) -> Result<(), StateError> {
        let now_ns = self.timer.as_ref().map_or(0, Timer::now_ns);
        let (hash, key) = self.entered.key()?;
        self.table.insert(hash, key, S::of(value, now_ns)).map(|_| ())
    }

    fn remove(&mut self) -> Result<(), StateError> {
        let (hash, key) = self.entered.key()?;
        self.table.discard(hash, key).map(|_| ())
    }

    fn is_timed(&self) -> bool {
        self.timer.is_some()
    }

    fn prefetch(&self, hashes: &[u64]) {
        if self.is_used {
            self.table.prefetch_hashes(hashes.iter().copied());
        }
    }

    fn tick(&mut self, clock_ns: u64) {
        if let Some(timer) = &mut self.timer {
            timer.tick(clock_ns);
        }
    }

    fn tidy(&mut self, records: u64, gone: &mut Gone<'_, V>) -> Result<(), StateError> {
        self.is_used = false;
        let Some(timer) = &mut self.timer else { return Ok(()) };
        let Some(bound_ns) = timer.bound_ns().filter(|_| !self.table.is_empty()) else { return Ok(()) };
        timer.earn(records);
        let begin = timer.cursor;
        while timer.may_look() {
            let looked = self.table.stale(timer.cursor, bound_ns, &mut self.over)?;
            timer.has_looked(looked.entries);
            let is_worth_it = looked.is_dirty || 2 * self.over.len() as u64 >= looked.entries;
            for (hash, key) in self.over.drain(..).filter(|_| is_worth_it) {
                self.table.remove(hash, &key)?.map_or(Ok(()), |stored| gone(stored.value()))?;
            }
            let start = self.table.range().start;
            timer.cursor = looked.next.unwrap_or(start);
            if timer.cursor == begin {
                timer.has_gone_round();
            }
        }
        Ok(())
    }

    fn keys(&self, from: u64, keys: &mut Keys) -> Result<Option<u64>, StateError> {
        self.table.scan(from, |hash, key, stored| {
            if !self.is_over(&stored) {
                keys.insert((hash, to_bytes(&key)));
            }
            Ok(())
        })
    }

    fn freeze(&mut self, open: &Open, entries: &mut Vec<Entry>) {
        self.table.freeze(open, entries);
        if let Some(timer) = &self.timer {
            let now_ns = timer.now_ns();
            entries.push(open.entry(&clock_of(&self.name), &u64::schema(), |bytes| now_ns.encode(bytes), None));
        }
    }

    fn settle(&mut self, durable: bool) {
        self.table.settle(durable);
    }

    fn view(&mut self, open: &Open, asked: &mut Viewing<'_>) -> Result<bool, Failed> {
        self.table.view(open, asked)
    }

    fn hydrate(&mut self) -> Result<bool, Failed> {
        self.table.hydrate()
    }

    fn forget(&mut self) -> Result<(), Failed> {
        self.table.forget()
    }
}
