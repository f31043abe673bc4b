//! The hash that says where a key belongs: which task, which page, which slot. Its name and seed are stored in every
//! snapshot, so it must never change: rapidhash v3 (Nicolas De Carli, 2025) of the key's encoding.
//!
//! The elements of a list or a map must lie in the task of the key that has them. The key of an element begins with the id
//! of its collection, whose top bits are the key group of that key: an element's hash takes the key group from there, and
//! the rest from the hash of all of the element's key.

use super::range::GROUP_MASK;
use crate::record::{Record, SHORT, Short, ends};
use rapidhash::v3::{RapidSecrets, rapidhash_v3_inline};

/// What a snapshot calls this function.
pub const HASH_NAME: &str = "rapidhash-v3";

/// Keys of a fixed layout up to this size are hashed on the stack.
pub(super) const SMALL_KEY_BYTES: usize = 16;

/// Hashes keys. All hashers of one seed agree, on every machine.
#[derive(Clone, Copy, Debug)]
pub struct Hasher {
    seed: u64,
    secrets: RapidSecrets,
    /// What is hashed are the keys of elements.
    of_elements: bool,
    /// Tests make keys collide by it.
    #[cfg(test)]
    pub(super) mask: u64,
}

impl Hasher {
    /// The hasher of a seed.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            secrets: RapidSecrets::seed_cpp(seed),
            of_elements: false,
            #[cfg(test)]
            mask: u64::MAX,
        }
    }

    /// The hasher of the same seed for elements: of tables whose keys begin with a u64 in the top bits of which is a key group.
    #[must_use]
    pub fn of_elements(self) -> Self {
        Self { of_elements: true, ..self }
    }

    /// The same hasher where it is known to be none for elements: then it need not be asked for each key.
    #[inline(always)]
    pub(super) fn of_keys(self) -> Self {
        debug_assert!(!self.of_elements);
        Self { of_elements: false, ..self }
    }

    /// Whether it is one for elements.
    pub fn is_of_elements(&self) -> bool {
        self.of_elements
    }

    /// What it was made from.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The hash of a key. `scratch` is used for keys that have to be encoded in memory first.
    #[inline]
    pub fn hash<K: Record>(&self, key: &K, scratch: &mut Vec<u8>) -> u64 {
        match K::WIDTH {
            Some(width) if width <= SMALL_KEY_BYTES => {
                let mut bytes = [0; SMALL_KEY_BYTES];
                key.store(&mut bytes[..width]);
                self.hash_bytes(&bytes[..width])
            }
            _ => match key.short() {
                Some(short) => self.hash_short(short),
                None => {
                    scratch.clear();
                    key.encode(scratch);
                    self.hash_bytes(scratch)
                }
            },
        }
    }

    /// The hash of a key's encoding.
    #[inline(always)] // So that a length which the caller knows stays known.
    pub fn hash_bytes(&self, key: &[u8]) -> u64 {
        // Small enough to inline: the length says so.
        let hash = if SHORT.contains(&key.len()) {
            self.hash_ends(ends(key), key.len())
        } else if key.len() < *SHORT.start() {
            rapidhash_v3_inline::<true, true, false>(key, &self.secrets)
        } else {
            self.hash_long(key)
        };
        self.grouped(hash, || first_number(key))
    }

    /// The hash of a short encoding.
    #[inline(always)]
    pub(super) fn hash_short(&self, short: Short) -> u64 {
        self.grouped(self.hash_ends(short.ends(), short.len()), || first_number(short.padded().bytes()))
    }

    /// The function for keys of 4 to 16 bytes, but for its branches on the length.
    #[inline(always)]
    fn hash_ends(&self, [first, last]: [u64; 2], len: usize) -> u64 {
        let (RapidSecrets { seed, secrets }, len) = (&self.secrets, len as u64);
        let product = u128::from(first ^ secrets[1]) * u128::from(last ^ seed ^ len);
        let (low, high) = (product as u64, (product >> 64) as u64);
        let product = u128::from(low ^ 0xaaaa_aaaa_aaaa_aaaa) * u128::from(high ^ secrets[1] ^ len);
        product as u64 ^ (product >> 64) as u64
    }

    /// For elements, in the group that the number says with which the key begins.
    #[inline(always)]
    fn grouped(&self, hash: u64, number: impl FnOnce() -> u64) -> u64 {
        #[cfg(test)]
        let hash = hash & self.mask;
        if self.of_elements { in_group_of(number(), hash) } else { hash }
    }

    #[inline(never)]
    fn hash_long(&self, key: &[u8]) -> u64 {
        rapidhash_v3_inline::<true, true, false>(key, &self.secrets)
    }
}

/// A hash, but in the key group that an id says. A call, so that other keys do not pay for it.
#[inline(never)]
fn in_group_of(id: u64, hash: u64) -> u64 {
    id & GROUP_MASK | hash & !GROUP_MASK
}

/// What an element's key begins with. Keys out of a damaged snapshot may be shorter.
fn first_number(key: &[u8]) -> u64 {
    key.first_chunk().map_or(0, |id| u64::from_le_bytes(*id))
}

impl Default for Hasher {
    /// A seed that never changes.
    fn default() -> Self {
        Self::new(0x5350_5249_4e47_0001)
    }
}
