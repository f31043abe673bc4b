//! What happens to a job from outside.

use crate::Met;
use crate::campaign::{Campaign, names};
use crate::random::Random;
use crate::start::Running;
use crate::support::{committed, run};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// Something that happens while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// Stopped for a while.
    Stall,
    /// The disk is full for a while.
    Full,
    /// No file may grow beyond a size for a while.
    Limit,
    /// The store's file is removed.
    RemoveStore,
    /// The state folder has another name for a while.
    MoveState,
    /// Another job wants the same folders.
    Second,
    /// Somebody looks.
    Look,
}

const HARMS: [Harm; 9] = [
    Harm::Stall,
    Harm::Stall,
    Harm::Full,
    Harm::Full,
    Harm::Limit,
    Harm::RemoveStore,
    Harm::MoveState,
    Harm::Second,
    Harm::Look,
];

pub fn random(random: &mut Random) -> Harm {
    random.one_of(&HARMS)
}

/// What must be put back when the start is over, for the next one to have a chance.
#[derive(Default)]
pub struct Restore(Vec<(PathBuf, PathBuf)>);

impl Restore {
    pub fn put_back(self) {
        for (from, to) in self.0 {
            if !to.exists() && from.exists() {
                fs::rename(from, to).expect("what was taken away can be put back");
            } else if from.is_file() {
                fs::remove_file(from).expect("what is not needed can be removed");
            }
        }
    }
}

pub fn send(running: &mut Running, signal: Signal) {
    // It may have ended by itself; it is waited for, so its number is its own still.
    let _ = kill_process(Pid::from_child(running.child()), signal);
}

impl Harm {
    /// Does it. True: the job may fail by it.
    pub fn befall(
        self,
        campaign: &Campaign<'_>,
        running: &mut Running,
        random: &mut Random,
        restore: &mut Restore,
        met: &mut Met,
    ) -> bool {
        if running.is_over() {
            return false;
        }
        match self {
            Self::Stall => stall(running, random, met),
            Self::Full => return fill(campaign, random, met),
            Self::Limit => return limit(running, random, met),
            Self::RemoveStore => remove_store(campaign, running, random, restore, met),
            Self::MoveState => return move_state(campaign, random, restore, met),
            Self::Second => second(campaign, running),
            Self::Look => look(campaign),
        }
        false
    }
}

/// The process that stops it lets it go on again, also if this one is no more by then.
fn stall(running: &mut Running, random: &mut Random, met: &mut Met) {
    met.stalled += 1;
    let (pid, seconds) = (running.child().id(), random.ms(500).as_secs_f64());
    let script = format!("trap '' INT TERM; kill -STOP {pid}; sleep {seconds}; kill -CONT {pid}");
    let status = Command::new("sh").args(["-c", &script]).status().expect("there is a shell");
    // It may have ended before.
    assert!(status.code().is_some());
}

fn fill(campaign: &Campaign<'_>, random: &mut Random, met: &mut Met) -> bool {
    let Some(filled) = campaign.disk.fill(random.below(3) * random.below(100_000)) else { return false };
    met.full += 1;
    std::thread::sleep(random.ms(600));
    drop(filled);
    true
}

fn limit(running: &mut Running, random: &mut Random, met: &mut Met) -> bool {
    let pid = Pid::from_child(running.child());
    let size = |bytes| {
        let old = prlimit(Some(pid), Resource::Fsize, Rlimit { current: bytes, maximum: None });
        old.is_ok()
    };
    if size(Some(random.below(2) * random.below(50_000))) {
        met.limited += 1;
        std::thread::sleep(random.ms(600));
        size(None);
    }
    true
}

/// The job makes a new file, with everything in it; sometimes we wait until it has.
fn remove_store(
    campaign: &Campaign<'_>,
    running: &mut Running,
    random: &mut Random,
    restore: &mut Restore,
    met: &mut Met,
) {
    let state = campaign.path("S");
    let Some(newest) = stores(&names(&state)).pop() else { return };
    let (path, saved) = (state.join(&newest), campaign.path(&format!("saved-{newest}")));
    if fs::hard_link(&path, &saved).is_err() || fs::remove_file(&path).is_err() {
        return;
    }
    met.taken_away += 1;
    let began = Instant::now();
    let waits = random.one_in(2);
    while waits && !running.is_over() && began.elapsed() < Duration::from_secs(5) {
        let listed = run(["inspect", "ls", state.to_str().expect("a plain name"), "--json"]);
        if listed.code == Some(0) && listed.stdout.contains(r#""epoch":"#) {
            let _ = fs::remove_file(&saved);
            return;
        }
    }
    restore.0.push((saved, path));
}

/// The store files, the newest last.
pub fn stores(names: &[String]) -> Vec<String> {
    let mut stores: Vec<String> = names.iter().filter(|name| name.ends_with(".snap")).cloned().collect();
    stores.sort_by_key(|name| (name.len(), name.clone()));
    stores
}

fn move_state(campaign: &Campaign<'_>, random: &mut Random, restore: &mut Restore, met: &mut Met) -> bool {
    let (state, away) = (campaign.path("S"), campaign.path("S-away"));
    if fs::rename(&state, &away).is_err() {
        return false;
    }
    met.taken_away += 1;
    std::thread::sleep(random.ms(300));
    if random.one_in(2) {
        fs::rename(&away, &state).expect("it can come back: nobody else makes such a folder");
    } else {
        restore.0.push((away, state));
    }
    true
}

fn second(campaign: &Campaign<'_>, running: &mut Running) {
    // Before it has come so far, or where the state folder has been moved, the other one would begin one of its own.
    if names(&campaign.output).is_empty() || names(&campaign.path("S")).is_empty() {
        return;
    }
    let ran = run(campaign.args(["--rate=1000".to_owned()]));
    if !running.is_over() {
        ran.exits(5, &["in use"]);
    }
}

fn look(campaign: &Campaign<'_>) {
    let state = campaign.path("S");
    if !stores(&names(&state)).is_empty() {
        run(["inspect", "verify", state.to_str().expect("a plain name")]).ok();
    }
}

/// What is damaged while nothing runs is refused, and nothing is changed by that; whole again, it goes on.
pub fn damage(campaign: &Campaign<'_>, random: &mut Random, met: &mut Met) {
    let state = campaign.path("S");
    let Some(newest) = stores(&names(&state)).pop() else { return };
    let path = state.join(newest);
    let whole = fs::read(&path).expect("a store can be read");
    let before = committed(&campaign.output).len();
    let mut bytes = whole.clone();
    match random.below(4) {
        0 => bytes.truncate(random.below(bytes.len() as u64) as usize),
        1 => bytes.clear(),
        2 => bytes[..12 << 10].fill(0),
        _ => bytes = b"something else".repeat(1000),
    }
    fs::write(&path, &bytes).expect("a store can be written");
    let ran = run(campaign.args(["--verify".to_owned()]));
    println!("  damaged: code {:?}: {}", ran.code, ran.stderr.trim());
    assert!(matches!(ran.code, Some(3 | 5)) && !ran.stderr.contains("panicked"), "{ran:?}");
    assert_eq!(committed(&campaign.output).len(), before);
    fs::write(&path, whole).expect("a store can be written");
    met.damaged += 1;
}
