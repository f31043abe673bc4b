//! Where the jobs keep their files: a small file system of its own, if the system lets us have one, that can be filled up.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use tempfile::TempDir;

const WITHIN: &str = "SNAPRING_SOAK_DISK";
const SIZE: &str = "size=40m";
/// A folder in it that is never full.
pub const ROOMY: &str = "roomy";

/// Runs a test of this binary again, in a process space and with a file system that end with it. None: this is that run, or
/// there is no such thing here.
pub fn run_within(test: &str) -> Option<ExitStatus> {
    if std::env::var_os(WITHIN).is_some() {
        return None;
    }
    let spaces = ["--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"];
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let unshared = |script: &str, args: &[&OsStr]| {
        let mut command = Command::new("unshare");
        command.args(spaces).args(["sh", "-c", script]).arg(folder.path()).args(args);
        command
    };
    let mount =
        format!("mount -t tmpfs -o {SIZE} none \"$0\" && mkdir \"$0/{ROOMY}\" && mount -t tmpfs none \"$0/{ROOMY}\"");
    let probe = unshared(&mount, &[]).output();
    if !probe.as_ref().is_ok_and(|probe| probe.status.success()) {
        println!("NOT TRIED: full disks, for there can be no small file system here ({probe:?})");
        return None;
    }
    let test_args = [test, "--exact", "--nocapture"].map(OsStr::new);
    let binary = std::env::current_exe().expect("this binary has a path");
    let args: Vec<&OsStr> = std::iter::once(binary.as_os_str()).chain(test_args).collect();
    let status = unshared(&format!("{mount} && \"$@\"; exit $?"), &args).env(WITHIN, folder.path()).status();
    Some(status.expect("what could be started can be started again"))
}

/// A folder that is a small file system, or just a folder.
pub struct Disk {
    path: PathBuf,
    /// It goes away with it, if it is just a folder.
    plain: Option<TempDir>,
}

impl Disk {
    pub fn new() -> Self {
        match std::env::var_os(WITHIN) {
            Some(path) => Self { path: path.into(), plain: None },
            None => {
                let folder = tempfile::tempdir().expect("a temporary folder can be made");
                Self { path: folder.path().to_owned(), plain: Some(folder) }
            }
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Fills it up but for some bytes, until what is returned is dropped.
    pub fn fill(&self, free_bytes: u64) -> Option<Filled> {
        if self.plain.is_some() {
            return None;
        }
        let path = self.path.join("filler");
        let mut file = File::create(&path).expect("a file can be made");
        let block = [0; 1 << 16];
        let mut len_bytes = 0;
        while let Ok(written) = file.write(&block) {
            len_bytes += written as u64;
        }
        file.set_len(len_bytes.saturating_sub(free_bytes)).expect("a file can be shortened");
        Some(Filled(path))
    }
}

pub struct Filled(PathBuf);

impl Drop for Filled {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
