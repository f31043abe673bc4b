//! The checks themselves, tried on small bad and good files: a check that cannot fail protects nothing.

use super::{checks::check, code};

const HEAD: &str = "//! Why.\n";

/// The only complaint about a file with this body.
fn complaint(path: &str, body: &str) -> String {
    let mut complaints = check(path, &format!("{HEAD}{body}"));
    assert_eq!(complaints.len(), 1, "{path}: {body}: {complaints:?}");
    complaints.remove(0)
}

fn fine(path: &str, body: &str) {
    assert_eq!(check(path, &format!("{HEAD}{body}")), [""; 0], "{path}: {body}");
}

#[test]
fn a_file_opens_with_its_reason() {
    assert_eq!(check("src/marks.rs", "use std::fmt;\n").len(), 1);
    assert_eq!(check("src/marks.rs", "").len(), 1);
    fine("src/marks.rs", "use std::fmt;\n");
}

#[test]
fn lengths() {
    let file = |lines: usize| "\n".repeat(lines - 1);
    fine("src/marks.rs", &file(400));
    assert!(complaint("src/marks.rs", &file(401)).contains("401: at most 400 lines"));
    fine("src/state/tests.rs", &file(600));
    assert!(complaint("tests/x.rs", &file(601)).contains("at most 600 lines"));

    let function =
        |lines: usize| format!("fn long<T>(x: [u8; 4]) -> Vec<T>\nwhere T: Fn(),\n{{\n{}}}\n", "f();\n".repeat(lines));
    fine("src/marks.rs", &function(40));
    assert_eq!(complaint("src/marks.rs", &function(41)), "src/marks.rs:2: `long` has 41 lines, at most 40: split it");
    fine("tests/x.rs", &function(80));
    assert!(complaint("tests/x.rs", &function(81)).contains("at most 80"));
    fine("src/marks.rs", &format!("#[cfg(test)]\nmod tests {{\n{}}}\n", function(80)));
    assert!(
        complaint("src/marks.rs", &format!("#[cfg(not(test))]\nmod x {{\n{}}}\n", function(80))).contains("80 lines")
    );
    assert!(complaint("src/marks.rs", &format!("trait A {{ fn a(); }}\n{}", function(50))).contains("`long`"));
    let braces_in_text = format!("fn f() {{\n{}}}\n", "g(\"}\", '}', '\\'', r#\"}\"}\"#); // }\n".repeat(41));
    assert!(complaint("src/marks.rs", &braces_in_text).contains("41 lines"));
}

#[test]
fn unsafe_keeps_to_its_rooms() {
    let block = "// SAFETY: it is.\nfn f() { unsafe { g() } }\n";
    fine("src/channel/ring.rs", block);
    fine("src/snapshot/mapped.rs", block);
    fine("tests/allocations.rs", block);
    for path in ["src/state/table.rs", "src/snapshot/store.rs", "src/runtime/worker.rs", "tools/jobs/src/lib.rs"] {
        assert!(complaint(path, block).contains("3: `unsafe` outside its rooms"));
    }
    fine("src/state/table.rs", "#![deny(unsafe_code)] // no unsafe here\nconst A: &str = \"unsafe {}\";\n");
}

#[test]
fn unsafe_gives_its_reason() {
    let path = "src/page/pool.rs";
    assert!(complaint(path, "fn f() {\n    unsafe { g() }\n}\n").contains("3: `unsafe` without"));
    assert!(complaint(path, "// SAFETY: this.\na();\nlet b = unsafe { g() };\n").contains("4: `unsafe` without"));
    assert!(complaint(path, "// SAFETY: this.\n\nunsafe impl Send for A {}\n").contains("4: `unsafe` without"));
    assert!(
        complaint(path, "/* unsafe */ let s = \"// SAFETY: no\"; let t = 1;\nunsafe impl Send for A {}\n")
            .contains("3:")
    );
    fine(path, "// SAFETY: this,\n// and that.\n#[allow(x)]\nunsafe impl<T: Send> Send for A<T> {}\n");
    fine(path, "// SAFETY: this.\nlet long =\n    unsafe { g() };\n");
    fine(path, "unsafe fn f() {}\n");
}

#[test]
fn arrows_between_rooms() {
    for (path, body, word) in [
        ("src/state/table.rs", "use crate::channel::ring;\n", "`state` must not know `channel`"),
        ("src/state/table.rs", "use crate::{error::StateError, channel::{self, ring}};\n", "`channel`"),
        (
            "src/state/table.rs",
            "use crate::{\n    page::{Pool, checkpoint::X},\n    snapshot::Store,\n};\n",
            "`snapshot`",
        ),
        ("src/state/mod.rs", "fn f() { super::snapshot::open() }\n", "`snapshot`"),
        ("src/state/table.rs", "fn f() { super::super::snapshot::open() }\n", "`snapshot`"),
        ("src/state/table.rs", "mod tests {\n    use super::super::super::snapshot::Store;\n}\n", "`snapshot`"),
        ("src/state/table.rs", "fn f() { snapring::runtime::run() }\n", "`runtime`"),
        ("src/checkpoint/aligned.rs", "use crate::operator::Emit;\n", "`operator`"),
        ("src/connector/csv.rs", "use crate::snapshot::Store;\n", "`snapshot`"),
        ("src/marks.rs", "use crate::record::Record;\n", "`record`"),
        ("src/operator/fold.rs", "use crate::runtime::Task;\n", "`runtime`"),
        ("src/operator/fold.rs", "use crate::Dataflow;\n", "hides which room"),
        ("src/connector/csv.rs", "use crate::testing::check_sink;\n", "`testing`"),
        ("src/attic/x.rs", "\n", "`attic` is no room"),
    ] {
        assert!(complaint(path, body).contains(word), "{body}");
    }
    fine("src/state/table.rs", "use crate::{error::StateError, page::Pool, record::Record};\nuse super::hash;\n");
    fine("src/state/table/tests.rs", "use super::super::hash;\nuse super::*;\n");
    fine("src/state/table.rs", "mod tests {\n    use super::super::hash;\n}\n");
    fine("src/state/table.rs", "//! [`crate::channel`] is not known here.\nuse crate::state::hash;\n");
    fine("src/lib.rs", "pub use crate::dataflow::Dataflow;\n");
    fine("src/runtime/worker.rs", "use crate::{channel::Ring, checkpoint::Aligned, operator::Emit, state::Table};\n");
    fine("src/connector/tests/csv.rs", "use crate::testing::check_sink;\n");
    fine("tests/x.rs", "use snapring::{channel::Ring, Dataflow};\n");
}

#[test]
fn places_on_a_machine() {
    let home = ["", "home", "me", "x"].join("/");
    assert!(complaint("src/marks.rs", &format!("// see {home}\n")).contains("2: names a place"));
    fine("src/marks.rs", &format!("// see ..{home}, and https://example.org{home}\n"));
}

#[test]
fn stripping_keeps_lines_and_code() {
    let text = "a /* x /* y */ \n z */ b 'c' 'd e\" \\\" // \" f // g\n h r\"i\\\" j br##\"k\"# \"## l b'\\'' m r#fn 'ä' '\\u{41}' n";
    let code = code::strip(text);
    assert_eq!(code.lines().count(), text.lines().count());
    let words: Vec<_> = code::words(&code).map(|(_, word)| word).collect();
    assert_eq!(words, ["a", "b", "d", "e", "f", "h", "j", "l", "m", "r", "fn", "n"]);
}
