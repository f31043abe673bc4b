//! The table against plain maps.

mod edges;
mod hostile;
mod migrating;
mod model;
mod modify;
mod rows;
