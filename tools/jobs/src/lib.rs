//! The built-in jobs.
