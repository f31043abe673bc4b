//! One program in the versions that it has had: what it keeps per key and what flows through it change their types, what it
//! counts stays the same.

use snapring::Protocol;
use snapring::connector::{Generate, Memory};
use snapring::dataflow::Dataflow;
use snapring::error::Error;
use snapring::record::{Record, Text};
use snapring::runtime::{Checkpoints, Config, Hydrate, Local};
use snapring::snapshot::sim::SimDisk;
use snapring::snapshot::{Store, StoreOptions};

pub const KEYS: u64 = 2500;
pub const EVENTS: u64 = 4 * KEYS;

/// A version of the program.
pub trait Version: 'static {
    type Order: Record + Clone + Sync;
    type Sum: Record + Clone + Sync;
    /// What the operator is called, and what it was called in all versions before.
    const OPERATOR: &'static str = "sums";
    fn order(index: u64) -> Self::Order;
    fn key(order: &Self::Order) -> u64;
    fn start() -> Self::Sum;
    fn add(sum: &mut Self::Sum, order: Self::Order) -> u64;
    fn count(sum: &Self::Sum) -> u64;
}

/// How a version is told from the others: `{fields of an order} {fields of a sum} {what an order does to a sum}`.
macro_rules! version {
    ($name:ident $($operator:literal)?: { $($of:ident: $order:ty = |$index:pat_param| $made:expr),* } { $($in:ident: $sum:ty = $zero:expr),* } |$s:ident| $add:block) => {
        pub struct $name;
        const _: () = {
            #[derive(Record, Clone)]
            pub struct Order { $($of: $order),* }
            #[derive(Record, Clone)]
            pub struct Sum { $($in: $sum),* }
            impl Version for $name {
                type Order = Order;
                type Sum = Sum;
                $(const OPERATOR: &'static str = $operator;)?
                fn order(index: u64) -> Order {
                    Order { $($of: (|$index: u64| $made)(index)),* }
                }
                fn key(order: &Order) -> u64 {
                    order.key.into()
                }
                fn start() -> Sum {
                    Sum { $($in: $zero),* }
                }
                fn add($s: &mut Sum, _: Order) -> u64 {
                    $s.count += 1;
                    $add
                    $s.count.into()
                }
                fn count(sum: &Sum) -> u64 {
                    sum.count.into()
                }
            }
        };
    };
}

version!(First: { key: u32 = |index| (index % KEYS) as u32, side: bool = |index| index.is_multiple_of(2) }
    { count: u16 = 0, seen: u8 = 0, wide: [u64; 20] = [7; 20] } |sum| { sum.seen = sum.count as u8; });
version!(Second: { note: String = |index| format!("order {index}"), key: u64 = |index| index % KEYS }
{ seen: u32 = 0, wide: [u64; 20] = [7; 20], note: String = String::new(), count: u32 = 0 } |sum| {
    assert!(sum.seen == 0 || sum.seen == sum.count - 1, "what was kept has come along");
    sum.seen = sum.count;
    if sum.count.is_multiple_of(3) { sum.note.push_str("a third"); }
});
version!(Third: { key: u64 = |index| index % KEYS, note: Option<String> = |_| None, symbol: Text<4> = |_| Text::EMPTY }
    { note: Option<String> = None, count: u64 = 0, last: [u32; 2] = [0; 2], wide: Vec<u64> = vec![7; 20] } |sum| { sum.last[1] += 1; });
version!(Fourth "counts": { key: u64 = |index| index % KEYS } { wide: Vec<u64> = vec![7; 20], count: u64 = 0 } |sum| { assert_eq!(sum.wide, [7; 20]); });

pub fn store(disk: &SimDisk) -> Result<Store, Error> {
    let options =
        StoreOptions { page_bytes: 4096, segment_bytes: 64 << 10, writer_threads: 1, ..StoreOptions::default() };
    Ok(Store::open_on(Box::new(disk.clone()), options)?)
}

/// How a version is started.
#[derive(Clone, Copy)]
pub struct Way {
    pub tasks: u32,
    pub hydrate: Hydrate,
    pub protocol: Protocol,
}

pub const QUIET: Way = Way { tasks: 1, hydrate: Hydrate::OnTouch, protocol: Protocol::Aligned };

pub fn start<V: Version>(disk: &SimDisk, out: &Memory<(u64, u64)>, way: Way) -> Result<Local, Error> {
    let flow = Dataflow::new("evolving");
    flow.source("orders", Generate::new(EVENTS, 4, V::order))
        .stage("parsed")
        .key_by(V::key)
        .fold(V::OPERATOR, V::start(), |sum, order| {
            V::add(sum, order);
        })
        .map(|(key, sum)| (key, V::count(&sum)))
        .sink("out", out.clone());
    let mut checkpoints = Checkpoints::on_demand().store(store(disk)?).hydrate(way.hydrate).protocol(way.protocol);
    if V::OPERATOR != "sums" {
        checkpoints = checkpoints.renamed("sums", V::OPERATOR);
    }
    let config = Config::new().unpinned_workers(1).parallelism(way.tasks).batch_len_max(7).ring_capacity(2);
    flow.into_local(config.checkpoints(checkpoints))
}

/// The version of this number.
pub fn start_version(version: u64, disk: &SimDisk, out: &Memory<(u64, u64)>, way: Way) -> Result<Local, Error> {
    match version {
        0 => start::<First>(disk, out, way),
        1 => start::<Second>(disk, out, way),
        2 => start::<Third>(disk, out, way),
        _ => start::<Fourth>(disk, out, way),
    }
}

/// Makes a checkpoint, and gives its epoch.
pub fn checkpoint(job: &mut Local) -> Result<u64, Error> {
    let asked = job.checkpoint()?;
    loop {
        job.step()?;
        if let Some(report) = asked.try_wait()? {
            return Ok(report.epoch);
        }
    }
}

/// Each key was counted from one up, each count once.
pub fn assert_complete(out: &Memory<(u64, u64)>, what: &str) {
    let mut found = out.committed();
    found.sort_unstable();
    let expected: Vec<_> = (0..KEYS).flat_map(|key| (1..=EVENTS / KEYS).map(move |count| (key, count))).collect();
    assert!(found == expected, "{what}: {} results and not {}", found.len(), expected.len());
}
