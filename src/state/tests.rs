//! The table against plain maps.

mod edges;
mod elements;
mod growth;
mod hostile;
mod migrating;
mod model;
mod modify;
mod rows;
mod shrink;
