//! A table, some of whose values may still be of an older type: whoever looks sees values of today, wherever they lie. It
//! knows how neither is kept. The ways of a table to which nothing outdated belongs are the table's own, after one look.

use super::outdated::{OldPart, Outdated};
use super::restore::Part;
use super::{Ahead, HashRange, Hasher, Looked, StateError, Table, Value};
use crate::page::Pool;
use crate::record::Record;

/// A [`Table`], and what of it is still outdated.
pub struct Migrating<K, V> {
    table: Table<K, V>,
    /// None is over.
    outdated: Vec<Outdated>,
}

impl<K: Record, V: Record> Migrating<K, V> {
    /// The table of a task, out of what the tasks of a snapshot have left: see [`Table::restore`]. Outdated parts of the same
    /// range are taken as they are, too; from any others the values are migrated now.
    ///
    /// # Errors
    /// As for [`Table::restore`].
    pub fn restore(
        pool: &Pool,
        hasher: Hasher,
        range: HashRange,
        parts: &[Part<'_>],
        old: Vec<OldPart<'_>>,
    ) -> Result<Self, StateError> {
        let mut this = Self { table: Table::restore(pool, hasher, range, parts)?, outdated: Vec::new() };
        for part in old {
            let root = part.root(hasher, K::WIDTH)?;
            if root.range == range && root.page_bytes as usize == pool.page_bytes() {
                this.outdated.push(Outdated::adopt(pool, hasher, root, part)?);
            } else if root.range.meets(&range) {
                part.deal_out(root, &mut this.table.buckets)?;
            }
        }
        this.drop_old();
        Ok(this)
    }

    /// Lets go of parts that are over.
    fn drop_old(&mut self) {
        self.outdated.retain(|part| !part.is_over());
    }

    /// The outdated parts.
    pub fn outdated(&mut self) -> &mut [Outdated] {
        &mut self.outdated
    }

    /// The table of what is not outdated: to be cut, and for nothing else.
    pub fn table(&mut self) -> &mut Table<K, V> {
        &mut self.table
    }

    /// Before something is written under a key of this hash.
    #[inline]
    fn touch(&mut self, hash: u64) -> Result<(), StateError> {
        if self.outdated.is_empty() { Ok(()) } else { self.bring_over(hash) }
    }

    #[cold]
    #[inline(never)]
    fn bring_over(&mut self, hash: u64) -> Result<(), StateError> {
        let into = &mut self.table.buckets;
        self.outdated.iter_mut().try_for_each(|part| part.bring_over(hash, into))?;
        self.drop_old();
        Ok(())
    }

    /// Number of keys.
    pub fn len(&self) -> u64 {
        self.outdated.iter().fold(self.table.len(), |sum, part| sum.saturating_add(part.len()))
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the pages in use.
    pub fn bytes(&self) -> usize {
        let outdated = self.outdated.iter().map(Outdated::pages);
        self.table.bytes() + outdated.map(|pages| pages.live() as usize * pages.page_bytes()).sum::<usize>()
    }

    /// See [`Table::page_copies`].
    pub fn page_copies(&self) -> u64 {
        self.table.page_copies()
    }

    /// See [`Table::range`].
    pub fn range(&self) -> HashRange {
        self.table.range()
    }

    /// See [`Table::hash`].
    #[inline]
    pub fn hash(&mut self, key: &K) -> u64 {
        self.table.hash(key)
    }

    /// See [`Table::prefetch_hashes`].
    #[inline]
    pub fn prefetch_hashes(&self, hashes: impl Iterator<Item = u64> + Clone) {
        self.table.prefetch_hashes(hashes);
    }

    /// See [`Table::stale`]. What is outdated is passed over, as what is still in the snapshot.
    ///
    /// # Errors
    /// As there.
    pub fn stale(&self, from: u64, bound: u64, found: &mut Vec<(u64, K)>) -> Result<Looked, StateError> {
        self.table.stale(from, bound, found)
    }

    /// See [`Table::update`].
    ///
    /// # Errors
    /// As there; also for a value that is outdated.
    #[inline]
    pub fn update<R>(
        &mut self,
        hash: u64,
        key: &K,
        init: impl FnOnce() -> V,
        f: impl FnOnce(&mut V) -> R,
    ) -> Result<R, StateError> {
        self.touch(hash)?;
        self.table.update(hash, key, init, f)
    }

    /// See [`Table::update_batch`].
    ///
    /// # Errors
    /// As there; also for values that are outdated.
    #[inline]
    pub fn update_batch<'a, T, A, R, E: From<StateError>>(
        &mut self,
        records: impl Ahead<Key = &'a [u8], Record = (T, A)>,
        first: impl Fn(T) -> V,
        next: impl Fn(&mut V, T),
        seen: impl Fn(&V) -> R,
        mut each: impl FnMut(A, R) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.outdated.is_empty() {
            return self.table.update_batch(records, first, next, seen, each);
        }
        for record in records {
            self.touch(record.0)?;
            self.table.update_batch(std::iter::once(record), &first, &next, &seen, &mut each)?;
        }
        Ok(())
    }

    /// See [`Table::takes_straight`].
    #[inline]
    pub fn takes_straight(&self) -> bool {
        self.outdated.is_empty() && self.table.takes_straight()
    }

    /// See [`Table::update_straight`].
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn update_straight<T, A, R, E: From<StateError>>(
        &mut self,
        records: impl Iterator<Item = (K::Mirror, (T, A))>,
        first: impl Fn(T) -> V,
        next: impl Fn(&mut V, T),
        seen: impl Fn(&V) -> R,
        each: impl FnMut(A, R) -> Result<(), E>,
    ) -> Result<(), E> {
        debug_assert!(self.takes_straight());
        self.table.update_straight(records, first, next, seen, each)
    }

    /// See [`Table::modify_straight`].
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn modify_straight<T, E: From<StateError>>(
        &mut self,
        records: impl Iterator<Item = (K, T)>,
        f: impl FnMut(&K, T, &mut Value<V>) -> Result<(), E>,
    ) -> Result<(), E> {
        debug_assert!(self.takes_straight());
        self.table.modify_straight(records, f)
    }

    /// See [`Table::modify`].
    ///
    /// # Errors
    /// As there; also for a value that is outdated.
    #[inline]
    pub fn modify<R, E: From<StateError>>(
        &mut self,
        hash: u64,
        key: &K,
        f: impl FnOnce(&mut Value<V>) -> Result<R, E>,
    ) -> Result<R, E> {
        self.touch(hash)?;
        self.table.modify(hash, key, f)
    }

    /// See [`Table::modify_batch`].
    ///
    /// # Errors
    /// As there; also for values that are outdated.
    #[inline]
    pub fn modify_batch<'a, T, E: From<StateError>>(
        &mut self,
        records: impl Ahead<Key = &'a [u8], Record = T>,
        mut f: impl FnMut(&K, T, &mut Value<V>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.outdated.is_empty() {
            return self.table.modify_batch(records, f);
        }
        for record in records {
            self.touch(record.0)?;
            self.table.modify_batch(std::iter::once(record), &mut f)?;
        }
        Ok(())
    }

    /// See [`Table::insert`].
    ///
    /// # Errors
    /// As there; also for values that are outdated.
    pub fn insert(&mut self, hash: u64, key: &K, value: V) -> Result<bool, StateError> {
        self.touch(hash)?;
        self.table.insert(hash, key, value)
    }

    /// See [`Table::remove`].
    ///
    /// # Errors
    /// As there; also for a value that is outdated.
    pub fn remove(&mut self, hash: u64, key: &K) -> Result<Option<V>, StateError> {
        self.touch(hash)?;
        self.table.remove(hash, key)
    }

    /// See [`Table::discard`].
    ///
    /// # Errors
    /// As there; also for values that are outdated.
    pub fn discard(&mut self, hash: u64, key: &K) -> Result<bool, StateError> {
        self.touch(hash)?;
        self.table.discard(hash, key)
    }

    /// See [`Table::get`]. An outdated value stays where it is.
    ///
    /// # Errors
    /// As there; also for a value that is outdated.
    pub fn get(&self, hash: u64, key: &K) -> Result<Option<V>, StateError> {
        let found = self.table.get(hash, key)?;
        if found.is_some() || self.outdated.is_empty() {
            return Ok(found);
        }
        let (mut bytes, mut value) = (Vec::new(), Vec::new());
        key.encode(&mut bytes);
        for part in &self.outdated {
            if part.get(hash, &bytes, &mut value)? {
                return Ok(Some(V::decode(&mut value.as_slice())?));
            }
        }
        Ok(None)
    }

    /// See [`Table::scan`]. Outdated values stay where they are.
    ///
    /// # Errors
    /// As there; also for values that are outdated.
    pub fn scan<E: From<StateError>>(
        &self,
        from: u64,
        mut each: impl FnMut(u64, K, V) -> Result<(), E>,
    ) -> Result<Option<u64>, E> {
        if self.outdated.is_empty() {
            return self.table.scan(from, each);
        }
        // So far that no bucket, here or there, ends or begins in between.
        let last = self.outdated.iter().map(|part| part.reach(from)).min().unwrap_or(u64::MAX);
        let next =
            self.table.scan(from, |hash, key, value| if hash <= last { each(hash, key, value) } else { Ok(()) })?;
        let last = next.map_or(last, |next| last.min(next - 1));
        for part in &self.outdated {
            part.each_of(from, |hash, mut key, mut value| {
                if !(from..=last).contains(&hash) {
                    return Ok(());
                }
                let key = K::decode(&mut key).map_err(StateError::from)?;
                each(hash, key, V::decode(&mut value).map_err(StateError::from)?)
            })?;
        }
        Ok((last < self.range().end_inclusive).then(|| last + 1))
    }

    /// See [`Table::hydrate`]; of what is outdated a bucket is brought over instead.
    ///
    /// # Errors
    /// As there; also for values that are outdated.
    pub fn hydrate(&mut self, pages: u32) -> Result<bool, StateError> {
        for done in 0..pages {
            let part = self.outdated.iter_mut().rfind(|part| !part.is_empty());
            let Some(part) = part else { return Ok(self.table.hydrate(pages - done)? && self.outdated.is_empty()) };
            part.bring_any(&mut self.table.buckets)?;
            self.drop_old();
        }
        Ok(self.outdated.is_empty() && self.table.hydrate(0)?)
    }

    /// See [`Table::renew`].
    ///
    /// # Errors
    /// As there.
    pub fn renew(&mut self) -> Result<(), StateError> {
        self.table.renew()?;
        self.outdated.iter_mut().try_for_each(|part| Ok(part.pages_mut().renew()?))
    }

    /// See [`Table::absent_pages`].
    pub fn absent_pages(&self) -> u32 {
        self.outdated.iter().fold(self.table.absent_pages(), |sum, part| sum + part.pages().absent())
    }

    /// See [`Table::durable`].
    pub fn durable(&mut self) {
        self.table.durable();
        self.outdated.iter_mut().for_each(|part| part.pages_mut().durable());
        self.drop_old();
    }

    /// See [`Table::abandon`].
    pub fn abandon(&mut self) {
        self.table.abandon();
        self.outdated.iter_mut().for_each(|part| part.pages_mut().abandon());
        self.drop_old();
    }

    /// See [`Table::drop_view`].
    pub fn drop_view(&mut self) {
        self.table.drop_view();
        self.outdated.iter_mut().for_each(|part| part.pages_mut().drop_view());
        self.drop_old();
    }
}
