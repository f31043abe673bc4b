//! connector.
