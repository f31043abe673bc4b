//! One start of the job, what happens to it, and how it may end.

use crate::Met;
use crate::campaign::{Campaign, Committed, names};
use crate::harm::{self, Harm, send};
use crate::random::Random;
use crate::support::{Ran, end, run, snapring};
use rustix::process::Signal;
use std::process::Child;
use std::time::{Duration, Instant};

/// The process; it does not outlast us.
pub struct Running(Option<Child>);

impl Running {
    pub fn child(&mut self) -> &mut Child {
        self.0.as_mut().expect("it is only taken at the end")
    }

    /// Whether it has ended by itself.
    pub fn is_over(&mut self) -> bool {
        self.child().try_wait().expect("a child can be waited for").is_some()
    }

    fn end(mut self) -> Ran {
        end(self.0.take().expect("it ends once"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// How a start is brought to its end.
#[derive(Clone, Copy, Debug)]
enum End {
    Kill,
    Interrupt,
    Terminate,
    /// A second signal does not wait for the orderly end.
    Twice,
    None,
}

/// So long a start may take to its end, or to the next thing that happens.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts the job once. True: it has come to its end.
pub fn start(campaign: &mut Campaign<'_>, random: &mut Random, met: &mut Met) -> bool {
    let (more, back) = flags(campaign, random);
    let went_back = back.is_some();
    let harms: Vec<Harm> = (0..random.below(4)).map(|_| harm::random(random)).collect();
    let end = random.one_of(&[End::Kill, End::Kill, End::Kill, End::Interrupt, End::Terminate, End::Twice, End::None]);
    let before = random.ms(400);
    println!("  {} · {harms:?} · {end:?}", more.join(" "));
    let child = snapring(campaign.args(more)).spawn().expect("the binary can be started");
    let mut running = Running(Some(child));
    std::thread::sleep(before);
    let mut may_fail = false;
    let mut restore = harm::Restore::default();
    for harm in &harms {
        may_fail |= harm.befall(campaign, &mut running, random, &mut restore, met);
        std::thread::sleep(random.ms(300));
    }
    bring_to_end(&mut running, end, random);
    let ran = running.end();
    restore.put_back();
    met.starts += 1;
    met.went_back += u32::from(went_back);
    met.restored += u32::from(ran.stderr.contains("going on from epoch"));
    let how = judge(&ran, end, may_fail, met);
    let lines = campaign.check(how, went_back);
    let said = ran.stderr.lines().filter(|line| ran.code == Some(1) || ran.code == Some(5) || line.contains("warning"));
    println!("    code {:?}, {lines} lines{}", ran.code, said.map(|line| format!("\n    {line}")).collect::<String>());
    ran.code == Some(0)
}

/// Random flags, and the epoch to go back to, if there is one.
fn flags(campaign: &Campaign<'_>, random: &mut Random) -> (Vec<String>, Option<u64>) {
    let mut flags = vec![
        format!("--rate={}", random.one_of(&[3_000, 10_000, 20_000])),
        format!("--parallelism={}", 1 + random.below(4)),
        format!("--checkpoint-interval={}ms", random.one_of(&[2, 10, 30, 100, 300])),
        format!("--keep={}", 2 + random.below(4)),
    ];
    flags.extend(random.one_in(3).then(|| "--durability=process-crash".to_owned()));
    flags.extend(random.one_in(4).then(|| "--verify".to_owned()));
    let epochs = kept_epochs(campaign);
    let back = (random.one_in(5) && !epochs.is_empty()).then(|| random.one_of(&epochs));
    flags.extend(back.map(|epoch| format!("--epoch={epoch}")));
    (flags, back)
}

fn kept_epochs(campaign: &Campaign<'_>) -> Vec<u64> {
    let state = campaign.path("S");
    if names(&state).is_empty() {
        return Vec::new();
    }
    let listed = run(["inspect", "ls", state.to_str().expect("a plain name"), "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap_or_default();
    let epochs = listed["epochs"].as_array().into_iter().flatten();
    epochs.filter_map(|epoch| epoch["epoch"].as_u64()).collect()
}

fn bring_to_end(running: &mut Running, end: End, random: &mut Random) {
    match end {
        End::Kill => running.child().kill().expect("a child can be killed"),
        End::Interrupt => send(running, Signal::INT),
        End::Terminate => send(running, Signal::TERM),
        End::Twice => {
            send(running, Signal::INT);
            std::thread::sleep(random.ms(20));
            send(running, Signal::TERM);
        }
        End::None => {}
    }
    let began = Instant::now();
    while !running.is_over() {
        assert!(began.elapsed() < PATIENCE, "it does not end");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Whether it may have ended like this, and what must be committed then.
fn judge(ran: &Ran, end: End, may_fail: bool, met: &mut Met) -> Committed {
    assert!(!ran.stderr.contains("panicked"), "{ran:?}");
    match (ran.code, ran.signal, end) {
        (Some(0), ..) => {
            met.finished += 1;
            Committed::Cut
        }
        (None, Some(9), End::Kill) => {
            met.killed += 1;
            Committed::Part
        }
        (Some(130), None, End::Interrupt) | (Some(143), None, End::Terminate) => {
            met.stopped += 1;
            assert!(ran.stderr.contains("stopped after checkpoint"), "{ran:?}");
            Committed::Cut
        }
        // Before it watches for them a signal just ends it.
        (None, Some(2), End::Interrupt | End::Twice) | (None, Some(15), End::Terminate | End::Twice) => Committed::Part,
        (Some(130 | 143), None, End::Twice) => Committed::Part,
        (Some(1 | 5), None, _) if may_fail => {
            met.failed += 1;
            assert!(ran.stderr.contains("error: "), "{ran:?}");
            Committed::Part
        }
        // It was taken away under the last checkpoint, the one that must succeed; a later start makes it.
        (Some(5), None, _) if ran.stderr.contains("somebody has removed the file while it was in use") => {
            met.failed += 1;
            Committed::Part
        }
        _ => panic!("it should not end like this: {ran:?}"),
    }
}
