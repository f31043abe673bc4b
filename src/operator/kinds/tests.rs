//! States against plain collections, what they cost, and how they end by themselves.

mod cost;
mod model;
mod ttl;
mod world;
