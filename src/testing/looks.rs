//! Views of a simulated job: taken at random, held for a while, and held against what they were and against the checkpoint of
//! the same cut.

use super::{Random, SimDisk};
use crate::record::Record;
use crate::runtime::{Local, PendingView, View};
use crate::snapshot::{Reader, RestoredEntry};
use crate::state::{Part, PartPages, Rows};
use std::collections::BTreeMap;

/// Of each table, by operator, state and task: how many keys, and the sum of what they and their values hash to.
type Content = BTreeMap<(String, String, u32), (u64, u64)>;

/// The views of one start.
#[derive(Default)]
pub(super) struct Looks {
    asked: Option<PendingView>,
    held: Vec<(View, Content)>,
    /// How many there were.
    pub taken: u64,
    /// Of these, those that were held against a checkpoint.
    pub compared: u64,
    /// How often what there was of one was let go of.
    pub short: u64,
}

impl Looks {
    /// After a step: asks for a view, takes one in, or lets one go.
    pub fn go_on(&mut self, job: &Local, random: &mut Random, disk: &SimDisk, once_in: u64) {
        if let Some(asked) = self.asked.take() {
            match asked.try_wait() {
                Ok(None) => {
                    self.asked = Some(asked);
                    self.short += u64::from(random.one_in(2 * once_in) && job.run_short());
                }
                Ok(Some(view)) => self.take(view, disk),
                // The attempt failed, or the epoch was given up.
                Err(_) => {}
            }
        } else if random.one_in(once_in) {
            self.asked = job.view().ok();
        }
        if !self.held.is_empty() && random.one_in(once_in) {
            self.check(0);
            self.held.remove(0);
        }
    }

    fn take(&mut self, view: View, disk: &SimDisk) {
        let content = content(&view);
        self.taken += 1;
        let durable = Reader::open_on(Box::new(disk.clone())).and_then(|reader| reader.read(view.epoch()));
        if let Ok(restored) = durable {
            for entry in restored.entries.iter().filter(|entry| entry.paged) {
                let key = (entry.operator.clone(), entry.state.clone(), entry.task);
                // Of a task that had finished there is nothing in a view.
                if let Some(viewed) = content.get(&key) {
                    assert_eq!(
                        *viewed,
                        stored(entry),
                        "{key:?} in the view and in the checkpoint of epoch {}",
                        view.epoch()
                    );
                    self.compared += 1;
                }
            }
        }
        self.held.push((view, content));
    }

    fn check(&self, at: usize) {
        let (view, then) = &self.held[at];
        assert_eq!(content(view), *then, "the view of epoch {} has changed while it was held", view.epoch());
    }

    /// The start is over.
    pub fn end(&self) {
        (0..self.held.len()).for_each(|at| self.check(at));
    }
}

fn content(view: &View) -> Content {
    let mut content = Content::new();
    view.each_row(|operator, state, task, key, value| {
        add(content.entry((operator.to_owned(), state.to_owned(), task)).or_default(), key, value);
    });
    content
}

fn stored(entry: &RestoredEntry) -> (u64, u64) {
    let pages = PartPages::Here(entry.pages().expect("it was readable a moment ago").collect());
    let rows = Rows::new(&Part { root: &entry.root, pages }).expect("it is a table");
    let mut sum = (0, 0);
    rows.iter().map(|row| row.expect("it is whole")).for_each(|(key, value)| add(&mut sum, &key, &value));
    sum
}

fn add(sum: &mut (u64, u64), key: &[u8], value: &[u8]) {
    let mut bytes = Vec::new();
    (key.to_vec(), value.to_vec()).encode(&mut bytes);
    *sum = (sum.0 + 1, sum.1.wrapping_add(crate::state::Hasher::default().hash_bytes(&bytes)));
}
