//! The table against plain maps.

mod edges;
mod elements;
mod hostile;
mod migrating;
mod model;
mod modify;
mod rows;
mod shrink;
