//! The small part of a frozen table that is not pages. Part of the format: 52 bytes, little-endian.
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | version of the layout of pages and of this root: 1 |
//! | 2..4 | hash function: 1 for rapidhash v3 of the key's encoding; 2 for the same, but with the key group of the u64 that
//! the key begins with |
//! | 4..8 | bytes of a page |
//! | 8..16 | seed of the hash function |
//! | 16..24, 24..32 | lowest and highest hash of the task |
//! | 32..40 | number of entries |
//! | 40..44, 44..48 | bytes of a key, of a value; 4294967295: variable |
//! | 48..52 | zero |

use super::{HashRange, Hasher, StateError};

const VERSION: u16 = 1;
const RAPIDHASH_V3: u16 = 1;
const RAPIDHASH_V3_OF_ELEMENTS: u16 = 2;
const ROOT_BYTES: usize = 52;

/// A root, unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Root {
    /// The hash function is that for elements.
    pub of_elements: bool,
    pub page_bytes: u32,
    pub seed: u64,
    pub range: HashRange,
    pub len: u64,
    pub key_bytes: Option<usize>,
    pub value_bytes: Option<usize>,
}

impl Root {
    /// The hasher that it was made with.
    pub fn hasher(&self) -> Hasher {
        let hasher = Hasher::new(self.seed);
        if self.of_elements { hasher.of_elements() } else { hasher }
    }

    pub fn encode(&self) -> Vec<u8> {
        let width = |bytes: Option<usize>| bytes.map_or(u32::MAX, |bytes| bytes as u32).to_le_bytes();
        let mut out = Vec::with_capacity(ROOT_BYTES);
        out.extend_from_slice(&VERSION.to_le_bytes());
        let function = if self.of_elements { RAPIDHASH_V3_OF_ELEMENTS } else { RAPIDHASH_V3 };
        out.extend_from_slice(&function.to_le_bytes());
        out.extend_from_slice(&self.page_bytes.to_le_bytes());
        for number in [self.seed, self.range.start, self.range.end_inclusive, self.len] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&width(self.key_bytes));
        out.extend_from_slice(&width(self.value_bytes));
        out.extend_from_slice(&[0; 4]);
        out
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, StateError> {
        let bytes: &[u8; ROOT_BYTES] =
            bytes.try_into().map_err(|_| StateError::corrupt(format!("a root of {} bytes", bytes.len())))?;
        let u16_at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let u32_at = |at: usize| super::head::u32_at(bytes, at);
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        let width = |at: usize| Some(u32_at(at)).filter(|&bytes| bytes != u32::MAX).map(|bytes| bytes as usize);
        if u16_at(0) != VERSION || !(RAPIDHASH_V3..=RAPIDHASH_V3_OF_ELEMENTS).contains(&u16_at(2)) {
            let what = format!(
                "it was written by another version (layout {}, hash function {}; this one reads {VERSION}, and {RAPIDHASH_V3} or \
                 {RAPIDHASH_V3_OF_ELEMENTS})",
                u16_at(0),
                u16_at(2)
            );
            return Err(StateError::Mismatch { what });
        }
        let root = Self {
            of_elements: u16_at(2) == RAPIDHASH_V3_OF_ELEMENTS,
            page_bytes: u32_at(4),
            seed: u64_at(8),
            range: HashRange { start: u64_at(16), end_inclusive: u64_at(24) },
            len: u64_at(32),
            key_bytes: width(40),
            value_bytes: width(44),
        };
        let is_sane = root.page_bytes.is_power_of_two()
            && (512..=65536).contains(&root.page_bytes)
            && root.range.start <= root.range.end_inclusive;
        if is_sane { Ok(root) } else { Err(StateError::corrupt(format!("a root that cannot be: {root:?}"))) }
    }
}
