//! The house rules that a machine can check: which room may know which, how long files and functions may be, where
//! `unsafe` may stand and how it gives its reason, how files open, and that no place on a machine is named.

#[path = "tidy/checks.rs"]
mod checks;
#[path = "tidy/code.rs"]
mod code;
#[path = "tidy/examples.rs"]
mod examples;

use std::fs;
use std::path::{Path, PathBuf};

/// What is ours: everything but build outputs, sample data and what begins with a dot (except `.ci`).
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the project") {
        let entry = entry.expect("an entry");
        let (path, name) = (entry.path(), entry.file_name().into_string().expect("names are UTF-8"));
        let foreign =
            name.starts_with("target") || name.starts_with('.') && name != ".ci" || path.ends_with("tests/data");
        if foreign {
            continue;
        }
        if entry.file_type().expect("its type").is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn the_house_is_tidy() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    files(root, &mut found);
    found.sort();
    let mut complaints = Vec::new();
    for file in &found {
        let path = file.strip_prefix(root).expect("below the root").to_str().expect("names are UTF-8");
        let Ok(text) = fs::read_to_string(file) else { continue }; // not text
        if path.ends_with(".rs") {
            complaints.extend(checks::check(path, &text));
        } else {
            complaints.extend(checks::machine_paths(&text).into_iter().map(|what| format!("{path}:{what}")));
        }
    }
    assert!(found.iter().any(|file| file.ends_with("src/lib.rs")), "the project was not found");
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}
