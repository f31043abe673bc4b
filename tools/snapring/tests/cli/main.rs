//! The command line, tried as its user meets it: the real binary, real files, real signals. What a job should have come
//! to is computed here by plain code that shares nothing with the jobs.

mod audit;
mod bad_input;
mod channels;
mod deadlock;
mod doctor;
mod heard;
mod inspect;
mod kill;
mod kill_loops;
mod loops;
mod plain;
mod plain_loops;
mod restore;
mod results;
mod resume;
mod room;
mod savepoint;
mod signals;
mod storage;
mod support;
mod tools;
mod usage;
