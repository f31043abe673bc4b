//! Going back behind the newest checkpoint, and forth again: what is committed in the end is what an undisturbed run gives,
//! whatever happens on the way.

use snapring::connector::{Csv, Generate, Memory};
use snapring::dataflow::Dataflow;
use snapring::error::{ConnectorError, Error, Failed};
use snapring::operator::{Committer, Part, Place, Progress, Sink, WentBack, Writer};
use snapring::runtime::{CheckpointInfo, Checkpoints, Config, Local};
use snapring::snapshot::sim::{Incident, SimDisk};
use snapring::snapshot::{BLOCK_BYTES, Reader, Store, StoreOptions};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const EVENTS: u64 = 3000;

fn options() -> StoreOptions {
    StoreOptions { keep: 4, page_bytes: 4096, segment_bytes: 64 << 10, writer_threads: 1, ..StoreOptions::default() }
}

fn config(disk: &SimDisk, from_epoch: Option<u64>) -> Result<Config, Error> {
    Ok(with(Checkpoints::on_demand().store(Store::open_on(Box::new(disk.clone()), options())?), from_epoch))
}

fn with(checkpoints: Checkpoints, from_epoch: Option<u64>) -> Config {
    let checkpoints = match from_epoch {
        Some(epoch) => checkpoints.from_epoch(epoch),
        None => checkpoints,
    };
    Config::new().unpinned_workers(1).parallelism(2).batch_len_max(7).checkpoints(checkpoints)
}

/// Counts by key.
fn draw<S: Sink<In = (u64, u64)>>(sink: S) -> Dataflow {
    let flow = Dataflow::new("counted");
    flow.source("events", Generate::new(EVENTS, 3, |index| index % 50))
        .key_by(|event| *event)
        .count("count")
        .sink("out", sink);
    flow
}

fn expected() -> Vec<(u64, u64)> {
    (0..50).flat_map(|key| (1..=EVENTS / 50).map(move |number| (key, number))).collect()
}

fn assert_complete(mut found: Vec<(u64, u64)>) {
    found.sort_unstable();
    assert!(found == expected(), "{} results and not {}", found.len(), expected().len());
}

/// Steps for a while and takes a checkpoint; gives back its epoch.
fn advance(job: &mut Local) -> Result<u64, Error> {
    for _ in 0..60 {
        assert_ne!(job.step()?, Progress::Done);
    }
    let asked = job.checkpoint()?;
    loop {
        job.step()?;
        if let Some(report) = asked.try_wait()? {
            return Ok(report.epoch);
        }
    }
}

/// A job that has made three checkpoints and some way beyond, and was killed.
fn three_epochs<S: Sink<In = (u64, u64)>>(disk: &SimDisk, sink: S) {
    let mut job = draw(sink).into_local(config(disk, None).unwrap()).unwrap();
    for epoch in 1..4 {
        assert_eq!(advance(&mut job).unwrap(), epoch);
    }
    for _ in 0..50 {
        job.step().unwrap();
    }
    drop(job);
    disk.kill();
}

/// The committed rows of an output folder, and its names, those of subfolders with them.
fn rows(folder: &Path) -> (Vec<(u64, u64)>, Vec<String>) {
    let (mut rows, mut names) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            let within = fs::read_dir(entry.path()).unwrap().map(|file| file.unwrap().file_name());
            names.extend(within.map(|file| format!("{name}/{}", file.into_string().unwrap())));
        } else if name.ends_with(".csv") {
            let text = fs::read_to_string(entry.path()).unwrap();
            rows.extend(text.lines().map(|line| {
                let (key, number) = line.split_once(',').unwrap();
                (key.parse::<u64>().unwrap(), number.parse::<u64>().unwrap())
            }));
            names.push(name);
        }
    }
    names.sort();
    (rows, names)
}

fn epochs_of(names: &[String], prefix: &str) -> Vec<u64> {
    let names = names.iter().filter_map(|name| name.strip_prefix(prefix)?.split('-').next()?.parse().ok());
    let mut epochs: Vec<u64> = names.collect();
    epochs.dedup();
    epochs
}

#[test]
fn files_written_since_are_moved_aside_and_come_back_with_their_epoch() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let sink = || Csv::<(u64, u64)>::exactly_once(&out).unwrap();
    let disk = SimDisk::new();
    three_epochs(&disk, sink());
    let (_, before) = rows(&out);
    assert_eq!(epochs_of(&before, "part-"), [1, 2, 3]);

    let job = draw(sink()).into_local(config(&disk, Some(1)).unwrap()).unwrap();
    assert_eq!(job.restored_epoch(), Some(4));
    drop(job);
    let (_, names) = rows(&out);
    assert_eq!(epochs_of(&names, "part-"), [1]);
    assert_eq!(epochs_of(&names, "superseded-by-0000000004/part-"), [2, 3]);

    // The next start goes on from there by itself …
    let mut job = draw(sink()).into_local(config(&disk, None).unwrap()).unwrap();
    assert_eq!(job.restored_epoch(), Some(4));
    assert_eq!(advance(&mut job).unwrap(), 5);
    drop(job);
    // … and whoever regrets it can go back to where he came from.
    let job = draw(sink()).into_local(config(&disk, Some(3)).unwrap()).unwrap();
    assert_eq!(job.restored_epoch(), Some(6));
    drop(job);
    let (_, names) = rows(&out);
    assert_eq!(epochs_of(&names, "part-"), [1, 2, 3]);
    assert_eq!(epochs_of(&names, "superseded-by-0000000006/part-"), [5]);

    draw(sink()).into_local(config(&disk, None).unwrap()).unwrap().run().unwrap();
    assert_complete(rows(&out).0);
}

#[test]
fn the_inspector_sees_the_way_back_and_the_job() {
    let disk = SimDisk::new();
    let sink = Memory::new();
    three_epochs(&disk, sink.clone());
    let mut job = draw(sink).into_local(config(&disk, Some(2)).unwrap()).unwrap();
    advance(&mut job).unwrap();
    let reader = Reader::open_on(Box::new(disk)).unwrap();
    let infos: BTreeMap<u64, CheckpointInfo> = reader
        .epochs()
        .iter()
        .map(|info| (info.epoch, CheckpointInfo::read(&reader.header(info.epoch).unwrap()).unwrap()))
        .collect();
    assert!(infos.values().all(|info| info.job == "counted" && !info.finished && info.made_unix_ns > 0));
    let back: Vec<_> = infos.iter().map(|(epoch, info)| (*epoch, info.attempt, info.went_back.clone())).collect();
    let went = WentBack { to: 2, from: 3, undone: vec![(3, 3)] };
    assert_eq!(back, [(2, 1, None), (3, 1, None), (4, 2, Some(went)), (5, 2, None)]);
}

#[test]
fn a_crash_at_any_moment_of_going_back_loses_and_doubles_nothing() {
    for power_fails in [false, true] {
        for call in 0.. {
            let (disk, sink) = (SimDisk::new(), Memory::new());
            three_epochs(&disk, sink.clone());
            disk.at(disk.calls() + call, Incident::Crash);
            let went = config(&disk, Some(1)).and_then(|config| draw(sink.clone()).into_local(config));
            let went = went.map(drop).is_ok();
            let mut odd = false;
            disk.crash(|_| {
                odd = !odd;
                !power_fails || odd
            });
            if power_fails {
                sink.lose_power();
            }
            let mut job = draw(sink.clone()).into_local(config(&disk, None).unwrap()).unwrap();
            let restored = job.restored_epoch().unwrap();
            assert!(restored == 4 || !went && restored == 3, "call {call}: {restored}");
            job.run().unwrap();
            assert_complete(sink.committed());
            if went {
                break;
            }
        }
    }
}

/// A memory sink that fails to take back so often, or cannot at all.
#[derive(Clone)]
struct Stubborn {
    inner: Memory<(u64, u64)>,
    failures: Option<Arc<AtomicU32>>,
}

struct StubbornCommitter(Box<dyn Committer>, Option<Arc<AtomicU32>>);

impl Sink for Stubborn {
    type In = (u64, u64);
    type Writer = <Memory<(u64, u64)> as Sink>::Writer;

    fn exactly_once(&self) -> bool {
        true
    }
    fn claim(&self, place: &Place) -> Result<Box<dyn Committer>, ConnectorError> {
        Ok(Box::new(StubbornCommitter(self.inner.claim(place)?, self.failures.clone())))
    }
    fn writer(&self, place: &Place, task: u32) -> Result<Self::Writer, ConnectorError> {
        self.inner.writer(place, task)
    }
}

impl Committer for StubbornCommitter {
    fn recover(&mut self, listed: &[Part]) -> Result<(), ConnectorError> {
        self.0.recover(listed)
    }
    fn can_retract(&self) -> bool {
        self.1.is_some()
    }
    fn retract(&mut self, back: &WentBack) -> Result<(), ConnectorError> {
        let Some(failures) = &self.1 else { return Ok(()) };
        if failures.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
            return Err(ConnectorError::Foreign { path: "out".into(), reason: "not now".into() });
        }
        self.0.retract(back)
    }
    fn sync(&mut self, parts: &[Part]) -> Result<(), ConnectorError> {
        self.0.sync(parts)
    }
    fn commit(&mut self, parts: &[Part]) -> Result<(), ConnectorError> {
        self.0.commit(parts)
    }
}

#[test]
fn what_could_not_be_taken_back_is_taken_back_by_a_later_start() {
    let disk = SimDisk::new();
    let sink = Stubborn { inner: Memory::new(), failures: Some(Arc::new(AtomicU32::new(2))) };
    three_epochs(&disk, sink.clone());
    for from_epoch in [Some(1), None] {
        let error = draw(sink.clone()).into_local(config(&disk, from_epoch).unwrap()).unwrap_err();
        assert!(error.to_string().contains("not now"), "{error}");
    }
    draw(sink.clone()).into_local(config(&disk, None).unwrap()).unwrap().run().unwrap();
    assert_complete(sink.inner.committed());
}

#[test]
fn a_sink_that_cannot_take_back_stops_the_start_unless_duplicates_are_accepted() {
    let disk = SimDisk::new();
    let sink = Stubborn { inner: Memory::new(), failures: None };
    three_epochs(&disk, sink.clone());
    let before = disk.image();
    let error = draw(sink.clone()).into_local(config(&disk, Some(1)).unwrap()).unwrap_err().to_string();
    assert!(error.contains("`out`") && error.contains("from epoch 3 to 1") && error.contains("--accept-duplicates"));
    assert!(disk.image() == before, "nothing is touched");

    let store = Store::open_on(Box::new(disk.clone()), options()).unwrap();
    let accepting = Checkpoints::on_demand().store(store).accept_duplicates();
    drop(draw(sink.clone()).into_local(with(accepting, Some(1))).unwrap());
    // Later starts need not be told again.
    draw(sink.clone()).into_local(config(&disk, None).unwrap()).unwrap().run().unwrap();
    let mut found = sink.inner.committed();
    assert!(found.len() > expected().len());
    found.sort_unstable();
    found.dedup();
    assert_complete(found);
}

#[test]
fn only_kept_epochs_can_be_gone_back_to() {
    let disk = SimDisk::new();
    let sink = Memory::new();
    let start = |epoch| draw(sink.clone()).into_local(config(&disk, Some(epoch)).unwrap());
    let error = start(1).unwrap_err().to_string();
    assert!(error.contains("no epoch 1 here; no checkpoint is kept"), "{error}");
    three_epochs(&disk, sink.clone());
    for epoch in [0, 4] {
        let error = start(epoch).unwrap_err().to_string();
        assert!(error.contains(&format!("no epoch {epoch} here; kept are [1, 2, 3]")), "{error}");
    }
    // The newest one is no way back.
    assert_eq!(start(3).unwrap().restored_epoch(), Some(3));
}

#[test]
fn from_a_damaged_epoch_the_way_leads_back_if_asked_for() {
    let disk = SimDisk::new();
    three_epochs(&disk, Memory::new());
    let store = Store::open_on(Box::new(disk.clone()), options()).unwrap();
    let blocks = store.blocks_in_use().unwrap();
    drop(store);
    let mut damaged = 0;
    for block in blocks {
        // The same once more, as an output cannot be copied.
        let (disk, sink) = (SimDisk::new(), Memory::new());
        three_epochs(&disk, sink.clone());
        disk.tamper(1, |bytes| bytes[block as usize * BLOCK_BYTES + 100] ^= 1);
        // All of it is read before the start, or damage might show only when the job runs.
        let verifying = Store::open_on(Box::new(disk.clone()), options())
            .map(|store| with(Checkpoints::on_demand().store(store).verify_on_restore(true), None));
        let started = verifying.map_err(Error::from).and_then(|config| draw(sink.clone()).into_local(config));
        let Err(error) = started else { continue };
        let error = error.to_string();
        if !error.contains("epoch 3") {
            continue;
        }
        assert!(error.contains("older epochs are kept: [1, 2]") && error.contains("--epoch"), "{error}");
        let Ok(mut job) = draw(sink.clone()).into_local(config(&disk, Some(2)).unwrap()) else { continue };
        damaged += 1;
        job.run().unwrap();
        assert_complete(sink.committed());
    }
    assert!(damaged > 3, "{damaged}");
}

/// A sink that panics where it should only refuse.
struct Panicking(&'static str);
struct PanickingCommitter(&'static str);
struct NoWriter;

impl Sink for Panicking {
    type In = (u64, u64);
    type Writer = NoWriter;

    fn exactly_once(&self) -> bool {
        false
    }
    fn claim(&self, _: &Place) -> Result<Box<dyn Committer>, ConnectorError> {
        assert!(self.0 != "claim", "boom");
        Ok(Box::new(PanickingCommitter(self.0)))
    }
    fn writer(&self, _: &Place, _: u32) -> Result<NoWriter, ConnectorError> {
        panic!("boom")
    }
}

impl Writer for NoWriter {
    type In = (u64, u64);
    fn write(&mut self, _: (u64, u64)) -> Result<(), Failed> {
        Ok(())
    }
    fn prepare(&mut self, _: u64) -> Result<Option<Part>, Failed> {
        Ok(None)
    }
}

impl Committer for PanickingCommitter {
    fn recover(&mut self, _: &[Part]) -> Result<(), ConnectorError> {
        assert!(self.0 != "recover", "boom");
        Ok(())
    }
    fn sync(&mut self, _: &[Part]) -> Result<(), ConnectorError> {
        Ok(())
    }
    fn commit(&mut self, _: &[Part]) -> Result<(), ConnectorError> {
        Ok(())
    }
}

#[test]
fn a_panic_as_the_job_is_made_is_an_error_with_a_name() {
    for at in ["claim", "recover", "writer"] {
        let error = draw(Panicking(at)).into_local(Config::new().unpinned_workers(1)).unwrap_err().to_string();
        assert!(error.contains("operator `out`") && error.contains("panicked: boom"), "{at}: {error}");
    }
}

/// A store that has lost its newest epoch must not make the results of that one again beside those that are there.
#[test]
fn results_that_the_store_does_not_know_of_stop_the_start() {
    let out = tempfile::tempdir().unwrap();
    let lose_one = |job: &mut Local, disk: &SimDisk| {
        for _ in 0..2 {
            advance(job).unwrap();
        }
        let before = disk.fork();
        advance(job).unwrap();
        before
    };
    let files = || Csv::exactly_once(out.path().join("out")).unwrap();
    let memory = Memory::new();
    let (first, second) = (SimDisk::new(), SimDisk::new());
    let mut job = draw(files()).into_local(config(&first, None).unwrap()).unwrap();
    let before = lose_one(&mut job, &first);
    drop(job);
    let error = draw(files()).into_local(config(&before, None).unwrap()).unwrap_err().to_string();
    assert!(error.contains("later epoch than 2") && error.contains("move these files away"), "{error}");

    let mut job = draw(memory.clone()).into_local(config(&second, None).unwrap()).unwrap();
    let before = lose_one(&mut job, &second);
    drop(job);
    let error = draw(memory.clone()).into_local(config(&before, None).unwrap()).unwrap_err().to_string();
    assert!(error.contains("does not have any more"), "{error}");
    // The store that knows of them goes on.
    draw(memory.clone()).into_local(config(&second, None).unwrap()).unwrap().run().unwrap();
    assert_complete(memory.committed());
}
