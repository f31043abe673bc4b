//! A soak within one process: a job between two handles, with output files beside, on real threads and real files. User code
//! panics now and then and the job restarts, its store file is taken away, it is stopped in each way that there is, and
//! started again, also from a savepoint and from an older checkpoint. In the end results and files are those of an
//! undisturbed run, and no thread, file descriptor or store file is left behind.
//!
//! 10 s, or as long as one says: `SNAPRING_SOAK_S=600 cargo test --test soak -- --nocapture`. The seed is printed, and
//! `SNAPRING_SOAK_SEED=17` repeats what was decided; when it hits is up to the machine.

mod hands;

use hands::{Hands, Row};
use snapring::connector::Csv;
use snapring::dataflow::Dataflow;
use snapring::error::Error;
use snapring::runtime::{Checkpoints, Config, Hydrate, Job, Restart, Stopped};
use snapring::snapshot::{Durability, Reader, SinkKind};
use snapring::testing::Random;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Pushed in a campaign.
const EVENTS: u64 = 20_000;
const KEYS: u64 = 700;
/// Once user code has failed, it fails again after so many passes.
const BURNS_EVERY: u64 = 9_000;

/// The key of a record.
pub fn key(number: u64) -> u64 {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % KEYS
}

#[derive(Debug, Default)]
struct Met {
    campaigns: u64,
    starts: u64,
    restarts: u64,
    rewound: u64,
    checkpoints: u64,
    taken_away: u64,
    went_back: u64,
    savepoints: u64,
    failed: u64,
    drained: u64,
}

struct Campaign {
    folder: tempfile::TempDir,
    /// The state folder: another one after a savepoint.
    state: PathBuf,
    hands: Hands,
    /// Passes until user code fails.
    fuse: Arc<AtomicU64>,
}

/// What a start came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Finished,
    Drained,
    Stopped,
}

impl Campaign {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("S");
        Self { folder, state, hands: Hands::default(), fuse: Arc::default() }
    }

    fn output(&self) -> PathBuf {
        self.folder.path().join("O")
    }

    fn draw(&mut self) -> Dataflow {
        let flow = Dataflow::new("soaked");
        let (input, stream) = flow.input::<u64>("pushed");
        let (before, after) = (self.fuse.clone(), self.fuse.clone());
        let pass = |fuse: &AtomicU64| {
            if fuse.fetch_sub(1, Ordering::Relaxed) == 1 {
                fuse.store(BURNS_EVERY, Ordering::Relaxed);
                panic!("burnt");
            }
        };
        let counts = stream
            .map(move |number| {
                pass(&before);
                key(number)
            })
            .key_by(|key| *key)
            .count("counts");
        let (polled, written) = counts.fork();
        let output = polled
            .map(move |row| {
                pass(&after);
                row
            })
            .output("results");
        written.sink("files", Csv::exactly_once(self.output()).unwrap());
        self.hands.hold(input, output);
        flow
    }

    fn config(&self, random: &mut Random) -> Config {
        let interval = [1, 3, 20, 100][random.below(4) as usize];
        let mut checkpoints = Checkpoints::every(Duration::from_millis(interval))
            .to(&self.state)
            .keep(random.between(2, 4) as u32)
            .sink(if random.one_in(2) { SinkKind::Pwrite } else { SinkKind::Mapped })
            .hydrate(if random.one_in(2) { Hydrate::OnTouch } else { Hydrate::Background })
            .verify_on_restore(random.one_in(4));
        if random.one_in(2) {
            checkpoints = checkpoints.durability(Durability::ProcessCrash);
        }
        if let Some((to, _)) = self.hands.back {
            checkpoints = checkpoints.from_epoch(to);
        }
        Config::new()
            .unpinned_workers(random.between(1, 3) as usize)
            .parallelism(random.between(1, 3) as u32)
            .ring_capacity(random.between(1, 8) as usize)
            .batch_len_max(random.between(1, 100) as usize)
            .restart(
                Restart::attempts(random.below(6) as u32).backoff(Duration::from_micros(100), Duration::from_millis(3)),
            )
            .checkpoints(checkpoints)
    }

    /// Starts the job once and brings it to some end.
    fn start(&mut self, random: &mut Random, is_last: bool, met: &mut Met) -> Ended {
        met.starts += 1;
        self.hands.choose_way_back(&self.state, random, is_last);
        met.went_back += u64::from(self.hands.back.is_some());
        self.fuse
            .store(if is_last || random.one_in(3) { u64::MAX } else { random.between(1, 30_000) }, Ordering::Relaxed);
        let config = self.config(random);
        let job = self.draw().start(config).expect("nothing keeps it from starting");
        self.hands.started(job.restored_epoch());
        let rewound = self.hands.rewound;
        let hands = std::mem::take(&mut self.hands).work(EVENTS, random.next(), !is_last);
        let ended = if is_last { wait(job, met) } else { self.disturb(job, random, met) };
        self.hands = hands.join();
        met.rewound += self.hands.rewound - rewound;
        ended
    }

    fn disturb(&mut self, job: Job, random: &mut Random, met: &mut Met) -> Ended {
        let pause = |random: &mut Random| std::thread::sleep(Duration::from_millis(random.below(120)));
        for _ in 0..random.below(4) {
            pause(random);
            match random.below(4) {
                0 => drop(job.checkpoint()),
                1 => met.checkpoints += u64::from(job.checkpoint().is_ok_and(|asked| asked.wait().is_ok())),
                2 => met.taken_away += u64::from(take_store_away(&self.state, &job)),
                _ => self.fuse.store(random.between(1, 5000), Ordering::Relaxed),
            }
        }
        pause(random);
        let deadline = Duration::from_secs(50);
        match random.below(10) {
            0 | 1 => {
                met.restarts += u64::from(job.metrics().restarts);
                drop(job);
                Ended::Stopped
            }
            2 | 3 => note(job.abort(deadline), met),
            4 | 5 => note(job.stop(deadline), met),
            6 | 7 => {
                let file = self.folder.path().join(format!("P{}", met.starts));
                let stopped = job.stop_with_savepoint(&file, deadline);
                if stopped.as_ref().is_ok_and(|stopped| matches!(stopped.savepoint, Some(Ok(_)))) {
                    met.savepoints += 1;
                    // A savepoint is a store's file: in a folder of its own it is a store.
                    self.state = self.folder.path().join(format!("S{}", met.starts));
                    std::fs::create_dir(&self.state).unwrap();
                    std::fs::rename(&file, self.state.join(snapring::snapshot::STORE_FILE)).unwrap();
                }
                note(stopped, met)
            }
            8 if random.one_in(3) => {
                met.drained += 1;
                let drained = job.drain(deadline);
                let is_drained = drained.as_ref().is_ok_and(|stopped| stopped.checkpoint.is_ok());
                let ended = note(drained, met);
                if is_drained { Ended::Drained } else { ended }
            }
            _ => wait(job, met),
        }
    }

    /// What has been committed, sorted.
    fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for entry in fs::read_dir(self.output()).into_iter().flatten().map(Result::unwrap) {
            if entry.file_name().to_str().unwrap().ends_with(".csv") {
                let text = fs::read_to_string(entry.path()).unwrap();
                rows.extend(text.lines().map(|line| {
                    let (key, count) = line.split_once(',').unwrap();
                    (key.parse().unwrap(), count.parse().unwrap())
                }));
            }
        }
        rows.sort_unstable();
        rows
    }

    /// Both ends hold what some first records of the input make, or, in the midst of it, some of it.
    fn check(&self, is_finished: bool) {
        let (rows, results) = (self.rows(), self.hands.results());
        for (what, found) in [("files", &rows), ("results", &results)] {
            let twice = found.windows(2).find(|two| two[0] == two[1]);
            assert!(twice.is_none(), "{what}: {twice:?} is there twice");
            let whole = hands::expected(found.len() as u64);
            assert!(!is_finished || *found == whole, "{what}: not what {} records make", found.len());
        }
        assert!(!is_finished || rows == results, "{} rows in files, {} results", rows.len(), results.len());
    }
}

/// Removes the store's file under the job, and waits until it has made another, whole.
fn take_store_away(state: &Path, job: &Job) -> bool {
    let files = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "snap")).collect()
    };
    let newest = || job.progress().last_checkpoint.map(|last| last.epoch);
    // Before its first checkpoint nothing would be missed.
    if newest().is_none() || job.is_over() {
        return false;
    }
    let (saved, names) = (state.join("saved"), files(state));
    fs::create_dir_all(&saved).unwrap();
    for path in &names {
        // It may be removed by the job meanwhile.
        let _ = fs::rename(path, saved.join(path.file_name().unwrap()));
    }
    let began = Instant::now();
    // The first may have been under way, into the file that is gone.
    for _ in 0..2 {
        let last = newest();
        while !job.is_over() && newest() == last {
            assert!(began.elapsed() < Duration::from_secs(50), "no checkpoint after the store was taken away");
            drop(job.checkpoint());
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let there = Reader::open(state).ok().and_then(|reader| reader.epochs().last().map(|info| info.epoch));
    if there < newest() {
        for path in files(&saved) {
            fs::rename(&path, state.join(path.file_name().unwrap())).unwrap();
        }
    }
    fs::remove_dir_all(&saved).unwrap();
    true
}

fn wait(job: Job, met: &mut Met) -> Ended {
    match job.wait() {
        Ok(summary) => {
            met.restarts += u64::from(summary.restarts);
            Ended::Finished
        }
        Err(error) => failed(&error, met),
    }
}

fn note(stopped: Result<Stopped, Error>, met: &mut Met) -> Ended {
    match stopped {
        Ok(stopped) => {
            met.restarts += u64::from(stopped.summary.restarts);
            assert!(stopped.late.is_empty(), "{stopped:?}");
            // It may have come to its end before.
            Ended::Stopped
        }
        Err(error) => failed(&error, met),
    }
}

fn failed(error: &Error, met: &mut Met) -> Ended {
    let said = error.to_string();
    assert!(said.contains("burnt"), "{said}");
    met.failed += 1;
    Ended::Stopped
}

/// Threads, file descriptors and bytes in memory of this process.
fn held() -> (usize, usize, u64) {
    let count = |folder: &str| fs::read_dir(folder).unwrap().count();
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let resident_kib = resident.trim().trim_end_matches(" kB").parse::<u64>().unwrap();
    (count("/proc/self/task"), count("/proc/self/fd"), resident_kib << 10)
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

fn campaign(random: &mut Random, until: Instant, met: &mut Met) {
    let mut campaign = Campaign::new();
    loop {
        let is_last = Instant::now() >= until || random.one_in(12);
        let ended = campaign.start(random, is_last, met);
        campaign.check(ended != Ended::Stopped);
        if ended != Ended::Stopped {
            assert!(ended == Ended::Drained || campaign.rows().len() as u64 == EVENTS, "{}", campaign.rows().len());
            break;
        }
        assert!(!is_last, "nothing disturbed it");
    }
    let left: Vec<_> = fs::read_dir(&campaign.state).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.len() < 6, "files pile up in the state folder: {left:?}");
}

#[test]
fn soak() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let message = panic.payload().downcast_ref::<&str>();
        if message.is_none_or(|message| *message != "burnt") {
            hook(panic);
        }
    }));
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is right");
    let seed = number("SNAPRING_SOAK_SEED").unwrap_or(since.as_nanos() as u64 % 1_000_000);
    let limit_s = number("SNAPRING_SOAK_S").unwrap_or(10);
    println!("a soak of {limit_s} s: SNAPRING_SOAK_SEED={seed} repeats its decisions");
    let (mut random, mut met) = (Random::new(seed), Met::default());
    let until = Instant::now() + Duration::from_secs(limit_s);
    let mut first = None;
    while Instant::now() < until {
        met.campaigns += 1;
        campaign(&mut random, until, &mut met);
        let (threads, files, resident_bytes) = held();
        let (threads_before, files_before, resident_before_bytes) =
            *first.get_or_insert((threads, files, resident_bytes));
        assert!(threads <= threads_before && files <= files_before, "left behind: {threads} threads, {files} files");
        assert!(resident_bytes < resident_before_bytes + (96 << 20), "memory grows: {resident_bytes} bytes");
    }
    println!("{met:?}, held at the first and the last: {first:?}, {:?}", held());
    assert!(limit_s < 10 || (met.starts > 5 && met.restarts > 2 && met.rewound > 0), "{met:?}");
}
