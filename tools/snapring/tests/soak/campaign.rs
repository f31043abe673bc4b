//! One state folder, one output folder, and the starts of the job on them until it has come to its end.

use crate::Met;
use crate::disk::{Disk, ROOMY};
use crate::harm::{damage, stores};
use crate::plain::{flights, sample, sorted};
use crate::random::Random;
use crate::start::start;
use crate::support::{committed, run};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

pub struct Campaign<'a> {
    pub disk: &'a Disk,
    input: PathBuf,
    /// Where results go: to where the state is, or where there is room when that is full.
    pub output: PathBuf,
    /// What the job makes, flight by flight.
    expected: Vec<String>,
    known: BTreeSet<String>,
    /// What was committed after the last start.
    committed: usize,
}

/// What a start leaves committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Committed {
    /// All up to some flight: it ended in order.
    Cut,
    /// Some of the parts of the last epoch may not have their final names yet.
    Part,
}

impl<'a> Campaign<'a> {
    /// With empty folders.
    pub fn new(disk: &'a Disk, random: &mut Random) -> Self {
        let outputs = [disk.path().join("O"), disk.path().join(ROOMY).join("O")];
        for path in outputs.iter().chain([&disk.path().join("S")]).filter(|path| path.exists()) {
            fs::remove_dir_all(path).expect("what is over can be removed");
        }
        let output = outputs[random.below(2) as usize].clone();
        let text = flights();
        let mut input = sample("flights-2013-01.csv.gz");
        if random.one_in(2) {
            input = disk.path().join("flights.csv");
            fs::write(&input, &text).expect("there is room for the input");
        }
        let expected = route_lines(&text);
        let known = expected.iter().cloned().collect();
        Self { disk, input, output, expected, known, committed: 0 }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.disk.path().join(name)
    }

    /// `run routes` and more.
    pub fn args(&self, more: impl IntoIterator<Item = String>) -> Vec<String> {
        let text = |path: &Path| path.to_str().expect("a plain name").to_owned();
        let flags = [("--input", &self.input), ("--state", &self.path("S")), ("--output", &self.output)];
        let flags = flags.map(|(flag, path)| [flag.to_owned(), text(path)]).concat();
        ["run", "routes"].map(str::to_owned).into_iter().chain(flags).chain(more).collect()
    }

    /// Starts the job until it has come to its end, the last time undisturbed.
    pub fn run(mut self, random: &mut Random, until: Instant, met: &mut Met) {
        let mut finished = false;
        while !finished && Instant::now() < until {
            finished = start(&mut self, random, met);
            if !finished && random.one_in(6) {
                damage(&self, random, met);
            }
            self.inspect();
        }
        let rest = run(self.args([])).ok();
        met.restored += u32::from(rest.stderr.contains("going on from epoch"));
        self.inspect();
        assert_eq!(sorted(committed(&self.output)), sorted(std::mem::take(&mut self.expected)));
        let left: Vec<_> = names(&self.output).into_iter().filter(|name| name.ends_with(".pending")).collect();
        assert!(left.is_empty(), "parts are left behind: {left:?}");
        let files = names(&self.path("S"));
        assert!(files.len() < 6, "files pile up in the state folder: {files:?}");
    }

    /// What is in the state folder is whole.
    fn inspect(&self) {
        let state = self.path("S");
        if stores(&names(&state)).is_empty() {
            return;
        }
        run(["inspect", "verify", state.to_str().expect("a plain name")]).ok();
    }

    /// Checks what is committed now, and says how much it is.
    pub fn check(&mut self, how: Committed, went_back: bool) -> usize {
        let lines = committed(&self.output);
        let mut seen = BTreeSet::new();
        for line in &lines {
            assert!(self.known.contains(line), "{line} is made up");
            assert!(seen.insert(line), "{line} is there twice");
        }
        if how == Committed::Cut {
            let cut = sorted(self.expected[..lines.len()].to_vec());
            assert!(sorted(lines.clone()) == cut, "{} lines, and not those of so many flights", lines.len());
        }
        assert!(went_back || lines.len() >= self.committed, "{} lines were committed", self.committed);
        self.committed = lines.len();
        lines.len()
    }
}

/// The names in a folder, if it is there.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.map(|entry| entry.expect("a folder can be read").file_name().into_string().expect("a plain name")).collect()
}

/// What `routes` makes of flights in CSV, by a plain loop.
fn route_lines(csv: &str) -> Vec<String> {
    let mut lines = csv.lines();
    let names: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let column = |name| names.iter().position(|other| *other == name).expect("the column is there");
    let (origin, dest, time, delay) = (column("origin"), column("dest"), column("dep_time"), column("dep_delay"));
    let mut by_route = BTreeMap::<(&str, &str), (u64, u64, i64)>::new();
    lines
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            let (n, cancelled, delay_sum_min) = by_route.entry((cells[origin], cells[dest])).or_default();
            *n += 1;
            *cancelled += u64::from(cells[time] == "NA");
            *delay_sum_min += if cells[delay] == "NA" { 0 } else { cells[delay].parse::<i64>().expect("a number") };
            format!("{},{},{n},{cancelled},{delay_sum_min}", cells[origin], cells[dest])
        })
        .collect()
}
