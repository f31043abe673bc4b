//! From a drawing to a job that is ready to run: checks, the store, what it holds, the places of sinks, the tasks.
//!
//! The order matters. The store is locked before anything is read or written; what a snapshot lists is committed before
//! any writer opens (protocols, rules 40 and 43); and nothing outside the store and the output folders is touched
//! before all checks have passed.

use super::back::{self, WayBack};
use super::build::{self, Start};
use super::channels;
use super::drawing::{Drawing, SinkDrawn};
use super::evolved::{check_tables, tell_names};
use super::renames::Renames;
use crate::checkpoint::{Coordinator, Timing};
use crate::clock::Clock;
use crate::error::{BuildError, Error, RestoreError, StoreError};
use crate::graph::{self, Keeps, Plan, Settings};
use crate::operator::{Part, Place, SPLITS, SplitState, blamed, value};
use crate::page::Pool;
use crate::runtime::{
    Care, Checkpoints, Config, Coordination, Header, Kept, Made, Make, PARTS, Shared, SinkState, StageConfig,
    StatePlace, allowed_cores,
};
use crate::snapshot::{Durability, Restored, RestoredEntry, Side, Store, StoreOptions};
use core_affinity::CoreId;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// A drawing and how it is to run, checked. A job can be made of it any number of times: after a failure, of the store that
/// the run before has left.
pub(super) struct Recipe {
    drawing: Drawing,
    config: Config,
    plan: Plan,
    /// One for each worker; none: it is not pinned.
    cores: Vec<Option<CoreId>>,
}

impl Recipe {
    /// Takes the drawing, if all is well: then every stream has ended, and nobody is left to draw.
    pub(super) fn new(drawing: &RefCell<Drawing>, mut config: Config) -> Result<Self, Error> {
        // From here on: opening the store counts as well.
        config.clock.get_or_insert_with(Clock::system);
        let drawn = drawing.borrow();
        check(&drawn, &config)?;
        let cores = allowed_cores(&config)?;
        let numbers: Vec<usize> = cores.iter().enumerate().map(|(at, core)| core.map_or(at, |core| core.id)).collect();
        let plan = graph::plan(&drawn.graph, &settings(&config, &numbers)?)?;
        drawn.outside.started();
        drop(drawn);
        let mut drawing = drawing.take();
        drawing.graph.name_edges();
        Ok(Self { drawing, config, plan, cores })
    }

    #[cfg(test)]
    pub(super) fn graph(&self) -> &graph::Graph {
        &self.drawing.graph
    }

    /// Opens the store, or takes the one that was given; none for a job without checkpoints.
    pub(super) fn open_store(&mut self) -> Result<Option<Store>, StoreError> {
        let Some(checkpoints) = &mut self.config.checkpoints else { return Ok(None) };
        match checkpoints.place.take().expect("the configuration has been checked") {
            StatePlace::Open(store) => Ok(Some(*store)),
            StatePlace::Folder(folder) => {
                let store = open_folder(checkpoints, &folder)?;
                checkpoints.place = Some(StatePlace::Folder(folder));
                Ok(Some(store))
            }
        }
    }

    fn shared(&self, kept: &Kept, epoch: u64) -> Shared {
        let page_bytes = kept.store.as_ref().map_or(PAGE_BYTES, Store::page_bytes) as usize;
        let memory = Pool::new(page_bytes, self.config.state_bytes_max);
        let Config { clock, rate_per_s, .. } = &self.config;
        match &kept.before {
            Some(before) => before.next(epoch, memory),
            None => {
                let clock = clock.clone().unwrap_or_else(Clock::system);
                Shared::new(epoch, kept.store.is_some(), clock, *rate_per_s, self.drawing.outside.clone(), memory)
            }
        }
    }
}

impl Make for Recipe {
    fn config(&self) -> &Config {
        &self.config
    }

    fn name(&self) -> &str {
        &self.drawing.graph.name
    }

    fn make(&self, kept: &mut Kept) -> Result<Made, Error> {
        kept.store.as_mut().map_or(Ok(()), Store::settle)?;
        let Self { drawing, config, plan, cores } = self;
        let Ground { mut snapshot, mut header, place, way_back, renames, renamed } =
            Ground::find(drawing, config, kept)?;
        let splits = find_splits(drawing, snapshot.as_ref())?;
        let mut sinks = claim_sinks(drawing, &place)?;
        if let (Some(way_back), Some(store)) = (way_back, &mut kept.store) {
            snapshot = way_back.go(store, snapshot, &mut header, &mut sinks, &renames)?;
        }
        tell_names(kept.store.as_mut(), drawing, snapshot.as_ref(), &renamed)?;
        recover_sinks(&mut sinks, snapshot.as_ref())?;
        let restored = snapshot.as_ref().map(|snapshot| snapshot.epoch);

        let epoch = restored.unwrap_or(0);
        let shared = Arc::new(self.shared(kept, epoch));
        // After a failure, until what failed has been passed.
        let care = (config.careful || kept.before.is_some())
            .then(|| Care::new(shared.clone(), Some(epoch).filter(|_| !config.careful)));
        let start = Start {
            place,
            splits,
            restored: snapshot.map_or_else(Vec::new, |snapshot| snapshot.entries),
            epoch,
            pool: shared.memory.clone(),
            hasher: crate::state::Hasher::new(header.fields.hash_seed),
            meter: shared.clone(),
            care,
        };
        let finished = header.fields.finished;
        let (tasks, dials) = if finished { Default::default() } else { build::tasks(drawing, config, plan, &start)? };
        let now_ns = shared.meter.clock().now_ns();
        let machine =
            Coordinator::new(config.protocol(), plan.tasks.len(), epoch, timing(config.checkpoints.as_ref()), now_ns);
        let heard = kept.heard.take().expect("each attempt gives back what it hears with");
        let ledger = kept.ledger.clone();
        let coordination = Coordination::new(shared.clone(), machine, kept.store.take(), header, sinks, heard, ledger);
        let tasks = plan.tasks.iter().map(|task| task.worker).zip(tasks).collect();
        Ok(Made { shared, tasks, dials, coordination, cores: cores.clone(), restored, finished })
    }
}

/// What a job starts from: what its store holds.
struct Ground<'a> {
    snapshot: Option<Restored>,
    /// Of the snapshot, for the next start; or a fresh one.
    header: Header,
    place: Place,
    /// The snapshot is not the newest epoch, or is one by which somebody went back.
    way_back: Option<WayBack>,
    renames: Renames<'a>,
    /// What has been renamed in the snapshot: old and new names.
    renamed: Vec<(String, String)>,
}

impl<'a> Ground<'a> {
    fn find(drawing: &'a Drawing, config: &'a Config, kept: &mut Kept) -> Result<Self, Error> {
        let renames = Renames::new(config.checkpoints.as_ref().map_or(&[], |kept| &kept.renamed), drawing)?;
        let store = kept.store.as_ref();
        let sync = config.checkpoints.as_ref().is_some_and(|kept| kept.durability == Durability::PowerLoss);
        let verify = config.checkpoints.as_ref().is_some_and(|kept| kept.verify_on_restore);
        let accepts = config.checkpoints.as_ref().is_some_and(|kept| kept.accept_duplicates);
        // Asked for once: a restart goes on from where it is by then.
        let from_epoch = config.checkpoints.as_ref().and_then(|kept| kept.from_epoch).filter(|_| kept.before.is_none());
        let mut snapshot = store.map(|store| back::read(store, from_epoch, verify)).transpose()?.flatten();
        let renamed = snapshot.as_mut().map(|snapshot| renames.apply(snapshot)).transpose()?.unwrap_or_default();
        let way_back = WayBack::find(store, snapshot.as_ref(), accepts)?;
        let mut header = match &snapshot {
            Some(snapshot) => check_snapshot(drawing, snapshot)?,
            None => Header::fresh(&drawing.graph.name),
        };
        // Also where the attempt before has made no checkpoint that could say so.
        let attempt = &mut header.fields.attempt;
        *attempt = (*attempt).max(kept.attempt + 1).max(store.map_or(0, back::attempts) + 1);
        kept.attempt = *attempt;
        let (store_id, restored) = (store.map(Store::id), snapshot.is_some());
        let newest_epoch = store.and_then(Store::newest).unwrap_or(0);
        let place = Place { store_id, restored, newest_epoch, attempt: kept.attempt, sync };
        Ok(Self { snapshot, header, place, way_back, renames, renamed })
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
    build::check_initiators(&drawing.graph, config)?;
    match drawing.sinks.iter().find(|sink| sink.exactly_once).map(|sink| sink.name.to_string()) {
        Some(operator) if config.checkpoints.is_none() => Err(BuildError::NeedsCheckpoints { operator }),
        Some(operator) if !config.protocol().is_exact() => Err(BuildError::NeedsExactProtocol { operator }),
        _ => Ok(()),
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
        unaligned_after_ns: checkpoints.map(|checkpoints| ns(checkpoints.unaligned_after)),
    }
}

fn open_folder(checkpoints: &Checkpoints, folder: &Path) -> Result<Store, StoreError> {
    let Checkpoints { keep, durability, sink, writer_threads, writer_bytes_per_s, .. } = *checkpoints;
    let options = StoreOptions {
        keep,
        durability,
        sink,
        page_bytes: PAGE_BYTES,
        writer_threads,
        bandwidth_bytes_per_s: writer_bytes_per_s,
        ..StoreOptions::default()
    };
    match &checkpoints.from_savepoint {
        Some(file) => Store::open_from(file, folder, options),
        None => Store::open(folder, options),
    }
}

/// Is it this job's, and does every state find its operator?
fn check_snapshot(drawing: &Drawing, snapshot: &Restored) -> Result<Header, Error> {
    let header = Header::read(&snapshot.header, &drawing.graph.name)?;
    channels::check(drawing, snapshot)?;
    let of_operators = snapshot.entries.iter().filter(|entry| Side::of_state(&entry.state).is_none());
    let kept: BTreeSet<&str> = of_operators.map(|entry| entry.operator.as_str()).collect();
    let operators = drawing.graph.operators().filter(|operator| operator.keeps != Keeps::Nothing);
    let drawn: BTreeSet<&str> = operators.map(|operator| operator.name.as_str()).collect();
    if kept == drawn {
        // Here already, for nobody opens the tables of a job that has finished.
        check_tables(drawing, snapshot)?;
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
            let is_ours = |entry: &&RestoredEntry| entry.operator == *source.name && entry.state == SPLITS;
            let entries = snapshot.entries.iter().filter(is_ours);
            let splits = entries.map(|entry| value::<Vec<SplitState>>(entry, snapshot.epoch));
            splits.collect::<Result<Vec<_>, _>>().map(|splits| splits.concat())
        });
        found.insert(source.name.clone(), {
            let restored = restored.transpose()?;
            blamed(&source.name, || (source.find_splits)(restored))?
        });
    }
    Ok(found)
}

/// Claims the places of all sinks.
fn claim_sinks(drawing: &Drawing, place: &Place) -> Result<Vec<SinkState>, Error> {
    let claim = |sink: &SinkDrawn| {
        let committer = blamed(&sink.name, || (sink.claim)(place))?;
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
        blamed(&sink.name, || sink.committer.recover(&listed))?;
    }
    Ok(())
}

#[cfg(all(test, not(snapring_loom)))]
mod tests {
    use super::*;
    use crate::connector::{Generate, Memory};
    use crate::dataflow::Dataflow;
    use crate::snapshot::sim::SimDisk;

    #[test]
    fn a_job_is_made_any_number_of_times_on_any_thread() {
        let sink = Memory::new();
        let flow = Dataflow::new("again");
        let (one, other) = flow.source("numbers", Generate::new(10, 2, |index| index)).fork();
        let sums = one.merge(other).key_by(|number| number % 3).fold("sums", 0u64, |sum, number| *sum += number);
        sums.map(|(_, sum)| sum).sink("sink", sink);
        let store = Store::open_on(Box::new(SimDisk::new()), StoreOptions::default()).unwrap();
        let config = Config::new().unpinned_workers(2).checkpoints(Checkpoints::on_demand().store(store));
        let mut recipe = Recipe::new(&flow.drawing, config).unwrap();
        let again = move || {
            let (mut kept, events) = Kept::new(recipe.open_store().unwrap());
            let first = recipe.make(&mut kept).unwrap();
            let (tasks, shared) = (first.tasks.len(), first.shared.clone());
            assert!(tasks > 2 && kept.store.is_none());
            let (store, heard) = first.coordination.dissolve();
            kept = Kept { store, heard: Some(heard), before: Some(shared), ..kept };
            assert_eq!(recipe.make(&mut kept).unwrap().tasks.len(), tasks);
            drop(events);
        };
        std::thread::spawn(again).join().unwrap();
    }

    #[test]
    fn what_is_refused_can_be_drawn_on() {
        let flow = Dataflow::new("unread");
        let stream = flow.source("numbers", Generate::new(10, 2, |index| index));
        assert!(matches!(Recipe::new(&flow.drawing, Config::new()), Err(Error::Build(BuildError::Unread { .. }))));
        stream.map(|number| number).sink("sink", crate::connector::Discard::new());
        assert!(Recipe::new(&flow.drawing, Config::new()).is_ok());
    }
}
