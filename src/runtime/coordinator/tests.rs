//! What no run on one thread shows: reports that come late, and what is done before what within a commit.

use super::super::header::PARTS;
use super::*;
use crate::checkpoint::{Protocol, Timing};
use crate::clock::Clock;
use crate::error::ConnectorError;
use crate::page::{FrozenPages, Pages, Pool};
use crate::snapshot::StoreOptions;
use crate::snapshot::sim::SimDisk;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Sender, TryRecvError, channel};
use std::thread::JoinHandle;

type Log = Arc<Mutex<Vec<String>>>;

/// Writes down what it is asked for, and the newest durable epoch by then: that of the word, and that on the disk.
struct Logging {
    shared: Arc<Shared>,
    disk: SimDisk,
    log: Log,
}

impl Logging {
    fn note(&self, what: &str, parts: &[Part]) -> Result<(), ConnectorError> {
        let on_disk = Store::open_on(Box::new(self.disk.fork()), StoreOptions::default()).unwrap();
        let on_disk = on_disk.epochs().iter().map(|info| info.epoch).max().unwrap_or(0);
        let parts = parts.iter().map(|part| String::from_utf8_lossy(&part.0)).collect::<String>();
        let note = format!("{what} {parts} told {} kept {on_disk}", self.shared.durable_to());
        self.log.lock().unwrap().push(note);
        Ok(())
    }
}

impl Committer for Logging {
    fn recover(&mut self, listed: &[Part]) -> Result<(), ConnectorError> {
        self.note("recover", listed)
    }
    fn sync(&mut self, parts: &[Part]) -> Result<(), ConnectorError> {
        self.note("sync", parts)
    }
    fn commit(&mut self, parts: &[Part]) -> Result<(), ConnectorError> {
        self.note("commit", parts)
    }
}

/// A coordinator of two tasks, whose epochs are given up after 10 ns.
fn coordination() -> (Coordination, Sender<Event>, SimDisk, Log) {
    timed(Some(10))
}

fn timed(timeout_ns: Option<u64>) -> (Coordination, Sender<Event>, SimDisk, Log) {
    let (disk, log) = (SimDisk::new(), Log::default());
    let store = Store::open_on(Box::new(disk.clone()), StoreOptions::default()).unwrap();
    let clock = Clock::Manual(Arc::new(AtomicU64::new(0)));
    let shared = Arc::new(Shared::new(0, true, clock, None, Arc::default(), Pool::new(4096, 1 << 20)));
    let timing = Timing { interval_ns: None, timeout_ns, unaligned_after_ns: None };
    let machine = Coordinator::new(Protocol::Aligned, 2, 0, timing, 0);
    let committer = Logging { shared: shared.clone(), disk: disk.clone(), log: log.clone() };
    let sink =
        SinkState { name: "out".into(), exactly_once: true, committer: Box::new(committer), uncommitted: Vec::new() };
    let (events, heard) = channel();
    let coordination =
        Coordination::new(shared, machine, Some(store), Header::fresh("job"), vec![sink], heard, Arc::default());
    (coordination, events, disk, log)
}

/// Two tasks are cut in an epoch that is for a view alone.
fn cut(coordination: &mut Coordination, events: &Sender<Event>, epoch: u64, meanwhile: Option<Event>) {
    events.send(Event::Snapshot { task: 0, epoch, snapshot: TaskSnapshot::default() }).unwrap();
    coordination.poll(0).unwrap();
    meanwhile.into_iter().for_each(|event| events.send(event).unwrap());
    events.send(Event::Snapshot { task: 1, epoch, snapshot: TaskSnapshot::default() }).unwrap();
    coordination.poll(0).unwrap();
}

/// A snapshot with one part and one piece of state, both called `name`.
fn snapshot(name: &str) -> TaskSnapshot {
    let mut entry = SinkState {
        name: "kept".into(),
        exactly_once: true,
        committer: Box::new(Logging {
            shared: Arc::new(Shared::new(0, true, Clock::system(), None, Arc::default(), Pool::new(4096, 1 << 20))),
            disk: SimDisk::new(),
            log: Log::default(),
        }),
        uncommitted: Vec::new(),
    }
    .entry();
    entry.state = name.to_owned();
    TaskSnapshot { entries: vec![entry], parts: vec![("out".into(), Part(name.into()))] }
}

fn states(disk: &SimDisk, epoch: u64) -> Vec<String> {
    let store = Store::open_on(Box::new(disk.fork()), StoreOptions::default()).unwrap();
    let mut states: Vec<_> = store.read(epoch).unwrap().entries.into_iter().map(|entry| entry.state).collect();
    states.sort();
    states
}

#[test]
fn a_commit_goes_from_parts_to_epoch_to_tasks_to_parts() {
    let (mut coordination, events, disk, log) = coordination();
    for (epoch, names) in [(1, ["a", "b"]), (2, ["c", "d"])] {
        let (answer, answered) = channel();
        events.send(Event::Demand(Answer::Durable(answer))).unwrap();
        coordination.poll(0).unwrap();
        for (task, name) in (0..).zip(names) {
            assert_eq!(answered.try_recv(), Err(TryRecvError::Empty), "it is not durable yet");
            events.send(Event::Snapshot { task, epoch, snapshot: snapshot(name) }).unwrap();
            coordination.poll(0).unwrap();
        }
        assert_eq!(answered.try_recv().map(|result| result.map(|report| report.epoch)), Ok(Ok(epoch)));
        assert_eq!(states(&disk, epoch), [names[0], names[1], PARTS]);
    }
    let log = log.lock().unwrap().clone();
    assert_eq!(
        log,
        ["sync ab told 0 kept 0", "commit ab told 1 kept 1", "sync cd told 1 kept 1", "commit cd told 2 kept 2"]
    );
}

#[test]
fn an_epoch_that_cannot_be_written_is_not_reported_as_durable() {
    let (mut coordination, events, disk, log) = coordination();
    let (answer, answered) = channel();
    events.send(Event::Demand(Answer::Durable(answer))).unwrap();
    coordination.poll(0).unwrap();
    (0..100).for_each(|call| disk.at(disk.calls() + call, crate::snapshot::sim::Incident::Fail));
    events.send(Event::Snapshot { task: 0, epoch: 1, snapshot: snapshot("a") }).unwrap();
    events.send(Event::Snapshot { task: 1, epoch: 1, snapshot: snapshot("b") }).unwrap();
    assert!(!coordination.poll(0).unwrap(), "the job runs on");
    let answer = answered.try_recv().unwrap().unwrap_err();
    let Unmade::GivenUp(answer) = answer else { panic!("{answer:?}") };
    assert!(answer.contains("checkpoint 1 was given up") && answer.contains("simulated failure"), "{answer}");
    assert_eq!((coordination.shared.durable_to(), coordination.shared.closed_to()), (0, 1));
    assert_eq!(log.lock().unwrap().len(), 1, "nothing is committed");
}

#[test]
fn a_view_that_was_let_go_of_is_taken_again_and_what_was_for_it_alone_is_never_written() {
    let (mut coordination, events, _, log) = coordination();
    let (answer, answered) = channel();
    events.send(Event::View(answer)).unwrap();
    for epoch in 1..5 {
        coordination.poll(0).unwrap();
        assert!(coordination.shared.viewed() == epoch && coordination.shared.is_view_only(epoch));
        // Memory runs out before the cut is complete, or just after.
        let unviewed = || Event::Unviewed { epoch };
        cut(&mut coordination, &events, epoch, (epoch % 2 == 0).then(unviewed));
        if epoch % 2 == 1 {
            events.send(unviewed()).unwrap();
        }
        // The others have not heard of it.
        events.send(Event::Viewed { epoch, tables: Vec::new() }).unwrap();
        assert_eq!(answered.try_recv().unwrap_err(), TryRecvError::Empty);
    }
    coordination.poll(0).unwrap();
    cut(&mut coordination, &events, 5, Some(Event::Unviewed { epoch: 5 }));
    let Unmade::GivenUp(why) = answered.try_recv().unwrap().unwrap_err() else { panic!("it was given up") };
    assert!(why.contains("all 1048576 bytes are in use"), "{why}");
    assert!(log.lock().unwrap().is_empty() && coordination.ledger.status().given_up == 0);

    // The next one has all its tries again.
    let (answer, answered) = channel();
    events.send(Event::View(answer)).unwrap();
    coordination.poll(0).unwrap();
    cut(&mut coordination, &events, 6, Some(Event::Unviewed { epoch: 6 }));
    coordination.poll(0).unwrap();
    cut(&mut coordination, &events, 7, None);
    (0..2).for_each(|_| events.send(Event::Viewed { epoch: 7, tables: Vec::new() }).unwrap());
    coordination.poll(0).unwrap();
    assert_eq!(answered.try_recv().unwrap().unwrap().epoch(), 7);
}

#[test]
fn a_view_that_was_let_go_of_is_taken_again_though_its_epoch_times_out() {
    let (mut coordination, events, _, _) = coordination();
    let (answer, answered) = channel();
    events.send(Event::View(answer)).unwrap();
    coordination.poll(0).unwrap();
    events.send(Event::Snapshot { task: 0, epoch: 1, snapshot: TaskSnapshot::default() }).unwrap();
    events.send(Event::Unviewed { epoch: 1 }).unwrap();
    coordination.poll(1).unwrap();
    assert_eq!(coordination.shared.viewed(), 0, "all let go of it");
    coordination.poll(10).unwrap();
    assert_eq!((coordination.shared.viewed(), answered.try_recv().unwrap_err()), (2, TryRecvError::Empty));
}

/// Something waits for memory until what this returns is dropped.
fn waiting(memory: &Pool) -> (FrozenPages, JoinHandle<()>) {
    let mut pages = Pages::new(memory);
    while pages.allocate().is_ok() {}
    memory.wait_when_exhausted(true);
    let frozen = pages.freeze();
    let waiter = std::thread::spawn(move || assert!(pages.allocate().is_err()));
    while memory.shortage().waiting == 0 {
        std::thread::yield_now();
    }
    (frozen, waiter)
}

#[test]
fn an_epoch_that_is_short_of_memory_is_begun_again_with_more_time() {
    const MS: u64 = 1_000_000;
    let (mut coordination, events, _, _) = timed(None);
    let mut now_ns = 0;
    for is_cut_in_between in [false, true] {
        let (answer, answered) = channel();
        events.send(Event::Demand(Answer::Durable(answer))).unwrap();
        coordination.poll(now_ns).unwrap();
        let (frozen, waiter) = waiting(&coordination.shared.memory.clone());
        for patience in if is_cut_in_between { vec![320] } else { vec![20, 40, 80, 160, 320] } {
            let epoch = coordination.shared.closed_to() + 1;
            coordination.poll(now_ns + 1).unwrap();
            coordination.poll(now_ns + patience * MS).unwrap();
            let still = (coordination.shared.closed_to(), answered.try_recv().err());
            assert_eq!(still, (epoch - 1, Some(TryRecvError::Empty)), "epoch {epoch} before {patience} ms");
            now_ns += patience * MS + 1;
            coordination.poll(now_ns).unwrap();
            assert_eq!(coordination.shared.closed_to(), epoch, "epoch {epoch} after {patience} ms");
        }
        let Unmade::GivenUp(why) = answered.try_recv().unwrap().unwrap_err() else { panic!("it was given up") };
        assert!(why.contains("all 1048576 bytes are in use"), "{why}");
        drop(frozen);
        waiter.join().unwrap();
    }

    // One that is made puts an end to that.
    let (answer, answered) = channel();
    events.send(Event::Demand(Answer::Durable(answer))).unwrap();
    coordination.poll(now_ns).unwrap();
    cut(&mut coordination, &events, 7, None);
    assert!(answered.try_recv().unwrap().is_ok());
    let history = coordination.ledger.history();
    let epochs: Vec<u64> = history.iter().map(|checkpoint| checkpoint.epoch).collect();
    assert_eq!(epochs, [1, 2, 3, 4, 5, 6, 7]);
    assert!(coordination.patience.grow(), "from the beginning");
}

#[test]
fn the_last_epoch_is_in_the_history_after_one_that_was_given_up() {
    let (mut coordination, events, _, _) = coordination();
    events.send(Event::Demand(Answer::Durable(channel().0))).unwrap();
    coordination.poll(0).unwrap();
    coordination.poll(10).unwrap();
    for (task, name) in [(0, "last"), (1, "final")] {
        events.send(Event::Finished { task, snapshot: snapshot(name) }).unwrap();
    }
    assert!(coordination.poll(1000).unwrap());
    let history = coordination.ledger.history();
    assert_eq!(
        history.iter().map(|checkpoint| (checkpoint.epoch, checkpoint.begun_ns)).collect::<Vec<_>>(),
        [(1, 0), (2, 1000)]
    );
}

#[test]
fn the_last_epoch_is_tried_again_and_then_fails_the_job() {
    for (failing_calls, works) in [(1, true), (100, false)] {
        let (mut coordination, events, disk, _) = coordination();
        (0..failing_calls).for_each(|call| disk.at(disk.calls() + call, crate::snapshot::sim::Incident::Fail));
        for (task, name) in [(0, "last"), (1, "final")] {
            events.send(Event::Finished { task, snapshot: snapshot(name) }).unwrap();
        }
        match coordination.poll(0) {
            Ok(over) => assert!(works && over && coordination.shared.durable_to() == 1),
            Err(failure) => assert!(!works && failure.to_string().contains("simulated failure"), "{failure}"),
        }
    }
}

#[test]
fn of_an_epoch_given_up_the_parts_are_kept_and_the_rest_is_not() {
    let (mut coordination, events, disk, log) = coordination();
    let (answer, answered) = channel();
    events.send(Event::Demand(Answer::Durable(answer))).unwrap();
    coordination.poll(0).unwrap();
    events.send(Event::Snapshot { task: 0, epoch: 1, snapshot: snapshot("early") }).unwrap();
    coordination.poll(10).unwrap();
    assert!(matches!(answered.try_recv(), Ok(Err(_))), "whoever asked for it hears of it");
    // A thread may see the word late, and freeze all the same: now, or when the next epoch is under way.
    events.send(Event::Snapshot { task: 1, epoch: 1, snapshot: snapshot("late") }).unwrap();
    coordination.poll(10).unwrap();
    events.send(Event::Finished { task: 0, snapshot: snapshot("last") }).unwrap();
    events.send(Event::Finished { task: 1, snapshot: snapshot("final") }).unwrap();
    assert!(coordination.poll(10).unwrap());
    assert_eq!(states(&disk, 2), ["final", "last", PARTS]);
    assert_eq!(*log.lock().unwrap().last().unwrap(), "commit earlylatelastfinal told 2 kept 2");
}

#[test]
fn nothing_follows_an_epoch_that_is_to_be_the_last() {
    let (mut coordination, events, disk, _log) = coordination();
    let (answer, answered) = channel();
    events.send(Event::Last(Answer::Durable(answer))).unwrap();
    coordination.poll(0).unwrap();
    for (task, name) in [(0, "a"), (1, "b")] {
        events.send(Event::Snapshot { task, epoch: 1, snapshot: snapshot(name) }).unwrap();
    }
    // Either would make epoch 2.
    let (later, _unheard) = channel();
    events.send(Event::Demand(Answer::Durable(later))).unwrap();
    for task in 0..2 {
        events.send(Event::Finished { task, snapshot: snapshot("late") }).unwrap();
    }
    for _ in 0..3 {
        assert!(!coordination.poll(0).unwrap(), "it has not come to its end by itself");
    }
    assert!(coordination.shared.is_stopping());
    assert_eq!(answered.try_recv().map(|result| result.map(|report| report.epoch)), Ok(Ok(1)));
    assert_eq!(Store::open_on(Box::new(disk.fork()), StoreOptions::default()).unwrap().newest(), Some(1));
}

#[test]
fn the_last_epoch_answers_everybody() {
    let (mut coordination, events, _disk, _log) = coordination();
    let (first, first_answered) = channel();
    events.send(Event::Demand(Answer::Durable(first))).unwrap();
    coordination.poll(0).unwrap();
    // Asked while epoch 1 is under way, so for epoch 2; which never comes, as both tasks finish in this one.
    let (second, second_answered) = channel();
    events.send(Event::Demand(Answer::Durable(second))).unwrap();
    events.send(Event::Finished { task: 0, snapshot: snapshot("a") }).unwrap();
    events.send(Event::Finished { task: 1, snapshot: snapshot("b") }).unwrap();
    assert!(coordination.poll(0).unwrap());
    for answered in [first_answered, second_answered] {
        assert_eq!(answered.try_recv().map(|result| result.map(|report| report.epoch)), Ok(Ok(1)));
    }
}
