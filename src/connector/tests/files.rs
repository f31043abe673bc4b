//! Output folders: names, rights, owners, and what a committer finds missing.

use super::place;
use crate::connector::{Csv, Files, JsonLines};
use crate::error::ConnectorError;
use crate::operator::{Part, Place, Sink, Writer};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;

/// The files in a folder, without the id file.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = entries.filter(|name| name != ".snapring-output").collect();
    names.sort();
    names
}

fn prepare(sink: &Files<u64>, place: &Place, task: u32, epoch: u64) -> Part {
    let mut writer = sink.writer(place, task).unwrap();
    writer.write(epoch * 10).unwrap();
    writer.prepare(epoch).unwrap().unwrap()
}

fn reason<T>(result: Result<T, ConnectorError>) -> String {
    match result.err().expect("it must be refused") {
        ConnectorError::Foreign { reason, .. } => reason,
        other => panic!("{other}"),
    }
}

#[test]
fn parts_are_named_by_epoch_task_and_attempt_and_are_the_owners_only() {
    let root = TempDir::new().unwrap();
    let folder = root.path().join("a/b");
    let place = place(0xab, false, 3);
    let sink = Csv::<u64>::exactly_once(&folder).unwrap();
    let mut committer = sink.claim(&place).unwrap();
    let part = prepare(&sink, &place, 2, 17);
    assert_eq!(names(&folder), [format!(".part-{}-0002-0003-000000.csv.pending", "ab".repeat(16))]);
    committer.sync(std::slice::from_ref(&part)).unwrap();
    committer.sync(std::slice::from_ref(&part)).unwrap();
    committer.commit(std::slice::from_ref(&part)).unwrap();
    committer.sync(&[part]).unwrap();
    let name = "part-0000000017-0002-0003.csv";
    assert_eq!(names(&folder), [name]);
    assert_eq!(std::fs::read_to_string(folder.join(name)).unwrap(), "170\n");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&root.path().join("a"))), (0o700, 0o700));
    assert_eq!((mode(&folder.join(name)), mode(&folder.join(".snapring-output"))), (0o600, 0o600));
    let json = JsonLines::<u64>::exactly_once(root.path().join("json")).unwrap();
    let mut committer = json.claim(&place).unwrap();
    committer.commit(&[prepare(&json, &place, 0, 1)]).unwrap();
    assert_eq!(names(&root.path().join("json")), ["part-0000000001-0000-0003.jsonl"]);
}

#[test]
fn a_part_larger_than_the_buffer_is_whole_and_an_epoch_without_records_has_none() {
    let folder = TempDir::new().unwrap();
    let place = Place { sync: false, ..place(1, false, 1) };
    let sink = Csv::<u64>::exactly_once(folder.path()).unwrap();
    let mut committer = sink.claim(&place).unwrap();
    let mut writer = sink.writer(&place, 0).unwrap();
    assert!(writer.prepare(1).unwrap().is_none());
    (0..200_000).for_each(|number| writer.write(number).unwrap());
    let first = writer.prepare(2).unwrap().unwrap();
    assert!(writer.prepare(3).unwrap().is_none());
    writer.write(7).unwrap();
    let second = writer.prepare(4).unwrap().unwrap();
    committer.sync(&[first.clone(), second.clone()]).unwrap();
    committer.commit(&[first, second]).unwrap();
    let names = names(folder.path());
    assert_eq!(names, ["part-0000000002-0000-0001.csv", "part-0000000004-0000-0001.csv"]);
    let expected: String = (0..200_000).map(|number| format!("{number}\n")).collect();
    assert_eq!(std::fs::read_to_string(folder.path().join(&names[0])).unwrap(), expected);
}

#[test]
fn a_folder_belongs_to_one_store_and_to_one_job_at_a_time() {
    let folder = TempDir::new().unwrap();
    let sink = Csv::<u64>::exactly_once(folder.path()).unwrap();
    assert!(reason(sink.claim(&Place { store_id: None, ..place(1, false, 1) })).contains("checkpoints"));
    assert!(reason(sink.claim(&place(1, true, 2))).contains("does not belong"));
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none(), "nothing is left where one was refused");
    let mut committer = sink.claim(&place(1, false, 1)).unwrap();
    assert!(reason(Csv::<u64>::exactly_once(folder.path()).unwrap().claim(&place(2, false, 1))).contains("in use"));
    drop(committer);
    // Nobody has written anything: another store may have it, and then its first owner may not.
    committer = sink.claim(&place(2, false, 1)).unwrap();
    committer.commit(&[prepare(&sink, &place(2, false, 1), 0, 1)]).unwrap();
    drop(committer);
    for (refused, why) in
        [(place(1, true, 2), "does not belong"), (place(1, false, 2), "part-"), (place(2, false, 2), "part-")]
    {
        assert!(reason(sink.claim(&refused)).contains(why), "{refused:?}");
    }
    sink.claim(&place(2, true, 2)).unwrap();
}

#[test]
fn a_missing_folder_is_not_made_anew_for_a_job_that_goes_on() {
    let root = TempDir::new().unwrap();
    let sink = Csv::<u64>::exactly_once(root.path().join("gone")).unwrap();
    assert!(reason(sink.claim(&place(1, true, 2))).contains("missing"));
    assert!(std::fs::read_dir(root.path()).unwrap().next().is_none());
}

#[test]
fn a_folder_holds_one_format() {
    let folder = TempDir::new().unwrap();
    let csv = Csv::<u64>::exactly_once(folder.path()).unwrap();
    let json = JsonLines::<u64>::exactly_once(folder.path()).unwrap();
    let mut committer = csv.claim(&place(1, false, 1)).unwrap();
    let part = prepare(&csv, &place(1, false, 1), 0, 1);
    drop(committer);
    let recover = |listed: &[Part]| json.claim(&place(1, true, 2)).unwrap().recover(listed);
    assert!(reason(recover(std::slice::from_ref(&part))).contains("part-0000000001-0000-0001.csv"));
    committer = csv.claim(&place(1, true, 2)).unwrap();
    committer.recover(&[part]).unwrap();
    drop(committer);
    assert!(reason(recover(&[])).contains("go on with the format"));
    assert_eq!(names(folder.path()), ["part-0000000001-0000-0001.csv"]);
}

#[test]
fn a_fresh_job_takes_its_own_pending_parts_away_but_nobody_elses() {
    let folder = TempDir::new().unwrap();
    let sink = Csv::<u64>::exactly_once(folder.path()).unwrap();
    let committer = sink.claim(&place(1, false, 1)).unwrap();
    prepare(&sink, &place(1, false, 1), 0, 1);
    drop(committer);
    assert!(reason(sink.claim(&place(2, false, 1))).contains(".part-0101"));
    let mut committer = sink.claim(&place(1, false, 1)).unwrap();
    std::fs::write(folder.path().join("notes.csv"), "mine").unwrap();
    let other = format!(".part-{}-0000-0001-000000.csv.pending", "02".repeat(16));
    std::fs::write(folder.path().join(&other), "theirs").unwrap();
    committer.recover(&[]).unwrap();
    assert_eq!(names(folder.path()), [other.as_str(), "notes.csv"]);
}

#[test]
fn parts_of_others_and_damaged_id_files_are_refused() {
    for (name, content, accepted) in [
        ("part-r-00000.parquet", "x", false),
        (".snapring-output", "snapring output folder 2, store 00\n", false),
        (".snapring-output", "something else\n", false),
        (".snapring-output", "", true),
        (".snapring-output", "snapring output fol", true),
        (".snapring-output", "snapring output folder 1, store 0123", true),
        ("readme.txt", "x", true),
    ] {
        let folder = TempDir::new().unwrap();
        std::fs::write(folder.path().join(name), content).unwrap();
        let sink = Csv::<u64>::exactly_once(folder.path()).unwrap();
        let claimed = sink.claim(&place(1, false, 1)).map(drop);
        assert_eq!(claimed.is_ok(), accepted, "{name} {content}: {claimed:?}");
        assert_eq!(sink.claim(&place(1, true, 2)).is_ok(), accepted, "{name} {content}");
    }
}

#[test]
fn a_file_in_the_place_of_the_folder_is_refused_when_it_is_named() {
    let folder = TempDir::new().unwrap();
    let path = super::file(&folder, "out", b"x");
    assert!(Csv::<u64>::exactly_once(&path).unwrap_err().to_string().contains("it is a file"));
    assert!(Csv::<u64>::exactly_once(path.join("below")).is_err());
}

#[test]
fn missing_doubled_and_senseless_parts_are_errors() {
    let folder = TempDir::new().unwrap();
    let sink = Csv::<u64>::exactly_once(folder.path()).unwrap();
    let mut committer = sink.claim(&place(1, false, 1)).unwrap();
    let part = prepare(&sink, &place(1, false, 1), 0, 1);
    let pending = folder.path().join(&names(folder.path())[0]);
    let committed = folder.path().join("part-0000000001-0000-0001.csv");
    std::fs::copy(&pending, &committed).unwrap();
    assert!(reason(committer.commit(std::slice::from_ref(&part))).contains("both pending and committed"));
    std::fs::remove_file(&committed).unwrap();
    std::fs::remove_file(&pending).unwrap();
    for missing in [committer.commit(std::slice::from_ref(&part)), committer.recover(std::slice::from_ref(&part))] {
        assert!(reason(missing).contains("part-0000000001-0000-0001.csv is missing"));
    }
    // The first sync has the file still open; the next one would have to find it.
    committer.sync(std::slice::from_ref(&part)).unwrap();
    assert!(reason(committer.sync(std::slice::from_ref(&part))).contains("is missing"));
    for bytes in [vec![], part.0[1..].to_vec(), [part.0.as_slice(), &[0]].concat(), vec![0xff; part.0.len()]] {
        assert!(reason(committer.commit(&[Part(bytes)])).contains("the snapshot lists a part"));
    }
}

#[test]
fn results_of_epochs_that_the_store_has_lost_are_refused() {
    let folder = TempDir::new().unwrap();
    let sink = || Csv::<u32>::exactly_once(folder.path().join("out")).unwrap();
    let place = |newest_epoch, restored| Place { newest_epoch, ..place(1, restored, 1) };
    let committed = sink();
    let mut committer = committed.claim(&place(0, false)).unwrap();
    committer.recover(&[]).unwrap();
    let mut writer = committed.writer(&place(0, false), 0).unwrap();
    writer.write(7).unwrap();
    let part = writer.prepare(5).unwrap().unwrap();
    committer.sync(std::slice::from_ref(&part)).unwrap();
    committer.commit(&[part]).unwrap();
    drop((committer, writer, committed));
    let again = sink();
    let error = again.claim(&place(4, true)).unwrap().recover(&[]).unwrap_err().to_string();
    assert!(error.contains("part-") && error.contains("later epoch than 4") && error.contains("move"), "{error}");
    again.claim(&place(5, true)).unwrap().recover(&[]).unwrap();
}
