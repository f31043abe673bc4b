//! Bytes that are not what they should be.

/// Why a byte string is not a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes end before the value does.
    #[error("the bytes end before the value does")]
    Short,
    /// The value ends before the bytes do.
    #[error("{bytes} bytes are left behind the value")]
    Trailing {
        /// How many.
        bytes: usize,
    },
    /// The bytes are no value of the type.
    #[error("{0}")]
    Invalid(&'static str),
}
