//! States against plain collections.
