//! What a snapshot holds of channels, on its way back: all of it arrives once, at another parallelism too; and what cannot is
//! refused by name.

use snapring::connector::{Generate, Memory};
use snapring::error::{Error, RestoreError};
use snapring::runtime::{Local, StageConfig};
use snapring::{Checkpoints, Config, Dataflow, Protocol};
use std::path::Path;

fn config(state: &Path, protocol: Protocol, tasks: u32) -> Config {
    let checkpoints = Checkpoints::on_demand().protocol(protocol).to(state);
    Config::new()
        .unpinned_workers(1)
        .parallelism(1)
        .stage("all", StageConfig::new().parallelism(tasks))
        .ring_capacity(4)
        .batch_len_max(1)
        .checkpoints(checkpoints)
}

/// Steps a job until its rings hold something, and takes a checkpoint.
fn cut(mut job: Local) {
    for _ in 0..40 {
        job.step().unwrap();
    }
    let checkpoint = job.checkpoint().unwrap();
    loop {
        if let Some(report) = checkpoint.try_wait().unwrap() {
            assert!(report.channel_bytes > 0, "{report:?}: the test shows nothing");
            return;
        }
        job.step().unwrap();
    }
}

#[test]
fn records_on_their_way_to_everybody_go_on_with_as_many_tasks_only() {
    for protocol in [Protocol::Unaligned, Protocol::StopTheWorld] {
        let state = tempfile::tempdir().unwrap();
        let results = Memory::new();
        let draw = || {
            let flow = Dataflow::new("broadcast");
            let numbers = flow.source("numbers", Generate::new(100, 1, |index| index));
            numbers.broadcast("all").sink("results", results.clone());
            flow
        };
        let start = |tasks| draw().into_local(config(state.path(), protocol, tasks));
        cut(start(2).unwrap());
        match start(3) {
            Err(Error::Restore(RestoreError::Broadcast { then: 2, now: 3, edge, .. })) => {
                assert!(edge.ends_with("->all"))
            }
            other => panic!("{other:?}"),
        }
        start(2).unwrap().run().unwrap();
        let mut all = results.committed();
        all.sort_unstable();
        assert_eq!(all, (0..100).flat_map(|number| [number; 2]).collect::<Vec<u64>>(), "{protocol}");
    }
}

#[test]
fn records_on_their_way_along_an_edge_that_is_gone_are_not_forgotten() {
    let state = tempfile::tempdir().unwrap();
    let results = Memory::new();
    let draw = |stage: &str| {
        let flow = Dataflow::new("renamed");
        let numbers = flow.source("numbers", Generate::new(100, 1, |index| index));
        numbers.stage(stage).sink("results", results.clone());
        flow
    };
    let config = |protocol, tasks| config(state.path(), protocol, tasks);
    cut(draw("all").into_local(config(Protocol::Unaligned, 1)).unwrap());
    let other = Config::new().unpinned_workers(1).checkpoints(Checkpoints::on_demand().to(state.path()));
    match draw("other").into_local(other) {
        Err(Error::Restore(error @ RestoreError::Channel { .. })) => {
            let message = error.to_string();
            assert!(message.contains("`numbers->all`") && message.contains("`numbers->other`"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    // With its old name, at another parallelism and under another protocol.
    draw("all").into_local(config(Protocol::Aligned, 3)).unwrap().run().unwrap();
    let mut all = results.committed();
    all.sort_unstable();
    assert_eq!(all, (0..100).collect::<Vec<u64>>());
}
