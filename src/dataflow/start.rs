//! From a drawing to a job that is ready to run: checks, the store, what it holds, the places of sinks, the tasks.
//!
//! The order matters. The store is locked before anything is read or written; what a snapshot lists is committed before
//! any writer opens (protocols, rules 40 and 43); and nothing outside the store and the output folders is touched
//! before all checks have passed.

use super::back::{self, WayBack};
use super::build::{self, Start};
use super::drawing::{Drawing, SinkDrawn};
use crate::checkpoint::{Coordinator, Timing};
use crate::clock::Clock;
use crate::error::{BuildError, Error, RestoreError, StoreError};
use crate::graph::{self, Keeps, Settings};
use crate::operator::{Part, Place, SplitState, value};
use crate::page::Pool;
use crate::runtime::{
    Checkpoints, Config, Coordination, Header, Made, PARTS, Shared, SinkState, StageConfig, StatePlace, allowed_cores,
    caught_at,
};
use crate::snapshot::{Durability, Restored, Store, StoreOptions};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::channel;

pub(super) fn make(drawing: &Drawing, mut config: Config) -> Result<Made, Error> {
    check(drawing, &config)?;
    let cores = allowed_cores(&config)?;
    let numbers: Vec<usize> = cores.iter().enumerate().map(|(at, core)| core.map_or(at, |core| core.id)).collect();
    let plan = graph::plan(&drawing.graph, &settings(&config, &numbers)?)?;

    let Ground { mut store, mut snapshot, header, place, way_back } = Ground::open(drawing, &mut config)?;
    let splits = find_splits(drawing, snapshot.as_ref())?;
    let mut sinks = claim_sinks(drawing, &place)?;
    if let (Some(way_back), Some(store)) = (way_back, &mut store) {
        snapshot = way_back.go(store, snapshot, &header, &mut sinks)?;
    }
    recover_sinks(&mut sinks, snapshot.as_ref())?;
    let restored = snapshot.as_ref().map(|snapshot| snapshot.epoch);

    let clock = config.clock.clone().unwrap_or_else(Clock::system);
    let epoch = restored.unwrap_or(0);
    let shared = Arc::new(Shared::new(epoch, store.is_some(), clock.clone(), config.rate_per_s));
    let page_bytes = store.as_ref().map_or(PAGE_BYTES, Store::page_bytes) as usize;
    let start = Start {
        place,
        splits,
        restored: snapshot.map_or_else(Vec::new, |snapshot| snapshot.entries),
        epoch,
        pool: Pool::new(page_bytes, config.state_bytes_max),
        hasher: crate::state::Hasher::new(header.hash_seed),
        meter: shared.clone(),
    };
    let finished = header.finished;
    let tasks = if finished { Vec::new() } else { build::tasks(drawing, &config, &plan, &start)? };
    let machine = Coordinator::new(plan.tasks.len(), epoch, timing(config.checkpoints.as_ref()), clock.now_ns());
    let (events, heard) = channel();
    let coordination = Coordination::new(shared.clone(), machine, store, header, sinks, heard);
    let tasks = plan.tasks.iter().map(|task| task.worker).zip(tasks).collect();
    Ok(Made { config, shared, tasks, coordination, events, cores, restored, finished })
}

/// What a job starts from: its store, and what that holds.
struct Ground {
    store: Option<Store>,
    snapshot: Option<Restored>,
    /// Of the snapshot, for the next start; or a fresh one.
    header: Header,
    place: Place,
    /// The snapshot is not the newest epoch, or is one by which somebody went back.
    way_back: Option<WayBack>,
}

impl Ground {
    fn open(drawing: &Drawing, config: &mut Config) -> Result<Self, Error> {
        let sync = config.checkpoints.as_ref().is_some_and(|kept| kept.durability == Durability::PowerLoss);
        let store = config.checkpoints.as_mut().map(open_store).transpose()?;
        let (from_epoch, accepts) =
            config.checkpoints.as_mut().map_or((None, false), |kept| (kept.from_epoch.take(), kept.accept_duplicates));
        let snapshot = store.as_ref().map(|store| back::read(store, from_epoch)).transpose()?.flatten();
        let way_back = WayBack::find(store.as_ref(), snapshot.as_ref(), accepts)?;
        let mut header = match &snapshot {
            Some(snapshot) => check_snapshot(drawing, snapshot)?,
            None => Header::fresh(&drawing.graph.name),
        };
        header.attempt = header.attempt.max(store.as_ref().map_or(0, back::attempts) + 1);
        let (store_id, restored) = (store.as_ref().map(Store::id), snapshot.is_some());
        let place = Place { store_id, restored, attempt: header.attempt, sync };
        Ok(Self { store, snapshot, header, place, way_back })
    }
}

/// Bytes of a page of state, unless the store has others.
const PAGE_BYTES: u32 = 16 * 1024;

fn check(drawing: &Drawing, config: &Config) -> Result<(), BuildError> {
    if let Some(BuildError::TwoDataflows { operator }) = &drawing.mistake {
        return Err(BuildError::TwoDataflows { operator: operator.clone() });
    }
    drawing.graph.validate()?;
    build::check_ports(drawing)?;
    config.validate()?;
    match drawing.sinks.iter().find(|sink| sink.exactly_once && config.checkpoints.is_none()) {
        Some(sink) => Err(BuildError::NeedsCheckpoints { operator: sink.name.to_string() }),
        None => Ok(()),
    }
}

/// What the configuration says about the layout, for one worker on each of `cores`.
fn settings(config: &Config, cores: &[usize]) -> Result<Settings, BuildError> {
    let of_job = || cores.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    let worker_of = |stage: &String, core: usize| {
        let worker = cores.iter().position(|other| *other == core);
        worker.ok_or_else(|| BuildError::StageCore { stage: stage.clone(), core, cores: of_job() })
    };
    let stage = |(name, stage): (&String, &StageConfig)| {
        let workers = stage.cores.iter().map(|core| worker_of(name, *core)).collect::<Result<_, _>>()?;
        Ok((name.clone(), (stage.parallelism, workers)))
    };
    Ok(Settings {
        workers: cores.len(),
        parallelism: config.parallelism.unwrap_or(cores.len() as u32),
        stages: config.stages.iter().map(stage).collect::<Result<_, BuildError>>()?,
    })
}

fn timing(checkpoints: Option<&Checkpoints>) -> Timing {
    let ns = |duration: std::time::Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    Timing {
        interval_ns: checkpoints.and_then(|checkpoints| checkpoints.interval).map(ns),
        timeout_ns: checkpoints.map(|checkpoints| ns(checkpoints.timeout)),
    }
}

fn open_store(checkpoints: &mut Checkpoints) -> Result<Store, StoreError> {
    match checkpoints.place.take().expect("the configuration has been checked") {
        StatePlace::Open(store) => Ok(*store),
        StatePlace::Folder(folder) => {
            let Checkpoints { keep, durability, sink, .. } = *checkpoints;
            Store::open(
                &folder,
                StoreOptions { keep, durability, sink, page_bytes: PAGE_BYTES, ..StoreOptions::default() },
            )
        }
    }
}

/// Is it this job's, and does every state find its operator?
fn check_snapshot(drawing: &Drawing, snapshot: &Restored) -> Result<Header, Error> {
    let header = Header::read(&snapshot.header, &drawing.graph.name)?;
    let kept: BTreeSet<&str> = snapshot.entries.iter().map(|entry| entry.operator.as_str()).collect();
    let operators = drawing.graph.operators().filter(|operator| operator.keeps != Keeps::Nothing);
    let drawn: BTreeSet<&str> = operators.map(|operator| operator.name.as_str()).collect();
    if kept == drawn {
        return Ok(header);
    }
    let list = |names: Vec<&&str>| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    Err(Error::Restore(RestoreError::Operators {
        epoch: snapshot.epoch,
        snapshot_only: list(kept.difference(&drawn).collect()),
        dataflow_only: list(drawn.difference(&kept).collect()),
    }))
}

/// The splits of each source, of all its tasks together (protocols, rule 38).
fn find_splits(drawing: &Drawing, snapshot: Option<&Restored>) -> Result<BTreeMap<Arc<str>, Vec<SplitState>>, Error> {
    let mut found = BTreeMap::new();
    for source in &drawing.sources {
        let restored = snapshot.map(|snapshot| {
            let entries = snapshot.entries.iter().filter(|entry| entry.operator == *source.name);
            let splits = entries.map(|entry| value::<Vec<SplitState>>(entry, snapshot.epoch));
            splits.collect::<Result<Vec<_>, _>>().map(|splits| splits.concat())
        });
        let restored = restored.transpose()?;
        let splits = caught_at(&source.name, || (source.find_splits)(restored))?;
        found.insert(source.name.clone(), splits);
    }
    Ok(found)
}

/// Claims the places of all sinks.
fn claim_sinks(drawing: &Drawing, place: &Place) -> Result<Vec<SinkState>, Error> {
    let claim = |sink: &SinkDrawn| {
        let committer = caught_at(&sink.name, || (sink.claim)(place))?;
        Ok(SinkState { name: sink.name.clone(), exactly_once: sink.exactly_once, committer, uncommitted: Vec::new() })
    };
    drawing.sinks.iter().map(claim).collect()
}

/// Commits what the snapshot lists (rule 40).
pub(super) fn recover_sinks(sinks: &mut [SinkState], snapshot: Option<&Restored>) -> Result<(), Error> {
    for sink in sinks {
        let listed = snapshot.and_then(|snapshot| {
            let entry = snapshot.entries.iter().find(|entry| entry.operator == *sink.name && entry.state == PARTS);
            entry.map(|entry| value::<Vec<Vec<u8>>>(entry, snapshot.epoch))
        });
        let listed: Vec<Part> = listed.transpose()?.unwrap_or_default().into_iter().map(Part).collect();
        caught_at(&sink.name, || Ok(sink.committer.recover(&listed)?))?;
    }
    Ok(())
}
