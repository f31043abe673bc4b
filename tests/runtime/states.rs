//! Operators of several states in a job: what a view shows of them, how they end by themselves, and what becomes of them when
//! the program changes.

use snapring::clock::Clock;
use snapring::connector::{Collect, Items, Memory};
use snapring::error::{Error, Failed, RestoreError};
use snapring::operator::stored::{Entry, Head, Item, Key, Slot, Timed};
use snapring::operator::{Emit, KeyedState, List, Map, Operator, Progress, Value};
use snapring::runtime::Local;
use snapring::snapshot::sim::SimDisk;
use snapring::snapshot::{Store, StoreOptions};
use snapring::{Checkpoints, Config, Dataflow};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Nanoseconds in a millisecond.
const MS: u64 = 1_000_000;

#[derive(KeyedState)]
struct Visits {
    pages: List<String>,
    times: Map<String, u64>,
    #[state(ttl_ms = 50)]
    last: Value<u64>,
}

/// How an operator adds to its state; emits something about it.
trait Visit: KeyedState {
    fn visit(&mut self, page: String) -> Result<u64, Failed>;
    fn count(&mut self) -> Result<u64, Failed>;
}

impl Visit for Visits {
    fn visit(&mut self, page: String) -> Result<u64, Failed> {
        self.times.update(page.clone(), || 0, |times| *times += 1)?;
        self.pages.push(page)?;
        let last = self.last.get()?.copied().unwrap_or(0);
        self.last.set(last + 1);
        Ok(last)
    }
    fn count(&mut self) -> Result<u64, Failed> {
        Ok(self.pages.len()?)
    }
}

struct Visiting<S>(PhantomData<fn() -> S>);

impl<S: Visit> Operator for Visiting<S> {
    type Key = u64;
    type In = (u64, String);
    type Out = (u64, u64);
    type State = S;

    fn on_record<E: Emit<(u64, u64)>>(
        &self,
        user: &u64,
        (_, page): (u64, String),
        state: &mut S,
        out: &mut E,
    ) -> Result<(), Failed> {
        let last = state.visit(page)?;
        out.emit((*user, last))
    }

    fn on_end<E: Emit<(u64, u64)>>(&self, user: &u64, state: &mut S, out: &mut E) -> Result<(), Failed> {
        out.emit((*user, 1000 + state.count()?))
    }
}

fn clicks() -> Vec<(u64, String)> {
    (0..300u64).map(|index| (index % 10, format!("page {}", index % 7))).collect()
}

struct Bench {
    disk: SimDisk,
    clock: Arc<AtomicU64>,
    out: Memory<(u64, u64)>,
}

impl Bench {
    fn new() -> Self {
        Self { disk: SimDisk::new(), clock: Arc::default(), out: Memory::new() }
    }

    fn job<S: Visit>(&self, tasks: u32) -> Result<Local, Error> {
        let options = StoreOptions { page_bytes: 4096, segment_bytes: 64 << 10, ..StoreOptions::default() };
        let store = Store::open_on(Box::new(self.disk.clone()), options).unwrap();
        let flow = Dataflow::new("visits");
        let by_user = flow.source("clicks", Items::new(clicks())).key_by(|click| click.0);
        by_user.process("visits", Visiting::<S>(PhantomData)).sink("out", self.out.clone());
        let config = Config::new().unpinned_workers(1).parallelism(tasks).batch_len_max(5);
        let config = config.clock(Clock::Manual(self.clock.clone()));
        flow.into_local(config.checkpoints(Checkpoints::on_demand().store(store)))
    }

    /// A checkpoint when so many more records have been read; then the job is gone.
    fn go_on<S: Visit>(&self, tasks: u32, records: u64) -> Result<(), Error> {
        let mut job = self.job::<S>(tasks)?;
        while job.progress().records < records {
            assert_ne!(job.step()?, Progress::Done);
        }
        let pending = job.checkpoint()?;
        while pending.try_wait()?.is_none() {
            assert_ne!(job.step()?, Progress::Done);
        }
        Ok(())
    }
}

#[test]
fn all_states_go_on_at_any_parallelism() {
    let bench = Bench::new();
    for (tasks, records) in [(1, 100), (3, 50), (3, 50), (2, 50)] {
        bench.go_on::<Visits>(tasks, records).unwrap();
    }
    bench.job::<Visits>(4).unwrap().run().unwrap();
    let mut out = bench.out.committed();
    out.sort_unstable();
    let expected = (0..10).flat_map(|user| (0..30).map(move |last| (user, last)).chain([(user, 1030)]));
    assert_eq!(out, expected.collect::<Vec<_>>());
}

#[test]
fn a_state_is_gone_at_its_time_by_the_clock_of_the_job() {
    let bench = Bench::new();
    bench.clock.store(7 * MS, Ordering::Relaxed);
    bench.go_on::<Visits>(2, 100).unwrap();
    bench.clock.store(57 * MS - 1, Ordering::Relaxed);
    bench.go_on::<Visits>(3, 100).unwrap();
    bench.clock.store(107 * MS, Ordering::Relaxed);
    bench.job::<Visits>(2).unwrap().run().unwrap();
    let mut out = bench.out.committed();
    out.sort_unstable();
    // Of the first 20 records of a user the counting goes on; then it begins again.
    let expected = |user| (0..10).flat_map(move |last| [(user, last); 2]).chain((10..20).map(move |last| (user, last)));
    let expected = (0..10).flat_map(|user| expected(user).chain([(user, 1030)]));
    assert_eq!(out, expected.collect::<Vec<_>>());
}

#[test]
fn a_view_shows_how_states_lie_in_tables() {
    let bench = Bench::new();
    let mut job = bench.job::<Visits>(3).unwrap();
    while job.progress().records < 150 {
        job.step().unwrap();
    }
    while job.step().unwrap() != Progress::None && job.progress().records < 200 {}
    let pending = job.view().unwrap();
    let view = loop {
        if let Some(view) = pending.try_wait().unwrap() {
            break view;
        }
        job.step().unwrap();
    };
    let pages = view.state::<u64, Head>("visits", "pages").unwrap();
    let head = pages.get(&3).unwrap().unwrap();
    let items = view.state::<Item, String>("visits", "pages/items").unwrap();
    let item = |number| items.get(&Item { list: head.id, number }).unwrap();
    assert_eq!((pages.len(), item(0), item(1)), (10, Some("page 3".to_owned()), Some("page 6".to_owned())));
    assert!(head.len > 9 && item(head.len - 1).is_some() && item(head.len).is_none(), "{head:?}");
    let times = view.state::<u64, Head>("visits", "times").unwrap().get(&3).unwrap().unwrap();
    let entries = view.state::<Key<String>, Entry<u64>>("visits", "times/entries").unwrap();
    let entry = entries.get(&Key { map: times.id, key: "page 6".to_owned() }).unwrap().unwrap();
    let order = view.state::<Slot, String>("visits", "times/order").unwrap();
    assert_eq!(order.get(&Slot { map: times.id, slot: entry.slot }).unwrap().unwrap(), "page 6");
    let last = view.state::<u64, Timed<u64>>("visits", "last").unwrap().get(&3).unwrap().unwrap();
    assert_eq!(last, Timed { written_ns: 0, value: head.len });
}

/// One state is new.
#[derive(KeyedState)]
struct More {
    pages: List<String>,
    #[state(ttl_ms = 50)]
    last: Value<u64>,
    times: Map<String, u64>,
    new: Value<String>,
}

impl Visit for More {
    fn visit(&mut self, page: String) -> Result<u64, Failed> {
        self.times.remove(&page)?;
        self.pages.push(page)?;
        self.last.clear();
        self.new.get_or_insert_with(String::new)?.push('+');
        Ok(self.new.get()?.map_or(0, |new| new.len() as u64))
    }
    fn count(&mut self) -> Result<u64, Failed> {
        Ok(self.pages.len()?)
    }
}

/// One state is missing.
#[derive(KeyedState)]
struct Fewer {
    pages: List<String>,
    times: Map<String, u64>,
}

impl Visit for Fewer {
    fn visit(&mut self, page: String) -> Result<u64, Failed> {
        Ok(self.pages.push(page).map(|()| 0)?)
    }
    fn count(&mut self) -> Result<u64, Failed> {
        Ok(self.times.len()?)
    }
}

/// The items are of another type.
#[derive(KeyedState)]
struct Other {
    pages: List<u64>,
    times: Map<String, u64>,
    #[state(ttl_ms = 50)]
    last: Value<u64>,
}

impl Visit for Other {
    fn visit(&mut self, page: String) -> Result<u64, Failed> {
        self.last.set(self.times.get(&page)?.unwrap_or(0));
        Ok(self.pages.push(0).map(|()| 0)?)
    }
    fn count(&mut self) -> Result<u64, Failed> {
        Ok(self.pages.len()?)
    }
}

/// A state has no time-to-live any more.
#[derive(KeyedState)]
struct Lasting {
    pages: List<String>,
    times: Map<String, u64>,
    last: Value<u64>,
}

impl Visit for Lasting {
    fn visit(&mut self, page: String) -> Result<u64, Failed> {
        self.last.set(self.times.get(&page)?.unwrap_or(0));
        Ok(self.pages.push(page).map(|()| 0)?)
    }
    fn count(&mut self) -> Result<u64, Failed> {
        Ok(self.pages.len()?)
    }
}

#[test]
fn a_new_state_begins_empty_and_one_that_is_lost_is_refused() {
    let bench = Bench::new();
    bench.go_on::<Visits>(2, 100).unwrap();
    let refused = bench.job::<Fewer>(2).err().unwrap();
    assert!(
        matches!(&refused, Error::Restore(RestoreError::State { state, .. }) if state.starts_with("last")),
        "{refused}"
    );
    assert!(refused.to_string().contains("now it has `pages`, `times`"), "{refused}");
    let refused = bench.job::<Other>(2).err().unwrap();
    assert!(
        matches!(&refused, Error::Restore(RestoreError::Schema { state, .. }) if state == "pages/items"),
        "{refused}"
    );
    let refused = bench.job::<Lasting>(2).err().unwrap().to_string();
    assert!(refused.contains("`last`") && refused.contains("`#[state(ttl_ms = …)]` gives it back"), "{refused}");
    bench.job::<More>(3).unwrap().run().unwrap();
    let mut out = bench.out.committed();
    out.retain(|(user, _)| *user == 4);
    assert_eq!(out[out.len() - 2..], [(4, 20), (4, 1030)]);
}

/// A list alone is a state of an operator, too.
struct Reversed;

impl Operator for Reversed {
    type Key = bool;
    type In = u64;
    type Out = u64;
    type State = List<u64>;

    fn on_record<E: Emit<u64>>(&self, _: &bool, number: u64, seen: &mut List<u64>, _: &mut E) -> Result<(), Failed> {
        Ok(seen.push(number)?)
    }

    fn on_end<E: Emit<u64>>(&self, _: &bool, seen: &mut List<u64>, out: &mut E) -> Result<(), Failed> {
        while let Some(number) = seen.pop_back()? {
            out.emit(number)?;
        }
        Ok(())
    }
}

#[test]
fn one_state_may_be_of_any_kind() {
    let (flow, out) = (Dataflow::new("reversed"), Collect::new());
    let numbers = flow.source("numbers", Items::new((0..100u64).collect::<Vec<_>>()));
    numbers.key_by(|number| number % 2 == 0).process("reversed", Reversed).sink("out", out.clone());
    flow.start(Config::new().unpinned_workers(1)).unwrap().wait().unwrap();
    let (even, odd): (Vec<u64>, Vec<u64>) = out.take().into_iter().partition(|number| number % 2 == 0);
    assert!(even.into_iter().eq((0..100).rev().filter(|number| number % 2 == 0)));
    assert!(odd.into_iter().eq((0..100).rev().filter(|number| number % 2 == 1)));
}
