//! A program that is stopped, changed and started again on what it has left: types that have become others, operators that
//! have got other names, crashes in the middle of a migration. What it counts in the end is what an undisturbed run counts.

mod programs;

use programs::*;
use snapring::Protocol;
use snapring::connector::{Generate, Memory};
use snapring::dataflow::Dataflow;
use snapring::error::{Error, RestoreError};
use snapring::operator::Progress;
use snapring::record::{Schema, from_bytes};
use snapring::runtime::{Checkpoints, Config, Hydrate, Local, View};
use snapring::snapshot::RestoredEntry;
use snapring::snapshot::sim::{Incident, SimDisk};
use std::collections::{BTreeMap, BTreeSet};

/// A small generator: its seed is the test.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % end
    }
}

fn steps(job: &mut Local, count: u64) -> Result<Progress, Error> {
    let mut progress = Progress::Made;
    for _ in 0..count {
        progress = job.step()?;
        if progress == Progress::Done {
            break;
        }
    }
    Ok(progress)
}

/// The entries of the newest epoch.
fn kept(disk: &SimDisk) -> Vec<RestoredEntry> {
    let store = store(disk).unwrap();
    store.newest().map_or(Vec::new(), |epoch| store.restore(epoch).unwrap().entries)
}

fn states(disk: &SimDisk) -> BTreeSet<String> {
    kept(disk).into_iter().filter(|entry| entry.paged).map(|entry| entry.state).collect()
}

/// Where the pages of a state lie in the file.
fn places(disk: &SimDisk, state: &str) -> BTreeSet<u64> {
    let entries = kept(disk);
    let of_state = entries.iter().filter(|entry| entry.state == state);
    of_state.flat_map(|entry| entry.places().map(|(_, offset, ..)| offset)).collect()
}

#[test]
fn whatever_happens_between_versions_every_record_counts_once() {
    let mut all = (0, 0);
    for seed in 0..25 {
        let (disk, out, mut dice) = (SimDisk::new(), Memory::new(), Dice(seed * 977));
        let (mut version, mut crashes) = (0, 0);
        let finished = loop {
            let way = Way {
                tasks: if dice.below(6) == 0 { 1 + dice.below(3) as u32 } else { 2 },
                hydrate: if dice.below(4) == 0 { Hydrate::Background } else { Hydrate::OnTouch },
                protocol: if dice.below(2) == 0 { Protocol::Unaligned } else { Protocol::Aligned },
            };
            let mut job = start_version(version, &disk, &out, way).unwrap();
            let fails = dice.below(4) == 0;
            if fails {
                disk.at(disk.calls() + dice.below(30), Incident::Fail);
            }
            let done = (0..1 + dice.below(6)).any(|_| {
                let stepped = steps(&mut job, dice.below(120)).unwrap();
                if dice.below(3) > 0 && stepped != Progress::Done {
                    // One that fails is declined, and the job goes on.
                    let asked = job.checkpoint().unwrap();
                    let _ = steps(&mut job, dice.below(60));
                    drop(asked);
                }
                stepped == Progress::Done
            });
            drop(job);
            // Where a sync has failed nobody knows what the next start finds in the system's memory.
            if fails || dice.below(2) == 0 {
                disk.crash(|_| dice.below(2) == 0);
                out.lose_power();
            } else {
                disk.kill();
            }
            if done && version >= 3 {
                break true;
            }
            all.1 += u32::from(states(&disk).iter().any(|state| state.contains("@outdated")));
            crashes += 1;
            // Not before there is something to migrate.
            if places(&disk, "table").len() > 60 || crashes > 60 {
                version = (version + dice.below(2)).min(3);
            }
            if crashes > 300 {
                break false;
            }
        };
        assert!(finished, "seed {seed} never came to its end");
        assert_complete(&out, &format!("seed {seed}"));
        all.0 += crashes;
    }
    assert!(all.0 > 200 && all.1 > 40, "{} crashes, {} in the middle of a migration", all.0, all.1);
}

#[test]
fn a_new_type_writes_nothing_of_the_old_state_again_and_its_keys_are_migrated_when_they_are_touched() {
    let (disk, out) = (SimDisk::new(), Memory::new());
    let mut job = start::<First>(&disk, &out, QUIET).unwrap();
    while job.progress().records < 2 * KEYS {
        job.step().unwrap();
    }
    checkpoint(&mut job).unwrap();
    drop(job);
    let before = places(&disk, "table");
    assert!(before.len() > 10, "{} pages", before.len());

    // The first record of the second version touches one page.
    let mut job = start::<Second>(&disk, &out, QUIET).unwrap();
    while job.progress().records == 0 {
        job.step().unwrap();
    }
    checkpoint(&mut job).unwrap();
    drop(job);
    assert_eq!(states(&disk), ["table", "table@outdated"].map(str::to_owned).into());
    let after = places(&disk, "table@outdated");
    assert!(after.is_subset(&before) && after.len() < before.len(), "they stay where they were");
    assert!(2 * after.len() > before.len(), "{} of {} are left", after.len(), before.len());
    let schemas: Vec<String> = kept(&disk)
        .iter()
        .filter(|entry| entry.paged)
        .map(|entry| Schema::decode(&mut entry.schema.as_slice()).unwrap().to_string())
        .collect();
    assert!(schemas[0].contains("note: String") && schemas[1].contains("seen: u8"), "{schemas:?}");

    // Another version while the first is not over, and back from a crash into the same.
    for _ in 0..2 {
        let mut job = start::<Third>(&disk, &out, QUIET).unwrap();
        steps(&mut job, 3).unwrap();
        checkpoint(&mut job).unwrap();
    }
    let names = ["table", "table@outdated", "table@outdated-2"];
    assert_eq!(states(&disk), names.map(str::to_owned).into());

    let mut job = start::<Third>(&disk, &out, Way { hydrate: Hydrate::Background, ..QUIET }).unwrap();
    while job.step().unwrap() != Progress::Done {}
    drop(job);
    assert_eq!(states(&disk), ["table".to_owned()].into(), "all is of today");
    assert_complete(&out, "in the end");
}

/// A table that outdated values are read from and not brought over is emitted whole, once.
#[test]
fn the_end_of_the_input_finds_what_nobody_has_touched() {
    mod then {
        #[derive(snapring::Record, Clone)]
        pub struct Count {
            pub count: u32,
        }
    }
    #[derive(snapring::Record, Clone)]
    struct Count {
        since: Option<u64>,
        count: u64,
    }
    let (disk, out) = (SimDisk::new(), Memory::new());
    let config = |tasks| {
        let checkpoints = Checkpoints::on_demand().store(store(&disk).unwrap()).hydrate(Hydrate::OnTouch);
        Config::new().unpinned_workers(1).parallelism(tasks).batch_len_max(50).checkpoints(checkpoints)
    };
    let numbers = || Generate::new(KEYS, 1, |index| index);
    let flow = Dataflow::new("counts");
    flow.source("numbers", numbers())
        .key_by(|number| *number)
        .fold_to_end("count", then::Count { count: 0 }, |sum, _| sum.count += 1)
        .map(|(key, sum)| (key, u64::from(sum.count)))
        .sink("out", out.clone());
    let mut job = flow.into_local(config(1)).unwrap();
    while job.progress().records < KEYS - 10 {
        job.step().unwrap();
    }
    checkpoint(&mut job).unwrap();
    drop(job);
    let draw = || {
        let flow = Dataflow::new("counts");
        flow.source("numbers", numbers())
            .key_by(|number| *number)
            .fold_to_end("count", Count { since: None, count: 0 }, |sum, _| sum.count += 1)
            .map(|(key, sum)| {
                assert!(sum.since.is_none());
                (key, sum.count)
            })
            .sink("out", out.clone());
        flow
    };
    // Left off as it emits, twice, once to go on at another parallelism.
    for tasks in [1, 2] {
        let mut job = draw().into_local(config(tasks)).unwrap();
        steps(&mut job, 3).unwrap();
        checkpoint(&mut job).unwrap();
    }
    draw().into_local(config(2)).unwrap().run().unwrap();
    let mut found = out.committed();
    found.sort_unstable();
    assert_eq!(found, (0..KEYS).map(|key| (key, 1)).collect::<Vec<_>>());
}

/// What a view holds, by looking through it and by looking each key up.
fn seen<V: Version>(view: &View) -> BTreeMap<u64, u64> {
    let table = view.table::<u64, V::Sum>("sums").unwrap();
    let mut counts = BTreeMap::new();
    table.each(|key, sum| assert!(counts.insert(key, V::count(&sum)).is_none())).unwrap();
    assert_eq!(table.len(), counts.len() as u64);
    for (key, count) in &counts {
        assert_eq!(table.get(key).unwrap().map(|sum| V::count(&sum)), Some(*count));
    }
    assert!(table.get(&KEYS).unwrap().is_none());
    counts
}

#[test]
fn a_view_of_a_table_that_is_being_migrated_holds_values_of_today_and_stays_as_it_is() {
    let (disk, out) = (SimDisk::new(), Memory::new());
    for tasks in [2, 1] {
        let mut job = start::<First>(&disk, &out, Way { tasks, ..QUIET }).unwrap();
        while job.progress().records < KEYS + 500 {
            job.step().unwrap();
        }
        checkpoint(&mut job).unwrap();
    }
    let mut job = start::<Second>(&disk, &out, Way { hydrate: Hydrate::Background, ..QUIET }).unwrap();
    steps(&mut job, 9).unwrap();
    let asked = job.view().unwrap();
    let view = loop {
        job.step().unwrap();
        if let Some(view) = asked.try_wait().unwrap() {
            break view;
        }
    };
    assert_eq!(view.states().collect::<Vec<_>>(), [("sums", "table")]);
    let before = seen::<Second>(&view);
    assert_eq!(before.len() as u64, KEYS);
    while job.step().unwrap() != Progress::Done {}
    assert_eq!(seen::<Second>(&view), before);
    drop(job);
    assert_eq!(states(&disk), ["table".to_owned()].into());
}

fn refused<V: Version>(disk: &SimDisk) -> Error {
    start::<V>(disk, &Memory::new(), QUIET).unwrap_err()
}

#[test]
fn what_cannot_be_migrated_is_refused_with_both_schemas_and_the_reason() {
    let (disk, out) = (SimDisk::new(), Memory::new());
    let mut job = start::<Third>(&disk, &out, QUIET).unwrap();
    steps(&mut job, 50).unwrap();
    checkpoint(&mut job).unwrap();
    drop(job);
    let image = disk.image();
    let error = refused::<First>(&disk);
    assert!(matches!(&error, Error::Restore(RestoreError::Schema { state, .. }) if state == "table"), "{error}");
    assert_eq!(error.exit_code(), 4);
    let said = error.to_string();
    let parts = [
        "(u64, Sum { count: u16, seen: u8, wide: [u64; 20] })",
        "count: u64, last: [u32; 2]",
        "value `count`: u64 cannot become u16",
    ];
    assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    assert_eq!(disk.image(), image, "a refusal changes nothing");
    // A key cannot change, however much wider it gets.
    let flow = Dataflow::new("evolving");
    flow.source("orders", Generate::new(EVENTS, 4, Third::order))
        .stage("parsed")
        .key_by(|order| i128::from(Third::key(order)))
        .fold("sums", Third::start(), |sum, order| {
            Third::add(sum, order);
        })
        .map(|(key, sum)| (key as u64, Third::count(&sum)))
        .sink("out", out.clone());
    let checkpoints = Checkpoints::on_demand().store(store(&disk).unwrap());
    let error = flow.into_local(Config::new().unpinned_workers(1).checkpoints(checkpoints)).unwrap_err().to_string();
    assert!(error.contains("its key is encoded otherwise now"), "{error}");
}

/// Starts with these rules for names, of a source, an operator and a sink.
fn renamed(disk: &SimDisk, out: &Memory<(u64, u64)>, names: [&str; 4], rules: &[(&str, &str)]) -> Result<Local, Error> {
    let flow = Dataflow::new("named");
    flow.source(names[0], Generate::new(EVENTS, 2, |index| index % KEYS))
        .stage(names[1])
        .key_by(|key| *key)
        .count(names[2])
        .sink(names[3], out.clone());
    let mut checkpoints = Checkpoints::on_demand().store(store(disk)?).protocol(Protocol::Unaligned);
    for (old, new) in rules {
        checkpoints = checkpoints.renamed(*old, *new);
    }
    flow.into_local(Config::new().unpinned_workers(1).parallelism(2).batch_len_max(9).checkpoints(checkpoints))
}

#[test]
fn renamed_operators_go_on_and_a_rule_may_stay() {
    let (disk, out) = (SimDisk::new(), Memory::new());
    let old = ["keys", "stage", "count", "out"];
    let new = ["numbers", "parse", "counted", "results"];
    let rules: Vec<_> = old.into_iter().zip(new).collect();
    let mut job = renamed(&disk, &out, old, &[]).unwrap();
    steps(&mut job, 70).unwrap();
    checkpoint(&mut job).unwrap();
    drop(job);
    let entries = kept(&disk);
    let on_the_way = entries.iter().filter(|entry| entry.state.starts_with("input:")).map(|entry| {
        let parts: Vec<snapring::snapshot::ChannelPart> = from_bytes(&entry.root).unwrap();
        parts.iter().map(|part| part.records).sum::<u64>()
    });
    assert!(on_the_way.sum::<u64>() > 0, "records are on their way along edges that are called otherwise");

    let error = renamed(&disk, &out, new, &[]).unwrap_err();
    assert!(matches!(error, Error::Restore(_)), "{error}");
    let before = places(&disk, "table");
    for _ in 0..3 {
        let mut job = renamed(&disk, &out, new, &rules).unwrap();
        steps(&mut job, 3).unwrap();
        checkpoint(&mut job).unwrap();
    }
    assert!(places(&disk, "table").intersection(&before).count() > 0, "pages stay where they were");
    assert!(kept(&disk).iter().all(|entry| !old.contains(&entry.operator.as_str())));
    renamed(&disk, &out, new, &[]).unwrap().run().unwrap();
    assert_complete(&out, "renamed");
}

#[test]
fn rules_that_do_not_fit_are_refused() {
    let (disk, out) = (SimDisk::new(), Memory::new());
    let old = ["keys", "stage", "count", "out"];
    let mut job = renamed(&disk, &out, old, &[]).unwrap();
    steps(&mut job, 70).unwrap();
    checkpoint(&mut job).unwrap();
    drop(job);
    let new = ["keys", "stage", "counted", "out"];
    let reason = |names, rules: &[(&str, &str)]| match renamed(&disk, &out, names, rules).unwrap_err() {
        Error::Restore(RestoreError::Renamed { reason, .. }) => reason,
        other => panic!("{other}"),
    };
    assert_eq!(reason(new, &[("count", "sums")]), "the dataflow has no `sums`");
    assert_eq!(reason(new, &[("sums", "counted")]), "the snapshot has neither");
    assert_eq!(reason(old, &[("count", "out")]), "the snapshot has both");
    assert_eq!(reason(old, &[("count", "count")]), "that is its name");
    let two = "there is a rule that takes `count` as `counted`";
    assert_eq!(reason(new, &[("count", "counted"), ("sums", "counted")]), two);
    assert_eq!(reason(new, &[("count", "counted"), ("count", "out")]), two);
}
