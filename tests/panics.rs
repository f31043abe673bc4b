//! User code that panics outside of an operator's closure: in a sink's two phases, in a `drop`, in a key that is another
//! one each time. The job must fail with a name, neither hang nor take the caller's thread with it.

use snapring::connector::{Discard, Generate};
use snapring::dataflow::Dataflow;
use snapring::error::{ConnectorError, Failed};
use snapring::operator::{Committer, Part, Place, Progress, Sink, Writer};
use snapring::runtime::{Checkpoints, Config, Job};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Where a sink panics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Prepare,
    Sync,
    Commit,
    DropOfWriter,
}

#[derive(Clone, Copy)]
struct Panicking(At);

impl Panicking {
    fn at(self, at: At) {
        assert!(self.0 != at || std::thread::panicking(), "boom");
    }
}

impl Sink for Panicking {
    type In = u64;
    type Writer = PanickingWriter;

    fn exactly_once(&self) -> bool {
        true
    }
    fn claim(&self, _: &Place) -> Result<Box<dyn Committer>, ConnectorError> {
        Ok(Box::new(*self))
    }
    fn writer(&self, _: &Place, _: u32) -> Result<PanickingWriter, ConnectorError> {
        Ok(PanickingWriter(*self))
    }
}

struct PanickingWriter(Panicking);

impl Writer for PanickingWriter {
    type In = u64;

    fn write(&mut self, _: u64) -> Result<(), Failed> {
        Ok(())
    }
    fn prepare(&mut self, _: u64) -> Result<Option<Part>, Failed> {
        self.0.at(At::Prepare);
        Ok(Some(Part(Vec::new())))
    }
}

impl Drop for PanickingWriter {
    fn drop(&mut self) {
        self.0.at(At::DropOfWriter);
    }
}

impl Committer for Panicking {
    fn recover(&mut self, _: &[Part]) -> Result<(), ConnectorError> {
        Ok(())
    }
    fn sync(&mut self, _: &[Part]) -> Result<(), ConnectorError> {
        self.at(At::Sync);
        Ok(())
    }
    fn commit(&mut self, _: &[Part]) -> Result<(), ConnectorError> {
        self.at(At::Commit);
        Ok(())
    }
}

/// One split for two tasks of the source: the second is done before the first has read anything.
fn draw(at: At) -> Dataflow {
    let flow = Dataflow::new("panicking");
    flow.source("numbers", Generate::new(10_000, 1, |index| index)).sink("sink", Panicking(at));
    flow
}

fn config(folder: &tempfile::TempDir) -> Config {
    let checkpoints = Checkpoints::on_demand().to(folder.path());
    Config::new().unpinned_workers(1).parallelism(2).rate_per_s(100_000).checkpoints(checkpoints)
}

fn error_of(job: Job) -> String {
    let start = Instant::now();
    while !job.is_over() {
        assert!(start.elapsed() < Duration::from_secs(20), "it hangs");
        std::thread::sleep(Duration::from_millis(1));
    }
    job.wait().unwrap_err().to_string()
}

#[test]
fn a_sink_that_panics_fails_the_job_and_is_named() {
    for at in [At::Prepare, At::Sync, At::Commit] {
        let folder = tempfile::tempdir().unwrap();
        let error = error_of(draw(at).start(config(&folder)).unwrap());
        assert!(error.contains("`sink`") && error.contains("epoch 1") && error.contains("boom"), "{at:?}: {error}");
    }
}

#[test]
fn a_sink_that_panics_ends_a_local_job() {
    for at in [At::Prepare, At::Sync, At::Commit, At::DropOfWriter] {
        let folder = tempfile::tempdir().unwrap();
        let mut job = draw(at).into_local(config(&folder)).unwrap();
        let error = job.run().unwrap_err().to_string();
        assert!(error.contains("boom"), "{at:?}: {error}");
        assert_eq!(job.step().unwrap(), Progress::Done, "{at:?}");
    }
}

#[test]
fn a_drop_that_panics_takes_no_worker_away() {
    let folder = tempfile::tempdir().unwrap();
    let error = error_of(draw(At::DropOfWriter).start(config(&folder)).unwrap());
    assert!(error.contains("`numbers`") && error.contains("boom"), "{error}");
}

#[test]
fn a_key_that_changes_is_said_to() {
    let asked = AtomicU64::new(0);
    let flow = Dataflow::new("changing");
    let keyed = flow
        .source("numbers", Generate::new(10_000, 4, |index| index))
        .key_by(move |_| asked.fetch_add(1, Ordering::Relaxed));
    keyed.count("count").sink("out", Discard::new());
    let error = error_of(flow.start(Config::new().unpinned_workers(2).parallelism(3)).unwrap());
    assert!(error.contains("`count`") && error.contains("must follow from the record alone"), "{error}");
}
