//! Damaged snapshots: an error, never a panic, an endless loop or a huge allocation.
