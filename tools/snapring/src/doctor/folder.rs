//! The state folder: whether it can be used, what is in it already, and what its file system does to checkpoints.

use super::finding::{Finding, Level};
use super::probe::{Probe, probe};
use indicatif::BinaryBytes;
use snapring::error::StoreError;
use snapring::runtime::CheckpointInfo;
use snapring::snapshot::Reader;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

/// A network disk that is gone never answers.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
/// Below it a checkpoint of a small state takes longer for the sync than for all else.
const SLOW_SYNC: Duration = Duration::from_millis(20);
/// The first segment of a store, and room to grow.
const TIGHT_BYTES: u64 = 256 << 20;

pub fn look(state: Option<&Path>) -> Vec<Finding> {
    let Some(dir) = state else {
        let says = "none was named: --state DIR also looks at where checkpoints are to go";
        return vec![Finding::new(Level::Note, "folder", says)];
    };
    let (answer, answered) = channel();
    let asked = dir.to_owned();
    // Left behind if it does not come back.
    std::thread::spawn(move || answer.send(examine(&asked)));
    answered.recv_timeout(ANSWERS_WITHIN).unwrap_or_else(|_| {
        let says = format!("{}: no answer within {ANSWERS_WITHIN:?}", dir.display());
        vec![Finding::new(Level::Error, "folder", says).but(Level::Error, "see to the disk, or name another folder")]
    })
}

fn examine(dir: &Path) -> Vec<Finding> {
    let (contents, place) = match contents(dir) {
        Ok(found) => found,
        Err(unusable) => return vec![unusable],
    };
    match probe(&place) {
        Ok(probe) => vec![contents, file_system(&probe), space(&probe), sync(&probe)],
        Err(error) => {
            let what =
                if place == dir { "it".to_owned() } else { format!("{}, where it would be made", place.display()) };
            let advice = "see to its permissions, or name a folder that is yours to write to";
            vec![unusable(dir, &format!("cannot write a file to {what}: {error}"), advice)]
        }
    }
}

fn unusable(path: &Path, what: &str, advice: &str) -> Finding {
    Finding::new(Level::Error, "folder", format!("{}: {what}", path.display())).but(Level::Error, advice)
}

/// What is in the folder, and where to try its file system: the folder, or the nearest one above that is there.
fn contents(dir: &Path) -> Result<(Finding, PathBuf), Finding> {
    let ok = |says: String| Finding::ok("folder", format!("{}: {says}", dir.display()));
    match fs::metadata(dir) {
        Ok(found) if !found.is_dir() => Err(unusable(dir, "a file, not a folder", "name a folder")),
        Ok(_) => Ok((store(dir, ok)?, dir.to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let above = dir.ancestors().skip(1).find(|above| above.as_os_str().is_empty() || above.exists());
            let above = above.filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
            Ok((ok("not there yet, `run` makes it".to_owned()), above.to_owned()))
        }
        Err(error) => {
            Err(unusable(dir, &format!("cannot be opened: {error}"), "see to its permissions, or name another folder"))
        }
    }
}

fn store(dir: &Path, ok: impl Fn(String) -> Finding) -> Result<Finding, Finding> {
    let entries = fs::read_dir(dir).map_err(|error| {
        unusable(dir, &format!("cannot be read: {error}"), "see to its permissions, or name another folder")
    })?;
    let is_empty = entries.flatten().all(|entry| entry.file_name() == "lock");
    match Reader::open(dir) {
        _ if is_empty => Ok(ok("empty".to_owned())),
        Ok(reader) => {
            let epochs = reader.epochs();
            let newest = epochs.last().map(|newest| newest.epoch);
            let job =
                newest.and_then(|epoch| CheckpointInfo::read(&reader.header(epoch).ok()?).ok()).map(|info| info.job);
            let says = match (newest, &job) {
                (Some(epoch), Some(job)) => format!("holds checkpoints of `{job}`, the newest of epoch {epoch}"),
                (Some(epoch), None) => format!("holds checkpoints, the newest of epoch {epoch}"),
                (None, _) => "a store without checkpoints".to_owned(),
            };
            Ok(ok(says).fact("newest_epoch", newest).fact("job", job))
        }
        Err(error @ StoreError::Corrupt { .. }) => {
            let advice = format!("`snapring inspect verify {}` says more", dir.display());
            Err(Finding::new(Level::Error, "folder", error.to_string()).but(Level::Error, advice))
        }
        Err(error) => {
            Err(Finding::new(Level::Error, "folder", error.to_string())
                .but(Level::Error, "name an empty or a new folder"))
        }
    }
}

fn file_system(probe: &Probe) -> Finding {
    let Probe { kind, .. } = probe;
    let mut says = kind.name.clone();
    says +=
        if probe.allocates { ", allocates space ahead" } else { ", does not allocate space ahead: zeros are written" };
    let finding = Finding::ok("file system", says)
        .fact("name", kind.name.as_str())
        .fact("magic", kind.magic)
        .fact("allocates", probe.allocates);
    match kind.advice {
        Some((level, advice)) => finding.but(level, advice),
        None => finding,
    }
}

fn space(probe: &Probe) -> Finding {
    let says = format!("{} free of {}", BinaryBytes(probe.free_bytes), BinaryBytes(probe.total_bytes));
    let finding =
        Finding::ok("disk space", says).fact("free_bytes", probe.free_bytes).fact("total_bytes", probe.total_bytes);
    if probe.free_bytes >= TIGHT_BYTES {
        return finding;
    }
    finding.but(Level::Warning, "checkpoints that do not fit are given up, and the job runs on without: free some")
}

fn sync(probe: &Probe) -> Finding {
    let about = "disk sync";
    let mut times = probe.syncs.clone();
    times.sort_unstable();
    let Some(p50) = times.get(times.len() / 2).copied() else {
        return Finding::new(Level::Warning, about, "a sync was refused")
            .but(Level::Warning, "checkpoints cannot be made to survive a loss of power here: name another folder");
    };
    let says = format!("half of {} took at most {p50:.1?}", times.len());
    let finding = Finding::ok(about, says).fact("p50_ns", p50.as_nanos() as u64).fact("syncs", times.len());
    if p50 < SLOW_SYNC {
        return finding;
    }
    finding.but(
        Level::Warning,
        "each checkpoint syncs twice: a --checkpoint-interval well above that, a faster disk, or --durability process-crash",
    )
}
