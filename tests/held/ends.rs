//! The program at the two ends of a job: it pushes what the job wants, again if it wants it again, and keeps each result
//! once, as the handles' documentation says it can.

use super::recipe::Item;
use snapring::handle::{Input, Output, OutputError, PushError};
use snapring::testing::Random;

/// What is in the program's hands, over all starts of the job.
#[derive(Default)]
pub struct Ends {
    pub pushers: Vec<Pusher>,
    pub pollers: Vec<Poller>,
    /// Epochs whose results have been forgotten, since the job went back behind them.
    undone: Vec<(u64, u64)>,
    pub rewound: u64,
}

/// Has an endless list of records for an input, of which it pushes the first ones.
pub struct Pusher {
    pub number: u64,
    pub events: u64,
    pub keys: u64,
    input: Option<Input<Item>>,
    /// The record that is pushed next.
    at: u64,
}

#[derive(Default)]
pub struct Poller {
    output: Option<Output<Item>>,
    pub kept: Vec<Kept>,
    /// The output has said that it is closed.
    over: bool,
}

#[derive(Debug)]
pub struct Kept {
    epoch: u64,
    may_repeat: bool,
    pub item: Item,
}

impl Pusher {
    pub fn new(number: u64, events: u64, keys: u64) -> Self {
        Self { number, events, keys, input: None, at: 0 }
    }

    fn step(&mut self, random: &mut Random) -> bool {
        let input = self.input.as_mut().expect("the job has started");
        let before = self.at;
        let nth = |index| Item::nth(self.number, index, self.keys);
        let said = match random.below(4) {
            0 => {
                self.at = input.position().expect("the job has started");
                return self.at < before;
            }
            _ if self.at == self.events => input.close(),
            1 => {
                let most = random.between(1, 9).min(self.events - self.at);
                let mut records = (self.at..self.at + most).map(nth);
                input.push_batch(&mut records).map(|pushed| self.at += pushed as u64)
            }
            _ => match input.push(nth(self.at)) {
                Ok(()) => {
                    self.at += 1;
                    Ok(())
                }
                Err(PushError::Full(record)) => {
                    assert_eq!(record, nth(self.at));
                    Err(PushError::Full(()))
                }
                Err(PushError::Rewound { from, .. }) => Err(PushError::Rewound { from, record: () }),
                Err(PushError::Closed { error, .. }) => Err(PushError::Closed { error, record: () }),
            },
        };
        match said {
            Err(PushError::Rewound { from, .. }) => {
                assert!(from != self.at, "told to go where it is");
                self.at = from;
                true
            }
            _ => false,
        }
    }
}

impl Poller {
    /// Takes what there is, at most once. Says whether there was anything.
    fn step(&mut self, random: &mut Random) -> bool {
        let output = self.output.as_mut().expect("the job has started");
        // What was held back until now is used, and cannot be taken back.
        let durable_epoch = output.durable_epoch();
        self.kept.iter_mut().for_each(|kept| kept.may_repeat &= kept.epoch > durable_epoch);
        let polled = if random.one_in(2) {
            output.poll().map(|received| {
                received.map(|received| {
                    self.kept.push(Kept {
                        epoch: received.epoch,
                        may_repeat: received.may_repeat,
                        item: received.record,
                    });
                })
            })
        } else {
            output.poll_batch().map(|batch| {
                batch.map(|batch| {
                    let (epoch, may_repeat) = (batch.epoch(), batch.may_repeat());
                    self.kept.extend(batch.map(|item| Kept { epoch, may_repeat, item }));
                })
            })
        };
        match polled {
            Ok(found) => found.is_some(),
            Err(OutputError::Rewound { epoch }) => {
                self.forget(epoch);
                true
            }
            Err(OutputError::Closed { .. }) => {
                self.over = true;
                false
            }
        }
    }

    /// What is of this epoch or later comes again.
    fn forget(&mut self, from_epoch: u64) {
        let final_one = self.kept.iter().find(|kept| kept.epoch >= from_epoch && !kept.may_repeat);
        assert!(final_one.is_none(), "said not to come again, and comes again: {final_one:?}");
        self.kept.retain(|kept| kept.epoch < from_epoch);
    }
}

impl Ends {
    /// The handles of a new start.
    pub fn attach(&mut self, inputs: Vec<Input<Item>>, outputs: Vec<Output<Item>>) {
        for (pusher, input) in self.pushers.iter_mut().zip(inputs) {
            (pusher.input, pusher.at) = (Some(input), 0);
        }
        for (poller, output) in self.pollers.iter_mut().zip(outputs) {
            (poller.output, poller.over) = (Some(output), false);
        }
    }

    /// The job goes on from this epoch.
    pub fn started(&mut self, restored: Option<u64>) {
        self.pollers.iter_mut().for_each(|poller| poller.forget(restored.unwrap_or(0) + 1));
    }

    /// The job went back behind these epochs, as asked for.
    pub fn went_back(&mut self, first: u64, last: u64) {
        self.undone.push((first, last));
        for poller in &mut self.pollers {
            poller.kept.retain(|kept| !(first..=last).contains(&kept.epoch));
        }
    }

    /// Whether all results of this epoch are still known: one can go back to it.
    pub fn knows(&self, epoch: u64) -> bool {
        !self.undone.iter().any(|(first, last)| (*first..=*last).contains(&epoch))
    }

    /// The program does something.
    pub fn step(&mut self, random: &mut Random) {
        let ends = self.pushers.len() + self.pollers.len();
        if ends == 0 || random.one_in(3) {
            return;
        }
        let at = random.below(ends as u64) as usize;
        match self.pushers.get_mut(at) {
            Some(pusher) => self.rewound += u64::from(pusher.step(random)),
            None => drop(self.pollers[at - self.pushers.len()].step(random)),
        }
    }

    /// The job has gone: takes what it has left.
    pub fn take_left(&mut self, random: &mut Random) {
        for poller in self.pollers.iter_mut().filter(|poller| poller.output.is_some()) {
            while !poller.over {
                let found = poller.step(random);
                assert!(found || poller.over, "the job has gone, and the output does not end");
            }
        }
        self.pushers.iter_mut().for_each(|pusher| pusher.input = None);
        self.pollers.iter_mut().for_each(|poller| poller.output = None);
    }
}
