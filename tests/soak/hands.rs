//! The program around the job: a thread that pushes and one that polls, as the handles' documentation tells them to.

use super::key;
use snapring::handle::{Input, Output, OutputError, PushError};
use snapring::snapshot::Reader;
use snapring::testing::Random;
use std::collections::HashMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// A key, and how often it has come.
pub type Row = (u64, u64);

/// Nothing takes so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is in the program's hands between two starts of the job.
#[derive(Default)]
pub struct Hands {
    input: Option<Input<u64>>,
    output: Option<Output<Row>>,
    /// Each with its epoch, and whether it may come again.
    kept: Vec<(u64, bool, Row)>,
    /// The epoch to go back to, and the newest one then.
    pub back: Option<(u64, u64)>,
    /// Epochs whose results are gone, as the job went back behind them.
    undone: Vec<(u64, u64)>,
    pub rewound: u64,
}

/// At work.
pub struct Working {
    hands: Hands,
    pushed: Receiver<u64>,
    polled: Receiver<Vec<(u64, bool, Row)>>,
}

/// What the first records make, sorted.
pub fn expected(records: u64) -> Vec<Row> {
    let mut counts = HashMap::new();
    let mut rows: Vec<Row> = (0..records)
        .map(|number| {
            let count = counts.entry(key(number)).or_insert(0);
            *count += 1;
            (key(number), *count)
        })
        .collect();
    rows.sort_unstable();
    rows
}

impl Hands {
    pub fn hold(&mut self, input: Input<u64>, output: Output<Row>) {
        (self.input, self.output) = (Some(input), Some(output));
    }

    /// Now and then the next start is to go back, to an epoch whose results are still known.
    pub fn choose_way_back(&mut self, state: &Path, random: &mut Random, is_last: bool) {
        self.back = None;
        let Ok(reader) = Reader::open(state) else { return };
        let epochs: Vec<u64> = reader.epochs().iter().map(|info| info.epoch).collect();
        let Some(newest) = epochs.last().copied() else { return };
        forget(&mut self.kept, newest + 1);
        let is_known = |epoch: &u64| !self.undone.iter().any(|(first, last)| (*first..=*last).contains(epoch));
        let older: Vec<u64> = epochs.into_iter().filter(|epoch| *epoch < newest && is_known(epoch)).collect();
        if !is_last && !older.is_empty() && random.one_in(5) {
            let to = older[random.below(older.len() as u64) as usize];
            self.back = Some((to, newest));
        }
    }

    /// The job goes on from this epoch.
    pub fn started(&mut self, restored: Option<u64>) {
        if let Some((to, newest)) = self.back {
            self.kept.retain(|(epoch, ..)| *epoch <= to);
            self.undone.push((to + 1, newest));
        }
        forget(&mut self.kept, restored.unwrap_or(0) + 1);
    }

    /// What has come, sorted.
    pub fn results(&self) -> Vec<Row> {
        let mut rows: Vec<Row> = self.kept.iter().map(|(.., row)| *row).collect();
        rows.sort_unstable();
        rows
    }

    /// Pushes and polls until the job is over.
    pub fn work(mut self, events: u64, seed: u64, pauses: bool) -> Working {
        let (pushes, pushed) = channel();
        let (polls, polled) = channel();
        let (input, output) = (self.input.take().unwrap(), self.output.take().unwrap());
        let kept = std::mem::take(&mut self.kept);
        std::thread::spawn(move || pushes.send(push(input, events, Random::new(seed), pauses)));
        std::thread::spawn(move || polls.send(poll(output, kept, Random::new(seed + 1))));
        Working { hands: self, pushed, polled }
    }
}

impl Working {
    pub fn join(self) -> Hands {
        let Self { mut hands, pushed, polled } = self;
        hands.rewound += pushed.recv_timeout(PATIENCE).expect("the job is over, and the pusher does not hear of it");
        hands.kept = polled.recv_timeout(PATIENCE).expect("the job is over, and the poller does not hear of it");
        hands
    }
}

/// Says how often it had to push again.
fn push(mut input: Input<u64>, events: u64, mut random: Random, pauses: bool) -> u64 {
    let (mut at, mut rewound) = (0, 0);
    loop {
        let result = match random.below(3) {
            _ if at == events => input.close(),
            0 => input.push(at).map(|()| at += 1).map_err(|error| match error {
                PushError::Full(_) => PushError::Full(()),
                PushError::Rewound { from, .. } => PushError::Rewound { from, record: () },
                PushError::Closed { error, .. } => PushError::Closed { error, record: () },
            }),
            _ => {
                let most = random.between(1, 100).min(events - at);
                input.push_batch(&mut (at..at + most)).map(|pushed| at += pushed as u64)
            }
        };
        match result {
            Ok(()) if pauses && random.one_in(40) => std::thread::sleep(Duration::from_millis(random.below(8))),
            Ok(()) => {}
            Err(PushError::Full(())) => drop(input.wait(Duration::from_secs(1))),
            Err(PushError::Rewound { from, .. }) => {
                (at, rewound) = (from, rewound + 1);
            }
            Err(PushError::Closed { error: None, .. }) if at == events => {
                // Closed by us. The job may want some of it again, until it is over: of either there is news.
                let before = at;
                let is_news = input.wait(Duration::from_millis(200));
                at = input.position().expect("the job has started");
                rewound += u64::from(at < before);
                // A restart that wanted nothing again would be old news by now.
                if is_news && at == before && input.wait(Duration::ZERO) {
                    return rewound;
                }
            }
            Err(PushError::Closed { .. }) => return rewound,
        }
    }
}

fn poll(mut output: Output<Row>, mut kept: Vec<(u64, bool, Row)>, mut random: Random) -> Vec<(u64, bool, Row)> {
    loop {
        // What was held back until now is used, and cannot be taken back.
        let durable_epoch = output.durable_epoch();
        kept.iter_mut()
            .rev()
            .take_while(|(.., may_repeat, _)| *may_repeat)
            .for_each(|(epoch, may_repeat, _)| *may_repeat &= *epoch > durable_epoch);
        let polled = output.poll_batch().map(|batch| {
            batch.map(|batch| {
                let (epoch, may_repeat) = (batch.epoch(), batch.may_repeat());
                kept.extend(batch.map(|row| (epoch, may_repeat, row)));
            })
        });
        match polled {
            Ok(Some(())) if random.one_in(200) => std::thread::sleep(Duration::from_millis(random.below(5))),
            Ok(Some(())) => {}
            Ok(None) => drop(output.wait(Duration::from_secs(1))),
            Err(OutputError::Rewound { epoch }) => forget(&mut kept, epoch),
            Err(OutputError::Closed { .. }) => return kept,
        }
    }
}

/// What is of this epoch or later comes again.
fn forget(kept: &mut Vec<(u64, bool, Row)>, from_epoch: u64) {
    let last = kept.iter().find(|(epoch, may_repeat, _)| *epoch >= from_epoch && !may_repeat);
    assert!(last.is_none(), "said not to come again, and comes again: {last:?} from epoch {from_epoch} on");
    kept.retain(|(epoch, ..)| *epoch < from_epoch);
}
