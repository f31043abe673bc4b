//! What the system allows to a process.

use super::finding::{Finding, Level};
use indicatif::BinaryBytes;
use rustix::process::{Resource, getrlimit};

/// Files of a job: inputs and outputs of each task, the store, locks.
const FILES_MIN: u64 = 512;
/// A store grows by whole segments, and an output file lasts for an epoch.
const FILE_BYTES_MIN: u64 = 1 << 30;

pub fn look() -> Vec<Finding> {
    let limit = |resource| getrlimit(resource).current;
    vec![
        files(limit(Resource::Nofile)),
        file_size(limit(Resource::Fsize)),
        // Nothing is locked: the limit is told, and needs nothing.
        Finding::ok("locked bytes", format!("{}; none are needed", bytes(limit(Resource::Memlock))))
            .fact("limit_bytes", limit(Resource::Memlock)),
    ]
}

fn bytes(limit: Option<u64>) -> String {
    limit.map_or_else(|| "no limit".to_owned(), |bytes| format!("at most {}", BinaryBytes(bytes)))
}

fn files(limit: Option<u64>) -> Finding {
    let says = limit.map_or_else(|| "no limit".to_owned(), |files| format!("at most {files}"));
    let finding = Finding::ok("open files", says).fact("limit", limit);
    match limit {
        Some(files) if files < FILES_MIN => {
            finding.but(Level::Warning, "a job of many tasks and inputs needs more: ulimit -n 4096")
        }
        _ => finding,
    }
}

fn file_size(limit: Option<u64>) -> Finding {
    let finding = Finding::ok("file size", bytes(limit)).fact("limit_bytes", limit);
    match limit {
        Some(bytes) if bytes < FILE_BYTES_MIN => {
            finding.but(Level::Warning, "checkpoints that would grow beyond it are given up: ulimit -f unlimited")
        }
        _ => finding,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_limits_are_warnings() {
        assert_eq!(
            (files(None).level, files(Some(1024)).level, files(Some(64)).level),
            (Level::Ok, Level::Ok, Level::Warning)
        );
        assert_eq!((file_size(None).level, file_size(Some(100 << 10)).level), (Level::Ok, Level::Warning));
    }
}
