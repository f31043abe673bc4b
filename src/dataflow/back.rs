//! Going back behind the newest epoch (protocols, rule 41): which epoch a job starts from, and what must have happened before
//! it may. It must not know how a sink takes back what it has committed.
//!
//! 1. Before anything is touched: the older epoch fits the job, and every exactly-once sink can retract, or the user accepts
//!    duplicates.
//! 2. What the newest epoch lists is committed, if it can be read: who goes back to it later will find it.
//! 3. The older epoch is committed again, as the newest; its header says from where to where somebody went back. From here
//!    on no start takes the epochs in between any more, whatever happens.
//! 4. Only then the sinks take back what they have committed for those epochs. A start from an epoch that says so does this
//!    again: the one before may not have come to its end. No later epoch is made before, so that they need not.
//! 5. Every epoch says which lower ones it does not build on: who goes back to it later takes back what those have committed.

use super::renames::Renames;
use super::start::recover_sinks;
use crate::error::{Error, RestoreError, StoreError};
use crate::operator::{WentBack, blamed};
use crate::runtime::{CheckpointInfo, Header, SinkState};
use crate::snapshot::{Restored, Store};

/// How a job goes back.
pub(super) struct WayBack {
    back: WentBack,
    /// The epoch that says so is there already.
    done: bool,
    accepts_duplicates: bool,
}

impl WayBack {
    /// Whether the snapshot is behind the newest epoch, or itself an epoch by which somebody went back.
    pub(super) fn find(
        store: Option<&Store>,
        snapshot: Option<&Restored>,
        accepts_duplicates: bool,
    ) -> Result<Option<Self>, Error> {
        let (Some(snapshot), Some(newest)) = (snapshot, store.and_then(Store::newest)) else { return Ok(None) };
        let CheckpointInfo { undone, went_back: said, .. } = CheckpointInfo::read(&snapshot.header)?;
        if snapshot.epoch < newest {
            let back = WentBack::new(snapshot.epoch, newest, undone);
            return Ok(Some(Self { back, done: false, accepts_duplicates }));
        }
        Ok(said.map(|back| Self { back, done: true, accepts_duplicates }))
    }

    /// Goes back, and gives the snapshot to start from.
    pub(super) fn go(
        &self,
        store: &mut Store,
        snapshot: Option<Restored>,
        header: &mut Header,
        sinks: &mut [SinkState],
        renames: &Renames<'_>,
    ) -> Result<Option<Restored>, Error> {
        let mut snapshot = snapshot;
        if !self.done {
            self.check(sinks)?;
            match store.outline(self.back.from) {
                Ok(mut newest) => {
                    renames.apply(&mut newest)?;
                    recover_sinks(sinks, Some(&newest))?;
                }
                // Nobody will go back to it.
                Err(StoreError::Corrupt { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            // Blocks of the older epoch may not be kept by anything but the new one.
            drop(snapshot.take());
            header.undone.clone_from(&self.back.undone);
            store.commit_again(self.back.to, self.back.as_epoch(), header.bytes(Some(&self.back)))?;
            let mut again = store.restore(self.back.as_epoch())?;
            renames.apply(&mut again)?;
            snapshot = Some(again);
        }
        for sink in sinks.iter_mut() {
            blamed(&sink.name, || sink.committer.retract(&self.back))?;
        }
        Ok(snapshot)
    }

    fn check(&self, sinks: &[SinkState]) -> Result<(), RestoreError> {
        let WentBack { to, from, .. } = self.back;
        match sinks.iter().find(|sink| sink.exactly_once && !sink.committer.can_retract()) {
            Some(sink) if !self.accepts_duplicates => {
                Err(RestoreError::NoRetraction { sink: sink.name.to_string(), to, from })
            }
            _ => Ok(()),
        }
    }
}

/// Reads the epoch that is asked for, or the newest one; none: the store has none.
pub(super) fn read(store: &Store, epoch: Option<u64>, verify: bool) -> Result<Option<Restored>, StoreError> {
    let Some(epoch) = epoch.or(store.newest()) else { return Ok(None) };
    let verified = if verify { store.verify(epoch) } else { Ok(()) };
    verified.and_then(|()| store.restore(epoch)).map(Some).map_err(|error| match error {
        StoreError::Corrupt { path, what } => {
            StoreError::Corrupt { path, what: format!("{what}{}", older(store, epoch)) }
        }
        other => other,
    })
}

/// Where to go from an epoch that is damaged.
fn older(store: &Store, epoch: u64) -> String {
    let kept: Vec<u64> = store.epochs().iter().map(|info| info.epoch).filter(|kept| *kept < epoch).collect();
    match &kept[..] {
        [] => "; no older epoch is kept".to_owned(),
        kept => format!(
            "; older epochs are kept: {kept:?}, and one of them is taken if asked for (`--epoch`, `Checkpoints::from_epoch`)"
        ),
    }
}

/// The highest number of a start among the kept epochs; those that cannot be read do not count.
pub(super) fn attempts(store: &Store) -> u32 {
    let info = |epoch| CheckpointInfo::read(&store.header(epoch).ok()?).ok();
    store.epochs().iter().filter_map(|kept| info(kept.epoch)).map(|info| info.attempt).max().unwrap_or(0)
}
