//! Flights by route: for every flight a line with the totals of its route so far.

use crate::Output;
use snapring::connector::Csv;
use snapring::dataflow::Dataflow;
use snapring::error::ConnectorError;
use snapring::record::{Record, Text};

/// The columns that the job reads; the file has more.
#[derive(Clone, Debug, Record)]
pub struct Flight {
    /// The airport it left, or should have left.
    pub origin: Text<14>,
    /// Where to.
    pub dest: Text<14>,
    /// The time of departure, `hmm`; a cancelled flight has none.
    pub dep_time: Option<u16>,
    /// Minutes behind the schedule; negative: ahead of it. Four billion of them do not overflow the sum.
    pub dep_delay: Option<i32>,
}

/// A route after one more flight.
#[derive(Clone, Debug, PartialEq, Eq, Record)]
pub struct RouteLine {
    /// From.
    pub origin: Text<14>,
    /// To.
    pub dest: Text<14>,
    /// Flights so far, this one included.
    pub n: u64,
    /// Those of them that were cancelled.
    pub cancelled: u64,
    /// The sum of the known delays at departure, in minutes.
    pub delay_sum_min: i64,
}

/// What is kept of a route.
#[derive(Clone, Debug, Default, Record)]
struct Totals {
    n: u64,
    cancelled: u64,
    delay_sum_min: i64,
}

impl Totals {
    fn add(&mut self, flight: Flight) {
        self.n += 1;
        self.cancelled += u64::from(flight.dep_time.is_none());
        self.delay_sum_min += i64::from(flight.dep_delay.unwrap_or(0));
    }
}

/// Draws the job.
///
/// # Errors
/// The output's path is that of a file.
pub fn routes(flights: Csv<Flight>, output: &Output) -> Result<Dataflow, ConnectorError> {
    let flow = Dataflow::new("routes");
    let lines = flow
        .source("flights", flights.na("NA"))
        .key_by(|flight| (flight.origin, flight.dest))
        .fold("totals", Totals::default(), Totals::add)
        .map(|((origin, dest), totals)| {
            let Totals { n, cancelled, delay_sum_min } = totals;
            RouteLine { origin, dest, n, cancelled, delay_sum_min }
        });
    output.take("lines", lines)?;
    Ok(flow)
}
