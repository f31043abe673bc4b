//! `#[derive(Record)]`.
