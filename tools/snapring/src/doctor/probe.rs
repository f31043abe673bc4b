//! What a file system does with a file: tried with one of its own, which is removed again.

use super::finding::Level;
use rustix::fs::{FallocateFlags, fallocate, fdatasync, fstatfs};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const SYNCS_MAX: usize = 21;
const SYNCS_WITHIN: Duration = Duration::from_secs(1);
const BLOCK_BYTES: usize = 4096;

/// What was found out.
pub struct Probe {
    pub kind: Kind,
    pub free_bytes: u64,
    pub total_bytes: u64,
    /// Whether it allocates space without writing it.
    pub allocates: bool,
    /// How long each sync took; empty: it refuses to.
    pub syncs: Vec<Duration>,
}

/// A kind of file system.
pub struct Kind {
    pub name: String,
    /// What the system calls it.
    pub magic: u64,
    pub advice: Option<(Level, &'static str)>,
}

/// Removed when it goes out of scope.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // If that fails there is nothing more to be done about it.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Tries the file system of a folder.
pub fn probe(folder: &Path) -> io::Result<Probe> {
    // With a name: some file systems do not sync what has none any more.
    let path = folder.join(format!(".snapring-doctor-{}", std::process::id()));
    let file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&path)?;
    let _scratch = Scratch(path);
    let stat = fstatfs(&file)?;
    let block_bytes = u64::try_from(stat.f_bsize).unwrap_or(0);
    Ok(Probe {
        kind: kind(u64::try_from(stat.f_type).unwrap_or(0) & 0xffff_ffff),
        free_bytes: stat.f_bavail.saturating_mul(block_bytes),
        total_bytes: stat.f_blocks.saturating_mul(block_bytes),
        allocates: allocates(&file),
        syncs: syncs(&file)?,
    })
}

fn allocates(file: &File) -> bool {
    !matches!(fallocate(file, FallocateFlags::empty(), 0, 1 << 20), Err(Errno::OPNOTSUPP | Errno::NOSYS))
}

fn syncs(file: &File) -> io::Result<Vec<Duration>> {
    let (begin, mut times) = (Instant::now(), Vec::new());
    while times.len() < SYNCS_MAX && (times.is_empty() || begin.elapsed() < SYNCS_WITHIN) {
        // The same block again: a store writes to space that it has already.
        file.write_all_at(&[times.len() as u8 + 1; BLOCK_BYTES], 0)?;
        let start = Instant::now();
        if fdatasync(file).is_err() {
            break;
        }
        times.push(start.elapsed());
    }
    Ok(times)
}

fn kind(magic: u64) -> Kind {
    const MEMORY: Option<(Level, &str)> = Some((
        Level::Warning,
        "it is in memory: checkpoints survive the process, but no loss of power and no restart of the machine",
    ));
    const NETWORK: Option<(Level, &str)> = Some((
        Level::Warning,
        "it is on a network: slow to sync, and locks and mapped files may not work as on a disk; a local disk is safer",
    ));
    const LAYER: Option<(Level, &str)> =
        Some((Level::Note, "in a container it goes when the container is removed: mount a volume for what is to stay"));
    const USER: Option<(Level, &str)> = Some((Level::Note, "what a sync is worth depends on the program behind it"));
    let (name, advice) = match magic {
        0xef53 => ("ext4", None),
        0x5846_5342 => ("xfs", None),
        0x9123_683e => ("btrfs", None),
        0xf2f5_2010 => ("f2fs", None),
        0x2fc1_2fc1 => ("zfs", None),
        0xca45_1a4e => ("bcachefs", None),
        0x0102_1994 => ("tmpfs", MEMORY),
        0x8584_58f6 => ("ramfs", MEMORY),
        0x794c_7630 => ("overlayfs", LAYER),
        0x6969 => ("nfs", NETWORK),
        0xff53_4d42 | 0xfe53_4d42 | 0x517b => ("smb", NETWORK),
        0x00c3_6400 => ("ceph", NETWORK),
        0x0102_1997 => ("9p", NETWORK),
        0x6573_5546 => ("fuse", USER),
        other => {
            let (name, advice) = (format!("an unknown one ({other:#x})"), None);
            return Kind { name, magic, advice };
        }
    };
    Kind { name: name.to_owned(), magic, advice }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_tried_and_left_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let found = probe(dir.path()).unwrap();
        assert!(!found.syncs.is_empty() && found.total_bytes > 0 && !found.kind.name.is_empty());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(probe(&dir.path().join("missing")).is_err());
    }
}
