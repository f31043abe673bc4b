//! What the jobs should come to, by plain loops over plain maps.

use flate2::read::GzDecoder;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::PathBuf;

pub fn sample(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../../tests/data", name].iter().collect()
}

/// The bundled text.
pub fn verses() -> String {
    fs::read_to_string(sample("bible-genesis.txt")).expect("the sample is there")
}

/// The bundled flights, with their header.
pub fn flights() -> String {
    gunzipped("flights-2013-01.csv.gz")
}

/// The text of a bundled file.
pub fn gunzipped(name: &str) -> String {
    let mut text = String::new();
    let file = fs::File::open(sample(name)).expect("the sample is there");
    GzDecoder::new(file).read_to_string(&mut text).expect("the sample is sound");
    text
}

/// The header and rows `from..to` of the bundled flights.
pub fn some_flights(from: usize, to: usize) -> String {
    let flights = flights();
    let mut lines = flights.lines();
    let header = lines.next().expect("a header");
    let rows = lines.skip(from).take(to - from).map(|row| format!("{row}\n"));
    format!("{header}\n{}", rows.collect::<String>())
}

/// The first lines of the bundled text.
pub fn some_verses(lines: usize) -> String {
    verses().lines().take(lines).map(|line| format!("{line}\n")).collect()
}

/// `word,count` lines, sorted.
pub fn word_counts(text: &str) -> Vec<String> {
    let mut counts = BTreeMap::<String, u64>::new();
    let mut word = String::new();
    for c in text.chars().chain(['\n']) {
        if c.is_ascii_alphanumeric() {
            word.push(c.to_ascii_lowercase());
        } else if !word.is_empty() {
            *counts.entry(std::mem::take(&mut word)).or_default() += 1;
        }
    }
    sorted(counts.iter().map(|(word, count)| format!("{word},{count}")).collect())
}

/// Number of flights, cancelled ones, and the sum of delays, by route.
pub type Totals = BTreeMap<(String, String), (u64, u64, i64)>;

/// The totals of flights in CSV.
pub fn route_totals(csv: &str) -> Totals {
    let mut lines = csv.lines();
    let names: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let column = |name| names.iter().position(|other| *other == name).expect("the column is there");
    let (origin, dest, time, delay) = (column("origin"), column("dest"), column("dep_time"), column("dep_delay"));
    let mut totals = Totals::new();
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let total = totals.entry((cells[origin].to_owned(), cells[dest].to_owned())).or_default();
        total.0 += 1;
        total.1 += u64::from(cells[time] == "NA");
        total.2 += if cells[delay] == "NA" { 0 } else { cells[delay].parse::<i64>().expect("a number") };
    }
    totals
}

/// The facts about the output of `routes` that hold in whatever order the rows were read: a line for each row, each
/// route's `n` runs 1, 2, 3 …, and the line with the highest one holds the totals.
#[track_caller]
pub fn check_routes(lines: &[String], totals: &Totals) {
    let mut by_route = BTreeMap::<(String, String), BTreeMap<u64, (u64, i64)>>::new();
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(cells.len(), 5, "{line}");
        let number = |index: usize| cells[index].parse::<i64>().unwrap_or_else(|_| panic!("{line}"));
        let route = by_route.entry((cells[0].to_owned(), cells[1].to_owned())).or_default();
        let twice = route.insert(number(2) as u64, (number(3) as u64, number(4)));
        assert_eq!(twice, None, "{line} is there twice");
    }
    let rows: u64 = totals.values().map(|total| total.0).sum();
    assert_eq!(lines.len() as u64, rows, "a line for each row");
    assert_eq!(by_route.len(), totals.len(), "routes");
    for (route, &(n, cancelled, delay_sum_min)) in totals {
        let lines = &by_route[route];
        assert!(lines.keys().copied().eq(1..=n), "{route:?} runs from 1 to {n}");
        assert_eq!(lines[&n], (cancelled, delay_sum_min), "the totals of {route:?}");
    }
}

pub fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort_unstable();
    lines
}
