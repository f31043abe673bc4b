//! Running the binary, and reading what it has left.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Nothing in these tests takes long. What does is stuck.
const LIMIT: Duration = Duration::from_secs(60);

/// How a run ended.
pub struct Ran {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Not more of the output than one wants to see of a test that fails.
impl fmt::Debug for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, signal, stdout, stderr } = self;
        let start: String = stdout.chars().take(1000).collect();
        write!(f, "code {code:?}, signal {signal:?}\nstdout, {} bytes:\n{start}\nstderr:\n{stderr}", stdout.len())
    }
}

impl Ran {
    fn new(status: ExitStatus, stdout: Vec<u8>, stderr: Vec<u8>) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("all output is UTF-8");
        Self { code: status.code(), signal: status.signal(), stdout: text(stdout), stderr: text(stderr) }
    }

    #[track_caller]
    pub fn ok(self) -> Self {
        self.exits(0, &[])
    }

    /// It left with this code and said all of this on standard error.
    #[track_caller]
    pub fn exits(self, code: i32, said: &[&str]) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        for what in said {
            assert!(self.stderr.contains(what), "it should say `{what}`: {self:?}");
        }
        assert!(!self.stderr.contains("panicked"), "{self:?}");
        self
    }

    pub fn lines(&self) -> Vec<String> {
        self.stdout.lines().map(str::to_owned).collect()
    }
}

/// The binary.
pub fn snapring<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_snapring"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs it to its end.
#[track_caller]
pub fn run<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Ran {
    end(snapring(args).spawn().expect("the binary can be started"))
}

/// Waits for the end of a process.
#[track_caller]
pub fn end(mut child: Child) -> Ran {
    let [stdout, stderr] = [child.stdout.take().map(drain), child.stderr.take().map(drain)];
    let began = Instant::now();
    let mut stuck = false;
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            break status;
        }
        if began.elapsed() > LIMIT && !stuck {
            stuck = true;
            child.kill().expect("a child can be killed");
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let read =
        |thread: Option<JoinHandle<_>>| thread.map(|thread| thread.join().expect("it reads")).unwrap_or_default();
    let ran = Ran::new(status, read(stdout), read(stderr));
    assert!(!stuck, "it was stuck: {ran:?}");
    ran
}

fn drain(mut from: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).expect("a pipe can be read");
        bytes
    })
}

/// A folder for a test, with the places that most tests need in it.
pub struct Room {
    pub dir: TempDir,
}

impl Room {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a temporary folder can be made") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn at(&self, name: &str) -> String {
        self.path(name).to_str().expect("a temporary folder has a plain name").to_owned()
    }

    /// A file with this text.
    pub fn file(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        fs::write(self.path(name), text).expect("a file can be written");
        self.at(name)
    }

    /// `run JOB --input … --state S --output O` and more.
    pub fn stateful(&self, job: &str, inputs: &[&str], more: &[&str]) -> Vec<String> {
        let mut args = vec!["run".to_owned(), job.to_owned()];
        inputs.iter().for_each(|input| args.extend(["--input".to_owned(), (*input).to_owned()]));
        args.extend(["--state".to_owned(), self.at("S"), "--output".to_owned(), self.at("O")]);
        args.extend(more.iter().map(|arg| (*arg).to_owned()));
        args
    }

    /// Whether the state folder holds a checkpoint.
    pub fn has_checkpoint(&self) -> bool {
        let listed = run(["inspect", "ls", &self.at("S"), "--json"]);
        listed.code == Some(0) && listed.stdout.contains(r#""epoch":"#)
    }

    /// The lines of all committed files.
    pub fn committed(&self) -> Vec<String> {
        committed(&self.path("O"))
    }
}

/// Waits until something is so.
#[track_caller]
pub fn wait_for(what: impl Fn() -> bool) {
    let began = Instant::now();
    while !what() {
        assert!(began.elapsed() < LIMIT, "it does not come");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The lines of all committed files in a folder. Checks the files' names and form.
pub fn committed(output: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(output).into_iter().flatten() {
        let name = entry.expect("a folder can be read").file_name().into_string().expect("names are plain");
        if name.ends_with(".csv") || name.ends_with(".jsonl") {
            names.insert(name);
        }
    }
    for name in names {
        let (stem, _) = name.split_once('.').expect("it has an ending");
        let parts: Vec<&str> = stem.split('-').collect();
        assert!(parts.len() == 4 && parts[0] == "part", "{name}");
        assert!(parts[1..].iter().all(|number| number.parse::<u64>().is_ok()), "{name}");
        let text = fs::read_to_string(output.join(&name)).expect("a committed file can be read");
        assert!(text.ends_with('\n') && !text.contains('\r'), "{name} holds whole lines");
        lines.extend(text.lines().map(str::to_owned));
    }
    lines
}

/// Copies the files of a folder.
pub fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir(to).expect("a folder can be made");
    for entry in fs::read_dir(from).expect("a folder can be read") {
        let entry = entry.expect("a folder can be read");
        if entry.path().is_dir() {
            continue;
        }
        fs::copy(entry.path(), to.join(entry.file_name())).expect("a file can be copied");
    }
}

/// What another program prints.
pub fn shell(script: &str) -> Output {
    Command::new("sh").arg("-c").arg(script).stdin(Stdio::null()).output().expect("there is a shell")
}
