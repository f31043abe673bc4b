//! Epochs that are read by other processes: for each a file, `pins/E` in the store's folder, with locks that end with the
//! process that has them. It must not know what an epoch is.
//!
//! 1. A reader takes a shared lock, without waiting, and then looks at the head of the store again: an epoch that is in it
//!    now stays until the lock is gone.
//! 2. The writer takes an exclusive lock, without waiting, before it lets an epoch expire, and keeps it until the commit
//!    without that epoch is durable. If somebody else has a lock the epoch stays, and is tried again with the next commit.
//! 3. Whoever has an exclusive lock may remove the file. So a lock counts only if the file still has its name once it is
//!    locked; if not, one begins anew.
//! 4. A reader that cannot make or lock the file reads unpinned: it will notice if the epoch expires. Where the writer
//!    cannot, be it for a full disk, and there is no such file, nobody has pinned the epoch.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The folder within the store's.
pub(super) const PINS_DIR: &str = "pins";

/// How often one begins anew (rule 3).
const TRIES: u32 = 8;

/// What came of trying to pin an epoch.
pub enum Pinned {
    /// It stays for as long as this lives, if it is still in the head.
    Held(Box<dyn Send + Sync>),
    /// The writer is about to let it expire, or has.
    Expiring,
    /// That is not to be had here.
    Unpinned,
}

/// A locked file. What is shared goes when it is dropped, and the file with it if nobody else has a lock.
struct Locked {
    file: File,
    path: PathBuf,
}

impl Locked {
    fn remove(&self) {
        // A leftover does no harm.
        let _ = fs::remove_file(&self.path);
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        if self.file.try_lock().is_ok() {
            self.remove();
        }
        // Closing alone would leave it to a child process that another thread is about to start.
        let _ = self.file.unlock();
    }
}

fn open(dir: &Path, epoch: u64) -> io::Result<(File, PathBuf)> {
    let path = dir.join(epoch.to_string());
    let open = || OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
    let file = match open() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // Its error, if any, is that of the second try.
            let _ = DirBuilder::new().mode(0o700).create(dir);
            open()?
        }
        other => other?,
    };
    Ok((file, path))
}

fn has_its_name(file: &File, path: &Path) -> bool {
    let (Ok(here), Ok(there)) = (file.metadata(), fs::metadata(path)) else { return false };
    (here.dev(), here.ino()) == (there.dev(), there.ino())
}

/// Rule 1.
pub(super) fn pin(dir: &Path, epoch: u64) -> Pinned {
    for _ in 0..TRIES {
        let Ok((file, path)) = open(dir, epoch) else { return Pinned::Unpinned };
        match file.try_lock_shared() {
            Ok(()) if has_its_name(&file, &path) => return Pinned::Held(Box::new(Locked { file, path })),
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Pinned::Expiring,
            Err(TryLockError::Error(_)) => return Pinned::Unpinned,
        }
    }
    Pinned::Expiring
}

/// What the writer has locked (rule 2).
#[derive(Default)]
pub(super) struct Claims(Vec<Locked>);

impl Claims {
    /// Whether nobody reads this epoch; then nobody begins to until [`Claims::let_go`].
    pub fn claim(&mut self, dir: &Path, epoch: u64) -> bool {
        for _ in 0..TRIES {
            let (file, path) = match open(dir, epoch) {
                Ok(opened) => opened,
                // Rule 4.
                Err(_) => return !dir.join(epoch.to_string()).exists(),
            };
            match file.try_lock() {
                Ok(()) if has_its_name(&file, &path) => {
                    self.0.push(Locked { file, path });
                    return true;
                }
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return false,
                // Where there are no locks nobody has one.
                Err(TryLockError::Error(_)) => return true,
            }
        }
        false
    }

    /// The epochs are gone, or stay: the locks and their files go in either case.
    pub fn let_go(&mut self) {
        self.0.clear();
    }
}
