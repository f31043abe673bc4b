//! Several states to an operator, by name. It does not know what they are.

use super::super::emitted::Emitted;
use super::super::keyed_table::{TABLE, WINDOW, emitted, emitted_entry};
use super::super::kinds::{Aggregate, Aggregator, Keys, List, Map, Opening, Tables, Work};
use super::super::operating::Open;
use super::super::stage::{Closure, Taken};
use super::super::viewing::Viewing;
use super::super::{KeyOf, Progress};
use super::{Keep, KeyedState};
use crate::channel::Records;
use crate::error::{Error, Failed, StateError};
use crate::record::Record;
use crate::snapshot::{Entry, RestoredEntry};
use crate::state::Window;
use std::convert::Infallible;

/// Several states, by name. What `#[derive(KeyedState)]` writes.
pub trait States: Sized + Send + 'static {
    /// Their names, in the order of [`States::each`].
    const NAMES: &'static [&'static str];

    /// Names their tables.
    fn tables<K: Record>(tables: &mut Tables);

    /// Opens them.
    ///
    /// # Errors
    /// What was kept cannot be read, or the pool is exhausted.
    fn open<K: Record>(opening: &Opening<'_>) -> Result<Self, Error>;

    /// Shows one after the other.
    ///
    /// # Errors
    /// The first of `show`.
    fn each<E>(&mut self, show: impl FnMut(&mut dyn Work) -> Result<(), E>) -> Result<(), E>;
}

/// A state of its own has the name that a table has which is an operator's only one.
macro_rules! alone {
    ($state:ty, $($of:tt)*) => {
        impl<$($of)*> KeyedState for $state {
            type Kept<Key: Record> = Several<Key, Self>;
        }

        impl<$($of)*> States for $state {
            const NAMES: &'static [&'static str] = &[TABLE];

            fn tables<Key: Record>(tables: &mut Tables) {
                tables.state::<Key, Self>(TABLE, None);
            }

            fn open<Key: Record>(opening: &Opening<'_>) -> Result<Self, Error> {
                opening.state::<Key, Self>(TABLE, None)
            }

            #[inline]
            fn each<E>(&mut self, mut show: impl FnMut(&mut dyn Work) -> Result<(), E>) -> Result<(), E> {
                show(self)
            }
        }
    };
}

alone!(List<T>, T: Record);
alone!(Map<Q, V>, Q: Record, V: Record);
alone!(Aggregate<A>, A: Aggregator + Send);

/// Several states, and how far the emission at the end has come.
pub struct Several<K, S> {
    open: Open,
    states: S,
    emitted: Emitted,
    /// The key decoded last, for what it has allocated.
    key: Option<K>,
    hashes: Vec<u64>,
}

impl<K: Record, S: States> Several<K, S> {
    /// Moves as many records into the window as it takes, each with its key.
    fn fill<T, B: KeyOf<T, Key = K>>(
        &mut self,
        window: &mut Window<K, T>,
        records: &mut Records<'_, T>,
        key: &Closure<B>,
    ) {
        for record in records.take(WINDOW) {
            key.call(|key| key.with(&record, |key| window.key(key)));
            window.push(record);
        }
        let mut hashes = std::mem::take(&mut self.hashes);
        hashes.clear();
        hashes.extend(window.hashes());
        self.all(|state| state.prefetch(&hashes));
        self.hashes = hashes;
    }

    /// Lends all states of a key.
    #[inline]
    fn lend(
        &mut self,
        hash: u64,
        mut bytes: &[u8],
        to: impl FnOnce(&K, &mut S) -> Result<(), Failed>,
    ) -> Result<(), Failed> {
        self.all(|state| state.enter(hash, bytes));
        let key = match self.key.take() {
            Some(mut key) => key.decode_into(&mut bytes).map(|()| key),
            None => K::decode(&mut bytes),
        };
        let key = self.key.insert(key.map_err(StateError::from)?);
        to(key, &mut self.states)?;
        self.states.each(|state| Ok(state.leave()?))
    }

    #[inline]
    fn all(&mut self, mut show: impl FnMut(&mut dyn Work)) {
        let Ok(()) = self.states.each(|state| {
            show(state);
            Ok::<(), Infallible>(())
        });
    }

    fn tick(&mut self) {
        let clock_ns = self.open.clock.now_ns();
        self.all(|state| state.tick(clock_ns));
    }

    /// Some of the keys of which anything is kept, in the order of their hashes; and from where to go on.
    fn keys(&mut self, from: u64) -> Result<(Keys, Option<u64>), Failed> {
        let (mut keys, mut next) = (Keys::new(), None);
        self.states.each(|state| {
            let to = state.keys(from, &mut keys)?;
            next = [next, to].into_iter().flatten().min();
            Ok::<(), Failed>(())
        })?;
        // Not all states have told of keys further on.
        if let Some(next) = next {
            keys.split_off(&(next, Vec::new()));
        }
        Ok((keys, next))
    }
}

impl<K: Record, S: States> Keep<K, S> for Several<K, S> {
    fn tables() -> Tables {
        let mut tables = Tables::default();
        S::tables::<K>(&mut tables);
        tables
    }

    fn open(open: Open, restored: &[&RestoredEntry]) -> Result<Self, Error> {
        let states = S::open::<K>(&Opening { open: &open, restored })?;
        let emitted = emitted(&open, restored)?;
        Ok(Self { open, states, emitted, key: None, hashes: Vec::with_capacity(WINDOW) })
    }

    fn batch<T, B: KeyOf<T, Key = K>>(
        &mut self,
        window: &mut Window<K, T>,
        records: &mut Records<'_, T>,
        key: &Closure<B>,
        mut each: impl FnMut(&K, T, &mut S) -> Result<(), Failed>,
    ) -> Result<(), Failed> {
        self.tick();
        while records.len() > 0 {
            self.fill(window, records, key);
            let count = window.len() as u64;
            for (hash, key, record) in Taken(window.drain()) {
                self.lend(hash, key, |key, states| each(key, record, states))?;
            }
            self.states.each(|state| Ok::<(), Failed>(state.tidy(count)?))?;
        }
        Ok(())
    }

    fn end(&mut self, mut each: impl FnMut(&K, &mut S) -> Result<(), Failed>) -> Result<Progress, Failed> {
        let Some(gap) = self.emitted.next_gap() else { return Ok(Progress::Done) };
        self.tick();
        let (keys, next) = self.keys(gap.start)?;
        for (hash, key) in keys.into_iter().take_while(|(hash, _)| *hash <= gap.end_inclusive) {
            self.lend(hash, &key, &mut each)?;
        }
        self.emitted.add_to(gap, next);
        Ok(Progress::Made)
    }

    fn freeze(&mut self) -> Vec<Entry> {
        let Self { open, states, emitted, .. } = self;
        let (mut entries, mut names) = (vec![emitted_entry(open, emitted)], S::NAMES.iter());
        let Ok(()) = states.each(|state| {
            // Handles of the same type can be swapped, and would find each other's state after a restore.
            assert_eq!(Some(&state.name()), names.next(), "states must stay in the fields that they were given in");
            state.freeze(open, &mut entries);
            Ok::<(), Infallible>(())
        });
        entries
    }

    fn settle(&mut self, durable: bool) {
        self.all(|state| state.settle(durable));
    }

    fn view(&mut self, asked: &mut Viewing<'_>) -> Result<bool, Failed> {
        let (open, mut is_complete) = (&self.open, true);
        self.states.each(|state| {
            is_complete &= state.view(open, asked)?;
            Ok::<(), Failed>(())
        })?;
        Ok(is_complete)
    }

    fn hydrate(&mut self) -> Result<bool, Failed> {
        let mut is_done = true;
        self.states.each(|state| {
            is_done &= state.hydrate()?;
            Ok::<(), Failed>(())
        })?;
        Ok(is_done)
    }

    fn forget(&mut self) -> Result<(), Failed> {
        self.states.each(|state| state.forget())
    }
}
