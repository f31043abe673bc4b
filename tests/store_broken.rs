//! What becomes of a store, and of the job above it, while somebody fills the disk, takes the folder away, makes it
//! read-only, or shortens the file: clear errors, the last durable epoch intact, and on with it as soon as it can be.

mod store_support;

use snapring::connector::{Generate, Memory};
use snapring::dataflow::Dataflow;
use snapring::error::StoreError;
use snapring::operator::Progress;
use snapring::runtime::{Checkpoints, Config, Local};
use snapring::snapshot::sim::{Incident, SimDisk};
use snapring::snapshot::{Generations, STORE_FILE, SinkKind, Store, StoreOptions};
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Command;
use store_support::{Model, PAGE_BYTES, entry, options, written_in};

const SINKS: [SinkKind; 2] = [SinkKind::Mapped, SinkKind::Pwrite];

fn open(dir: &Path, sink: SinkKind) -> Store {
    Store::open(dir, StoreOptions { sink, ..options() }).unwrap()
}

/// Some epochs that work; each is told to the model.
fn commit(store: &mut Store, model: &mut Model, epochs: u32) {
    for _ in 0..epochs {
        model.step();
        store.commit(&model.checkpoint()).unwrap();
        model.durable();
    }
}

fn commit_error(store: &mut Store, model: &mut Model) -> String {
    model.step();
    store.commit(&model.checkpoint()).unwrap_err().to_string()
}

fn files(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name != "lock" && name != "pins").collect();
    names.sort();
    names
}

/// A small disk of its own; none where this process may not mount one.
struct SmallDisk(PathBuf, #[expect(dead_code, reason = "removed when it is dropped")] tempfile::TempDir);

impl SmallDisk {
    fn mount(kib: u64) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let disk = Self(dir.path().join("disk"), dir);
        fs::create_dir(&disk.0).unwrap();
        let mounted = disk.run("mount", &["-t", "tmpfs", "-o", &format!("size={kib}k"), "tmpfs"]);
        mounted.then_some(disk)
    }

    fn remount(&self, option: &str) {
        assert!(self.run("mount", &["-o", &format!("remount,{option}")]));
    }

    fn run(&self, program: &str, arguments: &[&str]) -> bool {
        let output = Command::new(program).args(arguments).arg(&self.0).output();
        output.is_ok_and(|output| output.status.success())
    }

    fn state(&self) -> PathBuf {
        self.0.join("state")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        self.run("umount", &["-l"]);
    }
}

#[test]
fn a_full_disk_declines_and_room_heals() {
    for sink in SINKS {
        let Some(disk) = SmallDisk::mount(512) else { return };
        let mut store = open(&disk.state(), sink);
        store.commit(&entry(1, &[0, 1], 2, true)).unwrap();
        let many: Vec<u32> = (0..400).collect();
        for epoch in 2..5 {
            let error = store.commit(&entry(epoch, &many, 400, false)).unwrap_err();
            assert!(matches!(error, StoreError::NoSpace { .. }), "{error}");
            assert!(error.to_string().contains("no space for") && error.to_string().contains("free some"), "{error}");
        }
        store.commit(&entry(5, &[1], 2, false)).unwrap();
        disk.remount("size=8192k");
        store.commit(&entry(6, &many, 400, false)).unwrap();
        assert_eq!(files(&disk.state()), [STORE_FILE], "nothing has failed");
        drop(store);
        assert_eq!(open(&disk.state(), sink).read(6).unwrap().entries[0].pages().unwrap().len(), 400);
    }
}

#[test]
fn a_disk_too_full_for_a_new_file_is_waited_for() {
    for sink in SINKS {
        let Some(disk) = SmallDisk::mount(1024) else { return };
        let (mut store, mut model) = (open(&disk.state(), sink), Model::new(3));
        commit(&mut store, &mut model, 3);
        fs::write(disk.0.join("filler"), vec![1; 1024 << 10]).unwrap_err();
        // As if a write had failed: the file is not the one that it was.
        fs::rename(disk.state().join(STORE_FILE), disk.state().join("elsewhere")).unwrap();
        assert!(commit_error(&mut store, &mut model).contains("somebody has removed the file"));
        for _ in 0..3 {
            let error = commit_error(&mut store, &mut model);
            assert!(error.contains("no space") && error.contains("generation-2.snap"), "{error}");
        }
        fs::remove_file(disk.0.join("filler")).unwrap();
        commit(&mut store, &mut model, 1);
        model.check(&store);
    }
}

#[test]
fn a_file_that_was_removed_is_replaced_by_a_new_generation() {
    for sink in SINKS {
        let dir = tempfile::tempdir().unwrap();
        let (mut store, mut model) = (open(dir.path(), sink), Model::new(5));
        commit(&mut store, &mut model, 3);
        fs::remove_file(dir.path().join(STORE_FILE)).unwrap();
        let error = commit_error(&mut store, &mut model);
        assert!(error.contains(STORE_FILE) && error.contains("somebody has removed the file"), "{error}");
        // It is still open: what has not changed since is copied out of it.
        assert!(!store.needs_full());
        commit(&mut store, &mut model, 1);
        model.check(&store);
        assert_eq!(files(dir.path()), ["generation-2.snap"]);
        drop(store);
        model.check(&open(dir.path(), sink));
    }
}

#[test]
fn a_file_in_the_place_of_ours_is_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, mut model) = (open(dir.path(), SinkKind::Mapped), Model::new(6));
    commit(&mut store, &mut model, 2);
    let path = dir.path().join(STORE_FILE);
    let copy = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, &copy).unwrap();
    assert!(commit_error(&mut store, &mut model).contains("another file in its place"));
    commit(&mut store, &mut model, 1);
    assert_eq!(fs::read(&path).unwrap(), copy);
    model.check(&store);
}

#[test]
fn a_folder_that_was_taken_away_is_waited_for_and_another_in_its_place_is_left_alone() {
    for sink in SINKS {
        let dir = tempfile::tempdir().unwrap();
        let (state, elsewhere) = (dir.path().join("state"), dir.path().join("elsewhere"));
        let (mut store, mut model) = (open(&state, sink), Model::new(7));
        commit(&mut store, &mut model, 2);
        fs::rename(&state, &elsewhere).unwrap();
        for _ in 0..3 {
            let error = commit_error(&mut store, &mut model);
            assert!(error.contains("somebody has removed the folder") && error.contains("bring it back"), "{error}");
        }
        let mut other = open(&state, sink);
        other.commit(&entry(1, &[0], 1, true)).unwrap();
        let before = fs::read(other.path()).unwrap();
        let error = commit_error(&mut store, &mut model);
        assert!(error.contains("another one than when it was opened"), "{error}");
        assert!(fs::read(other.path()).unwrap() == before && files(&state) == [STORE_FILE]);
        drop(other);
        fs::remove_dir_all(&state).unwrap();
        fs::rename(&elsewhere, &state).unwrap();
        commit(&mut store, &mut model, 1);
        model.check(&store);
    }
}

#[test]
fn a_file_that_was_shortened_is_an_error_and_no_signal() {
    for sink in SINKS {
        for len in [0, 4096, 65536, 100_000] {
            let dir = tempfile::tempdir().unwrap();
            let mut store = open(dir.path(), sink);
            let ids: Vec<u32> = (0..40).collect();
            store.commit(&entry(1, &ids, 40, true)).unwrap();
            store.commit(&entry(2, &[3], 40, false)).unwrap();
            let path = dir.path().join(STORE_FILE);
            OpenOptions::new().write(true).open(&path).unwrap().set_len(len).unwrap();
            let error = store.commit(&entry(3, &[4], 40, false)).unwrap_err().to_string();
            assert!(error.contains("somebody has shortened it") && error.contains(&len.to_string()), "{error}");
            // What it builds on cannot be read any more, or not all of it: then only the whole helps.
            let mut epoch = 4;
            while store.commit(&entry(epoch, &[4], 40, false)).is_err() {
                epoch += 1;
                assert!(epoch < 8);
                if store.needs_full() {
                    store.commit(&entry(epoch, &ids, 40, true)).unwrap();
                    break;
                }
            }
            drop(store);
            let restored = open(dir.path(), sink).read(epoch).unwrap();
            let pages: Vec<u64> = restored.entries[0].pages().unwrap().map(|(_, page)| written_in(page)).collect();
            assert_eq!((pages.len(), pages[4]), (40, epoch));
        }
    }
}

fn draw(sink: Memory<(u64, u64)>) -> Dataflow {
    let flow = Dataflow::new("counted");
    // The first source ends long before the other: its final snapshots have to be carried along.
    let short = flow.source("short", Generate::new(200, 1, |index| index % 20)).key_by(|event| *event).count("early");
    let long = flow.source("long", Generate::new(6000, 3, |index| index % 900)).key_by(|event| *event).count("late");
    short.merge(long).sink("out", sink);
    flow
}

fn start(disk: &SimDisk, sink: &Memory<(u64, u64)>) -> Local {
    let options =
        StoreOptions { page_bytes: PAGE_BYTES, segment_bytes: 64 << 10, writer_threads: 1, ..StoreOptions::default() };
    let store = Store::open_on(Box::new(disk.clone()), options).unwrap();
    let checkpoints = Checkpoints::on_demand().store(store);
    let config = Config::new().unpinned_workers(1).parallelism(2).batch_len_max(9).checkpoints(checkpoints);
    draw(sink.clone()).into_local(config).unwrap()
}

fn checkpoint(job: &mut Local) -> Result<u64, String> {
    let asked = job.checkpoint().unwrap();
    loop {
        assert_ne!(job.step().unwrap(), Progress::Done, "the job should have something left");
        match asked.try_wait() {
            Ok(None) => {}
            Ok(Some(report)) => return Ok(report.epoch),
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// What is done to the disk under a running job.
type Harm = (&'static str, fn(&SimDisk));

fn spoil(disk: &SimDisk) {
    disk.tamper(1, |bytes| bytes[70_000..].fill(7));
    disk.vanish(1);
}

const REMOVED: Harm = ("removed", |disk| disk.vanish(1));
const FAILING: Harm = ("a write fails", |disk| disk.at(disk.calls(), Incident::Fail));
const SHORTENED: Harm = ("shortened", |disk| disk.tamper(1, Vec::clear));
const SPOILED: Harm = ("removed, and its pages are damaged", spoil);

/// So many steps until the short source has ended and its tasks have finished.
const STEPS_TO_FINISH: u32 = 300;

/// A job that has made a checkpoint after so many steps, when something is done to the disk.
fn harmed(harm: Harm, steps: u32) -> (SimDisk, Memory<(u64, u64)>, Local) {
    let (disk, sink) = (SimDisk::new(), Memory::new());
    let mut job = start(&disk, &sink);
    for _ in 0..steps {
        job.step().unwrap();
    }
    checkpoint(&mut job).unwrap();
    harm.1(&disk);
    (disk, sink, job)
}

#[test]
fn a_job_survives_what_is_done_to_its_file_and_so_does_its_next_start() {
    let cases = [(REMOVED, 40), (REMOVED, STEPS_TO_FINISH), (FAILING, 40), (FAILING, STEPS_TO_FINISH)];
    // What cannot be copied out of the file is in memory still; it may take one more checkpoint to know that.
    for ((name, harm), steps) in cases.into_iter().chain([(SHORTENED, 40), (SPOILED, 40)]) {
        let (disk, sink, mut job) = harmed((name, harm), steps);
        let error = checkpoint(&mut job).unwrap_err();
        assert!(error.contains("was given up"), "{name}, {steps} steps: {error}");
        let epoch = checkpoint(&mut job).or_else(|_| checkpoint(&mut job)).unwrap();
        assert!(disk.list().unwrap().last() > Some(&1), "{name}, {steps} steps");
        drop(job);
        disk.crash(|_| false);
        let mut job = start(&disk, &sink);
        assert_eq!(job.restored_epoch(), Some(epoch));
        job.run().unwrap();
        let mut found = sink.committed();
        found.sort_unstable();
        let mut expected: Vec<(u64, u64)> = (0..20).flat_map(|key| (1..=10).map(move |n| (key, n))).collect();
        expected.extend((0..6000u64).map(|index| (index % 900, index / 900 + 1)));
        expected.sort_unstable();
        assert!(found == expected, "{name}, {steps} steps: {} results and not {}", found.len(), expected.len());
    }
}

#[test]
fn what_only_the_lost_file_had_fails_the_job_by_name() {
    for harm in [SHORTENED, SPOILED] {
        let (_disk, _sink, mut job) = harmed(harm, STEPS_TO_FINISH);
        let error = job.run().expect_err(harm.0).to_string();
        assert!(error.contains("operator `early`") && error.contains("cannot be read any more"), "{error}");
    }
}
