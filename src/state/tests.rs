//! The table against plain maps.

mod edges;
mod hostile;
mod model;
mod modify;
mod rows;
mod shrink;
