//! `snapring inspect deadlock`: which tasks waited for room at which others when a checkpoint was taken, as far as it shows.
//!
//! What a task had and found no room for is in the checkpoint as its *leftovers* (where the cut does not queue behind them),
//! so it waited for the task that they were going to. What a task had not come to is in its *logs*. Of channels of which
//! neither is there, the checkpoint says that nothing was in them.

use super::{about, channels_of};
use crate::outcome::{Outcome, print, print_json};
use serde_json::{Value, json};
use snapring::Protocol;
use snapring::runtime::{CheckpointInfo, WaitsFor};
use snapring::snapshot::{EdgePart, REST, Reader, Side};
use std::collections::BTreeMap;
use std::path::Path;

/// Says who waited for whom.
pub fn show(dir: &Path, epoch: Option<u64>, as_json: bool) -> Outcome {
    let mut reader = Reader::open(dir)?;
    let (epoch, edges) = channels_of(&mut reader, epoch)?;
    let (about, tasks) = (about(&reader, epoch), Tasks::of(&edges));
    if as_json {
        print_json(&object(epoch, about.as_ref(), &tasks))
    } else {
        print(text(epoch, about.as_ref(), &tasks))
    }
}

/// The tasks that the checkpoint shows, in the order of their names.
struct Tasks {
    tasks: Vec<Task>,
    /// Those that wait for each other, the last for the first.
    circle: Vec<usize>,
}

/// What the checkpoint shows of a task.
#[derive(Default)]
struct Task {
    name: String,
    /// What it found no room for.
    leftovers: Vec<Records>,
    /// What it had not come to.
    unprocessed: Vec<Records>,
}

/// Records of a channel.
struct Records {
    edge: String,
    /// The task at the other end. It is not known of what a restore has brought.
    other: Option<usize>,
    records: u64,
}

impl Tasks {
    fn of(edges: &[EdgePart]) -> Self {
        let names = Names::of(edges);
        let mut tasks: Vec<Task> = names.keys.keys().map(|key| Task { name: named(key), ..Task::default() }).collect();
        for (edge, part, own, other) in ends(edges, &names.by_edge) {
            let other = other.map(|other| names.keys[&other]);
            let records = Records { edge: edge.edge.clone(), other, records: part };
            let task = &mut tasks[names.keys[&own]];
            match edge.side {
                Side::Output => task.leftovers.push(records),
                Side::Input => task.unprocessed.push(records),
            }
        }
        let waits: Vec<Vec<WaitsFor>> = tasks.iter().map(Task::waits).collect();
        Self { tasks, circle: WaitsFor::circle(&waits) }
    }

    fn name(&self, task: usize) -> &str {
        &self.tasks[task].name
    }

    /// Whether somebody waited for room.
    fn any_waits(&self) -> bool {
        self.tasks.iter().any(|task| !task.leftovers.is_empty())
    }
}

impl Task {
    fn waits(&self) -> Vec<WaitsFor> {
        self.leftovers.iter().filter_map(|records| records.other).map(WaitsFor::Room).collect()
    }
}

/// A task: its chain and its index.
type Key = (String, u32);

fn named((chain, index): &Key) -> String {
    format!("{chain} {index}")
}

/// Who is at the ends of edges.
struct Names {
    /// The chains from and to which an edge leads.
    by_edge: BTreeMap<String, [String; 2]>,
    /// All tasks, numbered in order.
    keys: BTreeMap<Key, usize>,
}

impl Names {
    fn of(edges: &[EdgePart]) -> Self {
        let mut by_edge: BTreeMap<String, [String; 2]> = BTreeMap::new();
        for edge in edges {
            by_edge.entry(edge.edge.clone()).or_insert_with(|| chains(edges, edge));
        }
        let mut keys: BTreeMap<Key, usize> = ends(edges, &by_edge)
            .flat_map(|(.., own, other)| [Some(own), other])
            .flatten()
            .map(|key| (key, 0))
            .collect();
        keys.values_mut().enumerate().for_each(|(number, place)| *place = number);
        Self { by_edge, keys }
    }
}

/// For each channel that has records: how many, the task that has kept them, and the one at the other end.
fn ends<'a>(
    edges: &'a [EdgePart],
    by_edge: &'a BTreeMap<String, [String; 2]>,
) -> impl Iterator<Item = (&'a EdgePart, u64, Key, Option<Key>)> {
    edges.iter().flat_map(move |edge| {
        let [from, to] = &by_edge[&edge.edge];
        let own = (edge.operator.clone(), edge.task);
        edge.parts.iter().filter(|part| part.records > 0).map(move |part| {
            let other = match edge.side {
                Side::Output => Some((to.clone(), part.to)),
                Side::Input if part.from == REST => None,
                Side::Input => Some((from.clone(), part.from)),
            };
            (edge, part.records, own.clone(), other)
        })
    })
}

/// The chains from and to which an edge leads: whoever has kept records of it is at one end, and what is not known of the
/// other says the edge's name, `FROM->TO` or `feedback TO`, with a number behind it where there are several.
fn chains(edges: &[EdgePart], edge: &EdgePart) -> [String; 2] {
    let keeper = |side| edges.iter().find(|other| other.edge == edge.edge && other.side == side);
    let [from, to] = [Side::Output, Side::Input].map(|side| keeper(side).map(|keeper| keeper.operator.as_str()));
    let name = match edge.edge.rsplit_once(" #") {
        Some((name, number)) if number.parse::<u32>().is_ok() => name,
        _ => edge.edge.as_str(),
    };
    let feedback = name.strip_prefix("feedback ");
    let known = |end: Option<&str>, said: Option<&str>| end.or(said).unwrap_or(name).to_owned();
    match (from, to) {
        (Some(from), _) => {
            let behind = name.strip_prefix(from).and_then(|rest| rest.strip_prefix("->"));
            [from.to_owned(), known(to, behind.or(feedback))]
        }
        (None, to) => {
            let ahead = to.and_then(|to| name.strip_suffix(to)).and_then(|rest| rest.strip_suffix("->"));
            [known(None, ahead), known(to, feedback)]
        }
    }
}

/// What a checkpoint of this protocol says about waits for room, where it is not all of them.
fn cannot_show(about: Option<&CheckpointInfo>, tasks: &Tasks) -> Option<String> {
    let about = about?;
    let protocol = about.protocol.as_str();
    if about.finished {
        return Some("the job had finished, and nobody waited for anything".to_owned());
    }
    match protocol.parse() {
        Ok(Protocol::Unaligned | Protocol::StopTheWorld) => None,
        Ok(Protocol::AlignedThenUnaligned) if tasks.any_waits() => None,
        Ok(Protocol::AlignedThenUnaligned) => Some(format!(
            "{protocol}: it shows who waits for room only where it was not aligned in time, and keeps no such records here"
        )),
        _ => Some(format!(
            "{protocol}: it cannot show who waits for room, for its cut queues behind what waits. Of a job that stands, \
             only a checkpoint that all tasks begin at once can be taken, and shows it: --protocol unaligned --initiators all"
        )),
    }
}

fn text(epoch: u64, about: Option<&CheckpointInfo>, tasks: &Tasks) -> String {
    let mut text = String::new();
    for task in &tasks.tasks {
        let records = |records: &Records| format!("{} of {}", records.records, records.edge);
        for left in &task.leftovers {
            let room = left.other.map_or("room".to_owned(), |to| format!("{} {}", WaitsFor::Room(to), tasks.name(to)));
            text += &format!("{} waits for {room} ({})\n", task.name, records(left));
        }
        for behind in &task.unprocessed {
            let from =
                behind.other.map_or("brought by a restore".to_owned(), |from| format!("from {}", tasks.name(from)));
            text += &format!("{} has not come to {}, {from}\n", task.name, records(behind));
        }
    }
    if let Some(first) = tasks.circle.first() {
        let names: Vec<&str> = tasks.circle.iter().chain([first]).map(|task| tasks.name(*task)).collect();
        return text + &format!("in a circle: {}\n", names.join(" → "));
    }
    text + &match cannot_show(about, tasks) {
        Some(why) => format!("epoch {epoch}, {why}\n"),
        None if tasks.any_waits() => format!("epoch {epoch}: nobody waits in a circle\n"),
        None => format!("epoch {epoch}: nobody waits for room\n"),
    }
}

fn object(epoch: u64, about: Option<&CheckpointInfo>, tasks: &Tasks) -> Value {
    let listed = |list: &[Records]| -> Value {
        let one = |records: &Records| json!({ "task": records.other.map(|task| tasks.name(task)), "edge": records.edge, "records": records.records });
        list.iter().map(one).collect()
    };
    let task = |task: &Task| json!({ "task": task.name, "waits_for_room_at": listed(&task.leftovers), "has_not_come_to": listed(&task.unprocessed) });
    json!({
        "epoch": epoch,
        "job": about.map(|about| &about.job),
        "protocol": about.map(|about| &about.protocol),
        "shows_waits": cannot_show(about, tasks).is_none(),
        "tasks": tasks.tasks.iter().map(task).collect::<Value>(),
        "circle": tasks.circle.iter().map(|task| tasks.name(*task)).collect::<Value>(),
    })
}
