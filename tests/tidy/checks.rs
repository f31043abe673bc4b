//! The house rules, each a function from one file's path and text to complaints. They read no file.

use super::code::{self, find_word, line_of};

/// Who may use whom (architecture note): a room may use those named here and itself. `lib.rs` and `docs` introduce all.
const ROOMS: &[(&str, &[&str])] = &[
    (
        "testing",
        &[
            "dataflow",
            "graph",
            "runtime",
            "connector",
            "operator",
            "handle",
            "channel",
            "checkpoint",
            "state",
            "snapshot",
            BOTTOM,
        ],
    ),
    (
        "dataflow",
        &["graph", "runtime", "connector", "operator", "handle", "channel", "checkpoint", "state", "snapshot", BOTTOM],
    ),
    ("graph", &["runtime", "operator", "channel", "checkpoint", "state", "snapshot", BOTTOM]),
    ("runtime", &["operator", "handle", "channel", "checkpoint", "state", "snapshot", BOTTOM]),
    ("operator", &["handle", "channel", "checkpoint", "state", "snapshot", BOTTOM]),
    ("connector", &["operator", "record", "error"]),
    ("handle", &["channel", BOTTOM]),
    ("channel", &[BOTTOM]),
    ("checkpoint", &[BOTTOM]),
    ("state", &[BOTTOM]),
    ("snapshot", &[BOTTOM]),
    ("page", &["record", "marks", "error", "clock", "sync", "config"]),
    ("record", &["error"]),
    ("config", &["error"]),
    ("marks", &[]),
    ("error", &[]),
    ("clock", &[]),
    ("sync", &[]),
];
const BOTTOM: &str = "the bottom rooms";
const BOTTOM_ROOMS: &[&str] = &["page", "record", "marks", "error", "clock", "sync", "config"];

/// Where `unsafe` may be: the ring, pages, the mapping, affinity. Tests may have allocators of their own.
const UNSAFE_ROOMS: &[&str] =
    &["src/channel/", "src/page/", "src/snapshot/mapped.rs", "src/runtime/affinity.rs", "tests/", "benches/"];

const FILE_LINES_MAX: usize = 400;
const TEST_FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 40;
const TEST_FUNCTION_LINES_MAX: usize = 80;

/// Every check of a Rust file. `path` is relative to the project's folder.
pub fn check(path: &str, text: &str) -> Vec<String> {
    let code = code::strip(text);
    let complaints = [
        opening(text),
        file_length(path, text),
        function_length(path, &code),
        unsafe_place(path, &code),
        unsafe_reason(text, &code),
        arrows(path, &code),
    ];
    complaints.concat().into_iter().chain(machine_paths(text)).map(|what| format!("{path}:{what}")).collect()
}

fn is_test_file(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.any(|part| part == "tests" || part == "benches" || part == "tests.rs" || part.ends_with("_tests.rs"))
}

fn opening(text: &str) -> Vec<String> {
    let opens = text.starts_with("//!");
    complain(!opens, || "1: open with `//!`: why the file exists and what it must not know".into())
}

fn file_length(path: &str, text: &str) -> Vec<String> {
    let max = if is_test_file(path) { TEST_FILE_LINES_MAX } else { FILE_LINES_MAX };
    let lines = text.lines().count();
    complain(lines > max, || format!("{lines}: at most {max} lines: split the file along its concepts"))
}

fn function_length(path: &str, code: &str) -> Vec<String> {
    let tests = code::test_blocks(code);
    let mut complaints = Vec::new();
    for function in code::functions(code) {
        let is_test = is_test_file(path) || tests.iter().any(|block| block.contains(&function.at));
        let max = if is_test { TEST_FUNCTION_LINES_MAX } else { FUNCTION_LINES_MAX };
        if function.lines > max {
            let line = line_of(code, function.at);
            complaints
                .push(format!("{line}: `{}` has {} lines, at most {max}: split it", function.name, function.lines));
        }
    }
    complaints
}

fn unsafe_place(path: &str, code: &str) -> Vec<String> {
    if UNSAFE_ROOMS.iter().any(|room| path.starts_with(room)) {
        return vec![];
    }
    find_word(code, "unsafe").map(|at| format!("{}: `unsafe` outside its rooms", line_of(code, at))).collect()
}

/// Blocks and impls need a `// SAFETY:` comment; for functions that are unsafe to call, the lints ask for a section.
fn unsafe_reason(text: &str, code: &str) -> Vec<String> {
    let lines: Vec<_> = text.lines().zip(code.lines()).collect();
    let needs = |at: &usize| {
        let rest = code[at + "unsafe".len()..].trim_start();
        rest.starts_with('{') || rest.starts_with("impl")
    };
    let places = find_word(code, "unsafe").filter(needs).map(|at| line_of(code, at));
    let bare = places.filter(|line| !has_reason(&lines, *line));
    bare.map(|line| format!("{line}: `unsafe` without a `// SAFETY:` comment right before it")).collect()
}

/// A statement may begin some lines above its `unsafe`; the comment is looked for above it, up to where another statement
/// or a blank line ends.
fn has_reason(lines: &[(&str, &str)], line: usize) -> bool {
    for (i, (text, code)) in lines[..line].iter().enumerate().rev() {
        if text.trim_start().starts_with("// SAFETY:") {
            return true;
        }
        let another = code.trim_end().ends_with([';', '{', '}']);
        if i + 1 < line && (text.trim().is_empty() || another) {
            return false;
        }
    }
    false
}

/// Places on somebody's machine do not belong into what is published.
pub fn machine_paths(text: &str) -> Vec<String> {
    let folders = ["home", "root", "work", "Users"].map(|name| format!("/{name}/"));
    let mut complaints = Vec::new();
    for (i, line) in text.lines().enumerate() {
        for folder in folders.iter().filter(|folder| begins_path(line, folder)) {
            complaints.push(format!("{}: names a place on a machine: {folder}", i + 1));
        }
    }
    complaints
}

/// With something before it, it is a part of a relative path or of an address.
fn begins_path(line: &str, folder: &str) -> bool {
    let mut found = line.match_indices(folder);
    found.any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-/".contains(c)))
}

/// The room of a file, and how deep its module lies below the root.
fn room_of(path: &str) -> Option<(&str, usize)> {
    let inner = path.strip_prefix("src/")?.strip_suffix(".rs")?;
    let parts: Vec<&str> = inner.split('/').collect();
    let depth = parts.len() - usize::from(parts.last() == Some(&"mod"));
    let introduces = parts[0] == "lib" || parts[0] == "docs";
    (!introduces).then_some((parts[0], depth))
}

fn arrows(path: &str, code: &str) -> Vec<String> {
    let Some((room, depth)) = room_of(path) else { return vec![] };
    let Some((_, allowed)) = ROOMS.iter().find(|(name, _)| *name == room) else {
        return vec![format!("1: `{room}` is no room: give it a place in {}", file!())];
    };
    let bottom = allowed.contains(&BOTTOM);
    // Every room's tests may lie in the beds that users have.
    let tests = is_test_file(path);
    let may = |name: &str| {
        name == room || allowed.contains(&name) || bottom && BOTTOM_ROOMS.contains(&name) || tests && name == "testing"
    };
    let mut complaints = Vec::new();
    for (at, name) in code::root_paths(code, depth) {
        let line = line_of(code, at);
        if code[at + name.len()..].starts_with('!') || may(name) {
            continue;
        }
        complaints.push(if ROOMS.iter().any(|(other, _)| *other == name) {
            format!("{line}: `{room}` must not know `{name}`")
        } else {
            format!("{line}: `{name}` at the root hides which room is meant: write the room's own path")
        });
    }
    complaints
}

fn complain(wrong: bool, what: impl FnOnce() -> String) -> Vec<String> {
    if wrong { vec![what()] } else { vec![] }
}

#[test]
fn the_arrows_point_one_way() {
    // Peel off rooms that use none of the rest; what cannot be peeled off lies on a circle.
    let mut left: Vec<_> = ROOMS.to_vec();
    while !left.is_empty() {
        let names: Vec<_> = left.iter().map(|(name, _)| *name).collect();
        let uses = |allowed: &[&str]| {
            let bottom = allowed.contains(&BOTTOM) && BOTTOM_ROOMS.iter().any(|room| names.contains(room));
            bottom || allowed.iter().any(|room| names.contains(room))
        };
        left.retain(|(_, allowed)| uses(allowed));
        assert!(left.len() < names.len(), "a circle among {names:?}");
    }
}
