//! [`Text`]: text of bounded length that lies in the record itself, so that the record keeps its fixed layout.

use super::mirror::{Pair, clear, decode_fixed, encode_fixed};
use super::{DecodeError, Input, Record, Schema, Type};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::str::FromStr;
use zerocopy::little_endian::U16;

/// Text of at most `N` bytes (UTF-8; `N` is at most 65,535), kept inline: `Copy`, never allocated, of fixed layout.
///
/// ```
/// use snapring::record::Text;
///
/// let airport: Text<3> = "JFK".parse()?;
/// assert_eq!(airport, "JFK");
/// assert!(airport.starts_with('J')); // a Text is a str
/// let error = Text::<3>::try_from("KJFK").unwrap_err();
/// assert_eq!(error.to_string(), "text of 4 bytes does not fit Text<3>, which holds at most 3");
/// # Ok::<(), snapring::record::TextTooLong>(())
/// ```
#[derive(Clone, Copy)]
pub struct Text<const N: usize> {
    len: u16,
    /// Those from `len` on are zero.
    bytes: [u8; N],
}

/// A text is longer than the [`Text`] it should go into.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("text of {bytes} bytes does not fit Text<{limit_bytes}>, which holds at most {limit_bytes}")]
pub struct TextTooLong {
    /// The length of the text.
    pub bytes: usize,
    /// What would fit.
    pub limit_bytes: usize,
}

impl<const N: usize> Text<N> {
    /// The empty text.
    pub const EMPTY: Self = {
        assert!(N <= u16::MAX as usize, "Text<N> holds at most 65,535 bytes");
        Self { len: 0, bytes: [0; N] }
    };

    /// The start of a text, as much of it as fits: whole characters only.
    #[must_use]
    pub fn truncated(text: &str) -> Self {
        let mut len = text.len().min(N);
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        Self::of(&text[..len])
    }

    /// A text that fits.
    fn of(text: &str) -> Self {
        let mut this = Self::EMPTY;
        this.len = text.len() as u16;
        this.bytes[..text.len()].copy_from_slice(text.as_bytes());
        this
    }

    /// Its bytes.
    #[must_use]
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// As a `str`. Checks the bytes again, which a few bytes hardly notice.
    #[must_use]
    #[inline]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).unwrap_or_else(|_| unreachable!("checked when it was made"))
    }
}

impl<const N: usize> Record for Text<N> {
    const WIDTH: Option<usize> = Some(2 + N);
    type Mirror = Pair<U16, [u8; N]>;

    fn schema() -> Schema {
        Schema::new(Type::Text(u32::from(const { u16_of(N) })))
    }

    fn encode(&self, out: &mut Vec<u8>) {
        encode_fixed(self, out);
    }

    fn decode(input: &mut Input<'_>) -> Result<Self, DecodeError> {
        decode_fixed(input)
    }

    #[inline]
    fn to_mirror(&self, mirror: &mut Self::Mirror) {
        mirror.0 = U16::new(self.len);
        mirror.1 = self.bytes;
    }

    #[inline]
    fn from_mirror(mirror: &Self::Mirror) -> Result<Self, DecodeError> {
        let this = Self { len: mirror.0.get(), bytes: mirror.1 };
        let (text, unused) = this
            .bytes
            .split_at_checked(usize::from(this.len))
            .ok_or(DecodeError::Invalid("a Text is longer than its limit"))?;
        // Most is ASCII, which is seen of all bytes at once.
        if this.bytes.iter().fold(0, |any, byte| any | byte) >= 0x80 {
            std::str::from_utf8(text).map_err(|_| DecodeError::Invalid("text is not UTF-8"))?;
        }
        clear(unused)?;
        Ok(this)
    }
}

/// A limit that fits the length.
const fn u16_of(limit: usize) -> u16 {
    assert!(limit <= u16::MAX as usize, "Text<N> holds at most 65,535 bytes");
    limit as u16
}

impl<const N: usize> Deref for Text<N> {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl<const N: usize> TryFrom<&str> for Text<N> {
    type Error = TextTooLong;

    fn try_from(text: &str) -> Result<Self, TextTooLong> {
        if text.len() > N {
            return Err(TextTooLong { bytes: text.len(), limit_bytes: N });
        }
        Ok(Self::of(text))
    }
}

impl<const N: usize> FromStr for Text<N> {
    type Err = TextTooLong;

    fn from_str(text: &str) -> Result<Self, TextTooLong> {
        Self::try_from(text)
    }
}

impl<const N: usize> Default for Text<N> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<const N: usize> PartialEq for Text<N> {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl<const N: usize> Eq for Text<N> {}

impl<const N: usize> PartialEq<str> for Text<N> {
    fn eq(&self, other: &str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl<const N: usize> PartialEq<&str> for Text<N> {
    fn eq(&self, other: &&str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl<const N: usize> PartialOrd for Text<N> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The order of `str`, which is that of the bytes.
impl<const N: usize> Ord for Text<N> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl<const N: usize> Hash for Text<N> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl<const N: usize> fmt::Display for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}
