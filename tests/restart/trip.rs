//! User code that fails at one place, so many times.

use snapring::connector::{Generate, Memory};
use snapring::error::{ConnectorError, Failed};
use snapring::operator::{Committer, Emit, Part, Place, Read, Reader, Sink, Source, Split, Writer};
use snapring::record::{DecodeError, Input, Record, Schema};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Where user code runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    Map,
    Drop,
    Key,
    Fold,
    Verify,
    Open,
    Read,
    Claim,
    Recover,
    OpenWriter,
    Write,
    Prepare,
    Sync,
    Commit,
    DropOfWriter,
    DropOfCommitter,
}

pub const PLACES: [At; 16] = [
    At::Map,
    At::Drop,
    At::Key,
    At::Fold,
    At::Verify,
    At::Open,
    At::Read,
    At::Claim,
    At::Recover,
    At::OpenWriter,
    At::Write,
    At::Prepare,
    At::Sync,
    At::Commit,
    At::DropOfWriter,
    At::DropOfCommitter,
];

/// Panics at one place, or returns an error where it can, so many times.
#[derive(Clone, Debug)]
pub struct Trip(Arc<State>);

#[derive(Debug)]
struct State {
    at: At,
    /// Passes before the first failure, and after each.
    every: u64,
    passed: AtomicU64,
    left: AtomicU32,
    errs: bool,
}

impl Trip {
    pub fn new(at: At, every: u64, times: u32, errs: bool) -> Self {
        Self(Arc::new(State { at, every, passed: AtomicU64::new(0), left: AtomicU32::new(times), errs }))
    }

    /// How many failures are still to come.
    pub fn left(&self) -> u32 {
        self.0.left.load(Ordering::SeqCst)
    }

    fn is_due(&self, at: At) -> bool {
        let state = &self.0;
        if state.at != at || std::thread::panicking() {
            return false;
        }
        (state.passed.fetch_add(1, Ordering::SeqCst) + 1).is_multiple_of(state.every)
            && state.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
    }

    pub fn pass(&self, at: At) {
        assert!(!self.is_due(at), "tripped at {at:?}");
    }

    pub fn try_pass(&self, at: At) -> Result<(), ConnectorError> {
        if !self.is_due(at) {
            return Ok(());
        }
        assert!(self.0.errs, "tripped at {at:?}");
        let error = std::io::Error::other(format!("tripped at {at:?}"));
        Err(ConnectorError::Io { path: "trip".into(), action: "pass", error })
    }
}

/// A record whose drop is user code.
pub struct Dropping(pub u64, pub Trip);

impl Drop for Dropping {
    fn drop(&mut self) {
        self.1.pass(At::Drop);
    }
}

impl Record for Dropping {
    const WIDTH: Option<usize> = None;
    type Mirror = ();
    fn schema() -> Schema {
        u64::schema()
    }
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }
    fn decode(_: &mut Input<'_>) -> Result<Self, DecodeError> {
        Err(DecodeError::Invalid("it is never read back"))
    }
}

/// Numbers from 0, with some user code.
pub struct Numbers {
    pub inner: Generate<u64, fn(u64) -> u64>,
    pub trip: Trip,
}

impl Numbers {
    pub fn new(count: u64, splits: u32, trip: &Trip) -> Self {
        Self { inner: Generate::new(count, splits, |index| index), trip: trip.clone() }
    }
}

impl Source for Numbers {
    type Item = u64;
    type Reader = NumbersReader;

    fn splits(&self) -> Result<Vec<Split>, ConnectorError> {
        self.inner.splits()
    }
    fn verify(&self, splits: &[Split]) -> Result<(), ConnectorError> {
        self.trip.try_pass(At::Verify)?;
        self.inner.verify(splits)
    }
    fn open(&self, split: &Split, offset: u64) -> Result<NumbersReader, ConnectorError> {
        self.trip.try_pass(At::Open)?;
        Ok(NumbersReader(self.inner.open(split, offset)?, self.trip.clone()))
    }
}

pub struct NumbersReader(<Generate<u64, fn(u64) -> u64> as Source>::Reader, Trip);

impl Reader for NumbersReader {
    type Item = u64;
    fn read<E: Emit<u64>>(&mut self, max: usize, out: &mut E) -> Result<Read, Failed> {
        self.1.try_pass(At::Read)?;
        self.0.read(max.min(7), out)
    }
    fn offset(&self) -> u64 {
        self.0.offset()
    }
}

/// The sink in memory, with some user code.
pub struct Tripping {
    pub inner: Memory<(u64, u64)>,
    pub trip: Trip,
}

impl Sink for Tripping {
    type In = (u64, u64);
    type Writer = TrippingWriter;

    fn exactly_once(&self) -> bool {
        true
    }
    fn claim(&self, place: &Place) -> Result<Box<dyn Committer>, ConnectorError> {
        self.trip.try_pass(At::Claim)?;
        Ok(Box::new(TrippingCommitter(self.inner.claim(place)?, self.trip.clone())))
    }
    fn writer(&self, place: &Place, task: u32) -> Result<TrippingWriter, ConnectorError> {
        self.trip.try_pass(At::OpenWriter)?;
        Ok(TrippingWriter(self.inner.writer(place, task)?, self.trip.clone()))
    }
}

pub struct TrippingWriter(<Memory<(u64, u64)> as Sink>::Writer, Trip);

impl Writer for TrippingWriter {
    type In = (u64, u64);

    fn write(&mut self, record: (u64, u64)) -> Result<(), Failed> {
        self.1.try_pass(At::Write)?;
        self.0.write(record)
    }
    fn prepare(&mut self, epoch: u64) -> Result<Option<Part>, Failed> {
        self.1.try_pass(At::Prepare)?;
        self.0.prepare(epoch)
    }
}

impl Drop for TrippingWriter {
    fn drop(&mut self) {
        self.1.pass(At::DropOfWriter);
    }
}

struct TrippingCommitter(Box<dyn Committer>, Trip);

impl Committer for TrippingCommitter {
    fn recover(&mut self, listed: &[Part]) -> Result<(), ConnectorError> {
        self.1.try_pass(At::Recover)?;
        self.0.recover(listed)
    }
    fn sync(&mut self, parts: &[Part]) -> Result<(), ConnectorError> {
        self.1.try_pass(At::Sync)?;
        self.0.sync(parts)
    }
    fn commit(&mut self, parts: &[Part]) -> Result<(), ConnectorError> {
        self.1.try_pass(At::Commit)?;
        self.0.commit(parts)
    }
}

impl Drop for TrippingCommitter {
    fn drop(&mut self) {
        self.1.pass(At::DropOfCommitter);
    }
}
