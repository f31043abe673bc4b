//! The naive ways to a checkpoint beside ours, in one run: clone the table and write the clone; `fork()` and let the child
//! write; encode everything at the barrier. Each in a loop of updates on one core, with the writer on another, and against the
//! same loop without checkpoints. They use a plain hash map, as who has no engine would; ours has its table and its store.
//!
//! `cargo bench --bench naive`; `-- --test` makes everything tiny. The files are made under `target/`, which must be on a disk.

mod support;

use snapring::page::Pool;
use snapring::snapshot::{Checkpoint, Entry, Store, StoreOptions};
use snapring::state::{Hasher, StateError, Table, Window, range_of};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use support::{median, on_first_core};

type Value = [u64; 15];
type Map = hashbrown::HashMap<u64, Value>;

const ENTRY_BYTES: u64 = 128;
const BATCH: u64 = 1024;
/// Touched ahead of need, as much as a job does.
const AHEAD_BYTES: usize = 64 << 20;
/// Records that are looked up together, as many as operators do.
const WINDOW: usize = 256;

/// What is done about checkpoints.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Off,
    Clone,
    Fork,
    Encode,
}

/// A piece of work for the writer's thread; it says so when that is durable.
type Work = Box<dyn FnOnce() + Send>;

/// What a run has come to.
struct Run {
    updates_per_s: f64,
    longest_batch: Duration,
    barriers: Vec<Duration>,
}

/// Random keys of a window of a hundredth of all keys, which moves on with every batch of a million.
fn key(index: u64, keys: u64) -> u64 {
    let mixed = index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    let span = (keys / 100).max(1);
    ((index >> 20) * span + mixed % span) % keys
}

/// Runs batches for a while; `barrier` makes a checkpoint and says whether it has begun one: if the last is written.
fn run(lasts: Duration, every: Duration, mut batch: impl FnMut(u64), mut barrier: impl FnMut() -> bool) -> Run {
    let begin = Instant::now();
    let (mut index, mut longest_batch, mut due, mut barriers) = (0, Duration::ZERO, begin + every, Vec::new());
    while begin.elapsed() < lasts {
        let start = Instant::now();
        if start >= due && barrier() {
            barriers.push(start.elapsed());
            due += every;
        }
        batch(index);
        index += BATCH;
        longest_batch = longest_batch.max(start.elapsed());
    }
    Run { updates_per_s: index as f64 / begin.elapsed().as_secs_f64(), longest_batch, barriers }
}

/// The writer's thread, off the first core.
fn writer(work: Receiver<Work>) {
    if let Some(core) = core_affinity::get_core_ids().unwrap_or_default().get(1) {
        core_affinity::set_for_current(*core);
    }
    work.iter().for_each(|work| work());
}

fn write_map(path: &Path, map: &Map) {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path).expect("target is writable"));
    for (key, value) in map {
        file.write_all(&key.to_le_bytes()).expect("there is room");
        value.iter().for_each(|word| file.write_all(&word.to_le_bytes()).expect("there is room"));
    }
    file.into_inner().map_err(|error| error.into_error()).and_then(|file| file.sync_data()).expect("it can be synced");
}

fn encode(map: &Map) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(map.len() * ENTRY_BYTES as usize);
    for (key, value) in map {
        bytes.extend_from_slice(&key.to_le_bytes());
        value.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
    }
    bytes
}

/// Begins to write the map in this way. `done` is said when it is written.
fn begin(way: Way, map: &Map, path: PathBuf, work: &Sender<Work>, done: Sender<()>) {
    let task: Work = match way {
        Way::Off => return,
        Way::Clone => {
            let clone = map.clone();
            Box::new(move || {
                write_map(&path, &clone);
                let _ = done.send(());
            })
        }
        Way::Encode => {
            let bytes = encode(map);
            Box::new(move || {
                let mut file = File::create(&path).expect("target is writable");
                file.write_all(&bytes).and_then(|()| file.sync_data()).expect("there is room");
                let _ = done.send(());
            })
        }
        Way::Fork => {
            // SAFETY: the child reads memory, writes a file and leaves; no other thread of this process is in an allocator's
            // lock that `fork` does not take care of.
            let child = unsafe { libc::fork() };
            if child == 0 {
                write_map(&path, map);
                // SAFETY: it ends the child without running what belongs to the parent.
                unsafe { libc::_exit(0) };
            }
            Box::new(move || {
                // SAFETY: `child` is ours, and nobody else waits for it.
                unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
                let _ = done.send(());
            })
        }
    };
    work.send(task).expect("the writer lives");
}

fn naive(way: Way, keys: u64, folder: &Path, lasts: Duration, every: Duration) -> Run {
    let mut map: Map = (0..keys).map(|key| (key, Value::default())).collect();
    let (work, works) = channel();
    let writing = std::thread::spawn(|| writer(works));
    let (done, written) = channel();
    let mut is_writing = false;
    let map = std::cell::RefCell::new(&mut map);
    let run = run(
        lasts,
        every,
        |index| {
            let map = &mut *map.borrow_mut();
            (index..index + BATCH).for_each(|index| map.get_mut(&key(index, keys)).expect("it is there")[0] += 1);
        },
        || {
            if is_writing && written.try_recv().is_err() || way == Way::Off {
                return false;
            }
            is_writing = true;
            begin(way, &map.borrow(), folder.join("map"), &work, done.clone());
            true
        },
    );
    drop(work);
    writing.join().expect("the writer does not panic");
    run
}

fn ours(pool: &Pool, with_checkpoints: bool, keys: u64, folder: &Path, lasts: Duration, every: Duration) -> Run {
    let table = Table::<u64, Value>::new(pool, Hasher::default(), range_of(0, 1)).expect("the pool is large enough");
    let table = std::cell::RefCell::new(table);
    let add = |table: &mut Table<u64, Value>, key: u64| {
        let hash = table.hash(&key);
        table.update(hash, &key, Value::default, |value| value[0] += 1).expect("the pool is large enough");
    };
    (0..keys).for_each(|key| add(&mut table.borrow_mut(), key));
    let mut window = Window::new(Hasher::default(), WINDOW);
    let (work, works) = channel::<Work>();
    let writing = std::thread::spawn(|| writer(works));
    let store = std::sync::Arc::new(std::sync::Mutex::new(
        Store::open(&folder.join("store"), StoreOptions::default()).expect("target is writable"),
    ));
    let (done, written) = channel();
    let mut epoch = 0;
    let mut barrier = |waits: bool| {
        if epoch > 0 && if waits { written.recv().is_err() } else { written.try_recv().is_err() } {
            return false;
        }
        let mut table = table.borrow_mut();
        if epoch > 0 {
            table.durable();
        }
        let (root, pages) = table.freeze();
        epoch += 1;
        let entry = Entry {
            operator: "table".into(),
            state: "table".into(),
            task: 0,
            tasks: 1,
            schema: Vec::new(),
            root,
            pages: Some(pages),
        };
        let (store, done) = (store.clone(), done.clone());
        let checkpoint = Checkpoint { epoch, header: Vec::new(), entries: vec![entry] };
        let write = move || {
            store.lock().expect("nobody panics").commit(&checkpoint).expect("there is room");
            drop(checkpoint);
            let _ = done.send(());
        };
        work.send(Box::new(write)).expect("the writer lives");
        true
    };
    // The first one is of all pages; it does not count, for the others neither have to be told what has changed.
    if with_checkpoints {
        barrier(false);
        barrier(true);
    }
    let run = run(
        lasts,
        every,
        |index| {
            let table = &mut *table.borrow_mut();
            for chunk in (index..index + BATCH).step_by(WINDOW) {
                for key in (chunk..chunk + WINDOW as u64).map(|index| key(index, keys)) {
                    window.key(&key);
                    window.push(((), ()));
                }
                let each = |(), ()| Ok::<_, StateError>(());
                let next = |value: &mut Value, ()| value[0] += 1;
                let updated = table.update_batch(window.drain(), |()| Value::default(), next, |_| (), each);
                updated.expect("the pool is large enough");
            }
        },
        || with_checkpoints && barrier(false),
    );
    drop(work);
    writing.join().expect("the writer does not panic");
    run
}

fn report(name: &str, runs: &[Run], off: f64) {
    let rate = median(runs.iter().map(|run| run.updates_per_s as u64).collect()) as f64;
    let longest = median(runs.iter().map(|run| run.longest_batch).collect());
    let mut barriers: Vec<_> = runs.iter().flat_map(|run| run.barriers.clone()).collect();
    barriers.sort();
    let pause = barriers.get(barriers.len() / 2).map_or("-".to_owned(), |pause| format!("{pause:.1?}"));
    println!(
        "  {name:<10} {:6.1} M/s  {:.2} x off  barrier p50 {pause:<8}  longest batch of 1024 {longest:.1?}  {} checkpoints",
        rate / 1e6,
        rate / off,
        barriers.len()
    );
}

fn measure(state_mib: u64, lasts: Duration, every: Duration, rounds: usize) {
    let keys = (state_mib << 20) * 2 / 3 / ENTRY_BYTES;
    println!("{state_mib} MiB, {keys} keys, a window of 1 % of them under change, a checkpoint every {every:?}");
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("target is writable");
    let ways = [Way::Off, Way::Clone, Way::Fork, Way::Encode];
    let (mut theirs, mut mine) = (ways.map(|_| Vec::new()), [Vec::new(), Vec::new()]);
    for round in 0..rounds {
        for (way, runs) in ways.iter().zip(&mut theirs) {
            runs.push(on_first_core(|| naive(*way, keys, folder.path(), lasts, every)));
        }
        for (with_checkpoints, runs) in [false, true].into_iter().zip(&mut mine) {
            let folder = folder.path().join(format!("{round}-{with_checkpoints}"));
            let pool = Pool::new(16 << 10, usize::MAX);
            // By a thread off the first core, as in a job: else the updates behind a freeze, which copy pages, would touch
            // memory for the first time.
            let _touched = pool.keep_touched(AHEAD_BYTES);
            runs.push(on_first_core(|| ours(&pool, with_checkpoints, keys, &folder, lasts, every)));
            let _ = std::fs::remove_dir_all(&folder);
        }
    }
    let rate = |runs: &[Run]| median(runs.iter().map(|run| run.updates_per_s as u64).collect()) as f64;
    let (off, mine_off) = (rate(&theirs[0]), rate(&mine[0]));
    for (way, runs) in ways.iter().zip(&theirs) {
        report(&format!("{way:?}").to_lowercase(), runs, off);
    }
    report("ours, off", &mine[0], mine_off);
    report("ours", &mine[1], mine_off);
}

fn main() {
    if std::env::args().any(|arg| arg == "--test") || !std::env::args().any(|arg| arg == "--bench") {
        measure(2, Duration::from_millis(60), Duration::from_millis(20), 1);
    } else {
        measure(256, Duration::from_secs(3), Duration::from_millis(500), 3);
        measure(1024, Duration::from_secs(6), Duration::from_secs(1), 3);
    }
}
