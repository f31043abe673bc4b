//! The table against plain maps.

mod edges;
mod elements;
mod filling;
mod growth;
mod hostile;
mod large;
mod migrating;
mod model;
mod modify;
mod rows;
mod shrink;
mod spots;
mod straight;
