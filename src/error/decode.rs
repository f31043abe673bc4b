//! Bytes that are not what they should be.

/// Why a byte string is not a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes end before the value does.
    #[error("the bytes end before the value does")]
    Short,
    /// The bytes are no value of the type.
    #[error("{0}")]
    Invalid(&'static str),
}
