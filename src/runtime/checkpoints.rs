//! When checkpoints are made, how, and where they are kept: what a user says about it.

use super::protocol::Initiators;
use crate::checkpoint::Protocol;
use crate::snapshot::{Durability, SinkKind, Store};
use std::path::PathBuf;
use std::time::Duration;

/// When checkpoints are made, and where they are kept.
#[derive(Debug)]
#[must_use]
pub struct Checkpoints {
    pub(crate) interval: Option<Duration>,
    pub(crate) timeout: Duration,
    pub(crate) keep: u32,
    pub(crate) durability: Durability,
    pub(crate) sink: SinkKind,
    pub(crate) from_epoch: Option<u64>,
    pub(crate) accept_duplicates: bool,
    pub(crate) place: Option<StatePlace>,
    pub(crate) from_savepoint: Option<PathBuf>,
    pub(crate) verify_on_restore: bool,
    pub(crate) hydrate: Hydrate,
    pub(crate) protocol: Protocol,
    pub(crate) initiators: Option<Initiators>,
    pub(crate) unaligned_after: Duration,
    /// Old and new names.
    pub(crate) renamed: Vec<(String, String)>,
    pub(crate) writer_threads: usize,
    pub(crate) writer_bytes_per_s: Option<u64>,
}

/// When restored state is read from the snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hydrate {
    /// What a record needs, at once; the rest in the background: each task reads a page whenever it has no input, and under
    /// load one every 16 batches, or fewer: a busy task spends 3 % of its time on it at most.
    #[default]
    Background,
    /// Only what a record needs. What is never needed stays in the file and takes no memory.
    OnTouch,
}

/// Where checkpoints are kept.
#[derive(Debug)]
pub(crate) enum StatePlace {
    Folder(PathBuf),
    Open(Box<Store>),
}

impl Checkpoints {
    /// One begins every `interval`, counted from begin to begin; the next waits until the last is durable or given up, and under
    /// [`Protocol::StopTheWorld`] until the job has then run for as long as it stood still.
    pub fn every(interval: Duration) -> Self {
        Self { interval: Some(interval), ..Self::on_demand() }
    }

    /// Only when [`Job::checkpoint`](crate::runtime::Job::checkpoint) asks, and a last one at the end.
    pub fn on_demand() -> Self {
        Self {
            interval: None,
            timeout: Duration::from_secs(600),
            keep: 3,
            durability: Durability::PowerLoss,
            sink: SinkKind::default(),
            from_epoch: None,
            accept_duplicates: false,
            place: None,
            from_savepoint: None,
            verify_on_restore: false,
            hydrate: Hydrate::default(),
            protocol: Protocol::default(),
            initiators: None,
            unaligned_after: Duration::from_millis(20),
            renamed: Vec::new(),
            writer_threads: 0,
            writer_bytes_per_s: None,
        }
    }

    /// How the tasks agree on a cut. Default: [`Protocol::Aligned`]. A checkpoint can be restored under another one than made it.
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = protocol;
        self
    }

    /// Who begins a cut, for [`Protocol::ChandyLamport`] and [`Protocol::Unaligned`]. Default: under the latter all tasks, so that
    /// no cut has to travel; under the former the sources, for there each initiator sends markers that take room in the rings.
    pub fn initiators(mut self, initiators: Initiators) -> Self {
        self.initiators = Some(initiators);
        self
    }

    /// For [`Protocol::AlignedThenUnaligned`]: after so long what has not been aligned is cut unaligned. Default: 20 ms.
    pub fn unaligned_after(mut self, limit: Duration) -> Self {
        self.unaligned_after = limit;
        self
    }

    /// Who begins, where nothing is said too.
    pub(crate) fn begun_by(&self) -> &Initiators {
        match (&self.initiators, self.protocol) {
            (Some(initiators), _) => initiators,
            (None, Protocol::Unaligned) => &Initiators::All,
            (None, _) => &Initiators::Sources,
        }
    }

    /// The state folder; made if it is missing. One job at a time.
    pub fn to(mut self, folder: impl Into<PathBuf>) -> Self {
        self.place = Some(StatePlace::Folder(folder.into()));
        self
    }

    /// Begins with a savepoint: the state folder must be new or empty, and is begun with a checked copy of this file, from which
    /// the job goes on as from any checkpoint, on whatever machine and at any parallelism. The file is only read, so any number
    /// of jobs can begin with it. An exactly-once sink gets the output folder of the job that made the savepoint, or a copy of
    /// it, without the files of later epochs. It holds until the first checkpoint: a later start, which goes on from that, is
    /// refused with it.
    pub fn from_savepoint(mut self, file: impl Into<PathBuf>) -> Self {
        self.from_savepoint = Some(file.into());
        self
    }

    /// A store that is open already, be it a simulated one.
    pub fn store(mut self, store: Store) -> Self {
        self.place = Some(StatePlace::Open(Box::new(store)));
        self
    }

    /// A checkpoint whose cut takes longer is given up. Default: 10 minutes.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Checkpoints to keep, at least 2. Default: 3.
    pub fn keep(mut self, checkpoints: u32) -> Self {
        self.keep = checkpoints;
        self
    }

    /// Goes on from this kept epoch instead of the newest one. What was done after it is done again: sinks take back what they
    /// have committed since, as the file sink does by moving parts aside into a subfolder. It holds for the first start only,
    /// and makes the old epoch the newest one, so that any later start goes on from there.
    pub fn from_epoch(mut self, epoch: u64) -> Self {
        self.from_epoch = Some(epoch);
        self
    }

    /// With [`Checkpoints::from_epoch`]: goes back even where an exactly-once sink cannot take back what it has committed.
    /// Those results will be there twice.
    pub fn accept_duplicates(mut self) -> Self {
        self.accept_duplicates = true;
        self
    }

    /// What a checkpoint has of the operator `old` is that of `new`: for a keyed operator, a source, an input, an exactly-once
    /// sink, a stage or a feedback that has been given another name. To be said for each; a rule may stay when the newest
    /// checkpoint has the new name by now.
    ///
    /// A start is refused if the dataflow has no `new`, if the checkpoint has both or neither, or if two rules meet.
    pub fn renamed(mut self, old: impl Into<String>, new: impl Into<String>) -> Self {
        self.renamed.push((old.into(), new.into()));
        self
    }

    /// How the store's file is written. Default: by system calls.
    pub fn sink(mut self, sink: SinkKind) -> Self {
        self.sink = sink;
        self
    }

    /// Threads that copy large checkpoints into the store's file, and take their checksums on the way; 1: the one that
    /// coordinates the job. Default, and 0: half as many as there are cores, at most 4.
    pub fn writer_threads(mut self, threads: usize) -> Self {
        self.writer_threads = threads;
        self
    }

    /// Writes checkpoints no faster than this, so that operators keep the memory bus and others the disk: they take longer for
    /// it, and where they take longer than the interval it stretches. Default: as fast as it goes.
    pub fn writer_bytes_per_s(mut self, bytes_per_s: u64) -> Self {
        self.writer_bytes_per_s = Some(bytes_per_s);
        self
    }

    /// Reads and checks all state before the job goes on from it, instead of each page when it is first needed: a start that
    /// takes longer the more state there is, and no damage that shows later. Default: false.
    pub fn verify_on_restore(mut self, verify: bool) -> Self {
        self.verify_on_restore = verify;
        self
    }

    /// When restored state is read. Default: in the background.
    pub fn hydrate(mut self, hydrate: Hydrate) -> Self {
        self.hydrate = hydrate;
        self
    }

    /// What a checkpoint must survive. Default: a loss of power.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }
}

#[cfg(all(test, not(snapring_loom)))]
mod tests {
    use super::*;

    #[test]
    fn who_begins_is_by_protocol_unless_it_is_said() {
        let begun_by = |checkpoints: Checkpoints| checkpoints.begun_by().clone();
        let under = |protocol| Checkpoints::on_demand().protocol(protocol);
        assert_eq!(begun_by(under(Protocol::Unaligned)), Initiators::All);
        assert_eq!(begun_by(under(Protocol::ChandyLamport)), Initiators::Sources);
        let said = under(Protocol::Unaligned).initiators(Initiators::Sources);
        assert_eq!(begun_by(said), Initiators::Sources);
    }
}
