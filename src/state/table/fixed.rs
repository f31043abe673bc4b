//! The way of every record whose key and value have a fixed layout: both lie in a slot, and the value is changed there. Whatever
//! needs more than one page goes the long way. What it knows at compile time are the sizes.

use super::Table;
use crate::page::fetch_ahead;
use crate::record::Record;
use crate::state::buckets::Place;
use crate::state::groups::{LANES, Lanes, Shape, WORD_BYTES, is_last};
use crate::state::head::{count_of, next_of, set_count};
use crate::state::{Ahead, StateError, Value};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// How many records ahead the places of keys are fetched: as many as the processor can wait for at a time.
const RECORDS_AHEAD: usize = 12;
/// The same for the slots of long groups, of which there are several lines; their tags have been fetched as many records before.
const SLOTS_AHEAD: usize = 8;
/// Records of long groups for which that is done at a time: much fewer, and it shows that it is done; much more, and the
/// processor waits for the lines of all of them at once instead of working meanwhile.
const LONG_STEP: usize = 4;
/// Lines of a slot that are fetched. What lies behind is rarely needed at once, and the processor sees by itself where it goes.
const LINES_MAX: usize = 3;
/// Bytes of a line.
const LINE: usize = 64;

/// A slot's bytes.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Slot<A, B> {
    key: A,
    pub value: B,
}

/// The slots of a group.
pub(super) type Slots<K, V> = [Slot<<K as Record>::Mirror, <V as Record>::Mirror>; LANES];

impl<K: Record, V: Record> Table<K, V> {
    pub(super) const STRIDE: usize = Shape::stride(Self::KEY_BYTES + Self::VALUE_BYTES);
    /// Whether a group has more lines than can be fetched as they are: then its tags say which one is next.
    pub(super) const IS_LONG: bool = Self::IS_FIXED && Self::STRIDE > 2 * LINE;
    /// Records for which places are fetched at a time.
    pub(super) const STEP: usize = if Self::IS_LONG { LONG_STEP } else { 1 };
    /// How many records ahead groups are fetched.
    const GROUPS_AHEAD: usize = if Self::IS_LONG { 2 * SLOTS_AHEAD } else { RECORDS_AHEAD };
    /// Lines of a slot that are fetched: it rarely begins where a line does.
    const SLOT_LINES: usize = {
        let lines = (Self::KEY_BYTES + Self::VALUE_BYTES).div_ceil(LINE) + 1;
        if lines < LINES_MAX { lines } else { LINES_MAX }
    };

    /// The shape of all pages, its slot size known to the compiler.
    #[inline(always)]
    pub(super) fn shape(&self) -> Shape {
        Shape { groups: self.groups, slot_bytes: Self::KEY_BYTES + Self::VALUE_BYTES }
    }

    /// Asks the processor to fetch the group where a key of this hash is or will be; of a long one, its tags.
    #[inline(always)]
    pub(super) fn prefetch_fixed(&self, hash: u64) {
        let bucket = self.buckets.directory.bucket_of(hash);
        let at = self.shape().home(hash);
        self.buckets.pages.prefetch(bucket, at);
        if const { Self::STRIDE > LINE && !Self::IS_LONG } {
            self.buckets.pages.prefetch(bucket, at + LINE);
        }
    }

    /// Asks the processor to fetch the slot where a key of this hash is by its tag, which has been fetched.
    #[inline(always)]
    pub(super) fn prefetch_slot(&self, hash: u64) {
        let (shape, bucket) = (self.shape(), self.buckets.directory.bucket_of(hash));
        let at = shape.home(hash);
        // An absent page is left to the update.
        let group = self.buckets.pages.here(bucket).and_then(|page| page.get(at..at + Self::STRIDE));
        if let Some(group) = group
            && let Some(slot) = shape.first_at(group, 0, hash)
        {
            (0..Self::SLOT_LINES).for_each(|line| fetch_ahead(group, slot + line * LINE));
        }
    }

    /// Asks for what the first records of a batch need.
    #[inline(always)]
    pub(super) fn prefetch_first(&self, records: &impl Ahead) {
        records.hashes().take(Self::GROUPS_AHEAD).for_each(|hash| self.prefetch_fixed(hash));
        if const { Self::IS_LONG } {
            records.hashes().take(SLOTS_AHEAD).for_each(|hash| self.prefetch_slot(hash));
        }
    }

    /// Asks for what later records need, as many as are taken in then.
    #[inline(always)]
    pub(super) fn prefetch_step(&self, records: &impl Ahead) {
        records.hashes().skip(Self::GROUPS_AHEAD).take(Self::STEP).for_each(|hash| self.prefetch_fixed(hash));
        if const { Self::IS_LONG } {
            records.hashes().skip(SLOTS_AHEAD).take(Self::STEP).for_each(|hash| self.prefetch_slot(hash));
        }
    }

    /// The word of the group at an offset, and its slots.
    #[inline(always)]
    pub(super) fn group_at(page: &mut [u8], at: usize) -> (u64, &mut Slots<K, V>) {
        let (word, rest) = page[at..at + Self::STRIDE].split_at_mut(WORD_BYTES);
        let word = u64::from_le_bytes((&*word).try_into().expect("eight bytes"));
        let (slots, _) =
            Slots::<K, V>::mut_from_prefix(rest).unwrap_or_else(|_| unreachable!("a group holds its slots"));
        (word, slots)
    }

    /// The lane of a key in a group.
    #[inline(always)]
    pub(super) fn find_in_group(word: u64, slots: &Slots<K, V>, hash: u64, key: &[u8]) -> Option<usize> {
        let mut lanes = Lanes::of(word, hash);
        while let Some(lane) = lanes.first() {
            if slots[lane as usize].key.as_bytes() == &key[..Self::KEY_BYTES] {
                return Some(lane as usize);
            }
            lanes = lanes.without_first();
        }
        None
    }

    /// [`Table::upsert`] for an encoded key. As a rule the key is in the group that it wants, in the first page of its bucket, and
    /// that has been written to in this epoch: so far there are neither calls nor loops over groups, and all stays in registers.
    #[inline(always)]
    pub(super) fn upsert_fixed<T, R>(
        &mut self,
        hash: u64,
        key: &[u8],
        record: T,
        first: impl FnOnce(T) -> (V, R),
        next: impl FnOnce(&mut V, T) -> R,
    ) -> Result<R, StateError> {
        let home = self.shape().home(hash);
        let Some(page) = self.buckets.pages.written(self.buckets.directory.bucket_of(hash)) else {
            return self.upsert_further(hash, key, record, first, next);
        };
        let (word, slots) = Self::group_at(page, home);
        match Self::find_in_group(word, slots, hash, key) {
            Some(lane) => change_mirror(&mut slots[lane].value, |value| next(value, record)),
            None if is_last(word) => self.upsert_new(hash, key, record, first, next),
            None => self.upsert_further(hash, key, record, first, next),
        }
    }

    /// The same wherever in that page the key is, and whether or not it has been written to.
    #[cold]
    #[inline(never)]
    pub(super) fn upsert_further<T, R>(
        &mut self,
        hash: u64,
        key: &[u8],
        record: T,
        first: impl FnOnce(T) -> (V, R),
        next: impl FnOnce(&mut V, T) -> R,
    ) -> Result<R, StateError> {
        let shape = self.shape();
        let page = self.buckets.pages.write(self.buckets.directory.bucket_of(hash))?;
        let mut at = shape.home(hash);
        for _ in 0..shape.groups {
            let (word, slots) = Self::group_at(page, at);
            if let Some(lane) = Self::find_in_group(word, slots, hash, key) {
                return change_mirror(&mut slots[lane].value, |value| next(value, record));
            }
            if is_last(word) {
                break;
            }
            at = shape.following(at);
        }
        self.upsert_new(hash, key, record, first, next)
    }

    /// The same for a key that the first page of its bucket does not hold.
    #[cold]
    #[inline(never)]
    fn upsert_new<T, R>(
        &mut self,
        hash: u64,
        key: &[u8],
        record: T,
        first: impl FnOnce(T) -> (V, R),
        next: impl FnOnce(&mut V, T) -> R,
    ) -> Result<R, StateError> {
        let bucket = self.buckets.directory.bucket_of(hash);
        if next_of(self.buckets.pages.read(bucket)?).is_some() {
            return self.upsert_elsewhere(hash, key, record, first, next);
        }
        let (value, result) = first(record);
        self.add_fixed(hash, key, &value)?;
        Ok(result)
    }

    /// Adds a key that the first page of its bucket, which has no further one, does not hold.
    fn add_fixed(&mut self, hash: u64, key: &[u8], value: &V) -> Result<(), StateError> {
        let (shape, key) = (self.shape(), &key[..Self::KEY_BYTES]);
        let bucket = self.buckets.directory.bucket_of(hash);
        let is_near = self.buckets.is_near();
        let page = self.buckets.pages.write(bucket)?;
        let (count, limit) = (count_of(page), self.buckets.layout.limit(page, &shape, is_near));
        if count as usize >= limit {
            self.value.clear();
            value.encode(&mut self.value);
            return self.buckets.put_at(None, hash, key, &self.value);
        }
        let at = shape.claim(page, hash);
        page[at..at + Self::KEY_BYTES].copy_from_slice(key);
        value.store(&mut page[at + Self::KEY_BYTES..at + Self::KEY_BYTES + Self::VALUE_BYTES]);
        set_count(page, count + 1);
        self.buckets.len += 1;
        Ok(())
    }

    /// Takes out what a slot holds.
    #[inline]
    pub(super) fn remove_fixed(&mut self, hash: u64, place: Place) -> Result<(), StateError> {
        let shape = self.shape();
        let page = self.buckets.pages.write(place.page)?;
        shape.release(page, hash, place.slot);
        let count = count_of(page).saturating_sub(1);
        set_count(page, count);
        self.buckets.one_less(hash, place.page, count, shape.limit());
        Ok(())
    }

    /// [`Table::modify`] for an encoded key: as a rule it is where [`Table::upsert_fixed`] would find it.
    #[inline(always)]
    pub(super) fn modify_fixed<R, E: From<StateError>>(
        &mut self,
        hash: u64,
        key: &[u8],
        f: impl FnOnce(&mut Value<V>) -> Result<R, E>,
    ) -> Result<R, E> {
        let (bucket, home) = (self.buckets.directory.bucket_of(hash), self.shape().home(hash));
        let Some(page) = self.buckets.pages.written(bucket) else { return self.modify_further(hash, key, f) };
        let (word, slots) = Self::group_at(page, home);
        let Some(lane) = Self::find_in_group(word, slots, hash, key) else { return self.modify_further(hash, key, f) };
        let place = &mut slots[lane].value;
        let mut value = Value::new(Some(V::from_mirror(place).map_err(StateError::from)?));
        let result = f(&mut value)?;
        match value.into_parts() {
            (_, false) => {}
            (Some(value), true) => value.to_mirror(place),
            (None, true) => {
                let slot = home + WORD_BYTES + lane * (Self::KEY_BYTES + Self::VALUE_BYTES);
                self.remove_fixed(hash, Place { page: bucket, slot })?;
            }
        }
        Ok(result)
    }

    /// The same wherever the key is, if anywhere, and whether or not its page has been written to in this epoch.
    #[cold]
    #[inline(never)]
    fn modify_further<R, E: From<StateError>>(
        &mut self,
        hash: u64,
        key: &[u8],
        f: impl FnOnce(&mut Value<V>) -> Result<R, E>,
    ) -> Result<R, E> {
        let bucket = self.buckets.directory.bucket_of(hash);
        let page = self.buckets.pages.read(bucket).map_err(StateError::from)?;
        let shape = self.shape();
        let slot = shape.find(page, hash, |slot| page[slot..slot + Self::KEY_BYTES] == key[..Self::KEY_BYTES]);
        if slot.is_none() && next_of(page).is_some() {
            return self.modify_elsewhere(hash, key, f);
        }
        let value_in = |slot| slot + Self::KEY_BYTES..slot + Self::KEY_BYTES + Self::VALUE_BYTES;
        let value = slot.map(|slot| V::load(&page[value_in(slot)])).transpose().map_err(StateError::from)?;
        let mut value = Value::new(value);
        let result = f(&mut value)?;
        match (value.into_parts(), slot) {
            ((_, false), _) | ((None, true), None) => {}
            ((Some(value), true), Some(slot)) => {
                let page = self.buckets.pages.write(bucket).map_err(StateError::from)?;
                value.store(&mut page[value_in(slot)]);
            }
            ((Some(value), true), None) => self.add_fixed(hash, key, &value)?,
            ((None, true), Some(slot)) => self.remove_fixed(hash, Place { page: bucket, slot })?,
        }
        Ok(result)
    }
}

/// Changes a value where it lies.
#[inline(always)]
pub(super) fn change_mirror<V: Record, R>(place: &mut V::Mirror, f: impl FnOnce(&mut V) -> R) -> Result<R, StateError> {
    // Where it was decoded to: to move a long value would cost more than to decode it.
    match &mut V::from_mirror(place) {
        Ok(value) => {
            let result = f(value);
            value.to_mirror(place);
            Ok(result)
        }
        Err(error) => Err(error.clone().into()),
    }
}
