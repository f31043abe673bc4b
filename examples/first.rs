//! The first dataflow: the bundled flights, the sum of their delays by airport, exactly once into files.
//!
//! `cargo run --release --example first`; kill it and run it again, and it goes on from its newest checkpoint. Once it has
//! finished there is nothing left to do: remove `target/first` to begin anew.

use snapring::connector::Csv;
use snapring::{Checkpoints, Config, Dataflow, Record, Text};
use std::time::Duration;

#[derive(Record)]
struct Flight {
    origin: Text<3>,
    dest: Text<3>,
    dep_delay: Option<i64>, // minutes; a cancelled flight has none
}

fn main() -> Result<(), snapring::Error> {
    let flow = Dataflow::new("delays");
    flow.source("flights", Csv::<Flight>::open("tests/data/flights-2013-01.csv.gz")?.na("NA"))
        .filter(|flight| flight.dest != "BOS")
        .key_by(|flight| flight.origin)
        .fold("delay_sum_min", 0i64, |sum_min, flight| *sum_min += flight.dep_delay.unwrap_or(0)) // named: it has state
        .sink("sums", Csv::exactly_once("target/first/out")?);

    let job = flow.start(
        Config::new().checkpoints(Checkpoints::every(Duration::from_millis(100)).to("target/first/state")), // resumes by itself
    )?;
    let summary = job.wait()?;
    println!("{} records, {} checkpoints; see target/first/out", summary.records, summary.checkpoints);
    Ok(())
}
