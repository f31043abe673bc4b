//! The beds and the simulator for users: planted mistakes are found, and what is right passes. A bed that finds nothing
//! protects nobody.

mod operators;
mod simulations;
mod sinks;
mod sources;
