//! What the checks need to know of Rust's surface: where comments and literals are, where blocks and functions end,
//! which paths begin at the crate's root. Not a parser: it reads text, and knows nothing of rooms or limits.

use std::ops::Range;

/// The text with comments and the content of literals blanked out; as many bytes and lines as before.
pub fn strip(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = skip(bytes, at);
        if end > at {
            out[at..end].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
            at = end;
        } else if is_word(bytes[at]) {
            at = word_end(bytes, at); // so that the r of `for"…"` does not begin a raw string
        } else {
            at += 1;
        }
    }
    String::from_utf8(out).expect("only whole literals and comments are blanked out")
}

/// Where the comment or literal that begins at `at` ends; `at` if none does.
fn skip(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let find = |what: &[u8], from: usize| rest[from..].windows(what.len()).position(|w| w == what).map(|i| from + i);
    let close = |end: Option<usize>, len: usize| end.map_or(bytes.len(), |i| at + i + len);
    match rest {
        [b'/', b'/', ..] => close(find(b"\n", 0), 0),
        [b'/', b'*', ..] => at + block_comment(rest),
        [b'"', ..] => at + quoted(rest, 1, b'"'),
        [b'b' | b'c', b'"', ..] => at + quoted(rest, 2, b'"'),
        [b'b', b'\'', ..] => at + quoted(rest, 2, b'\''),
        [b'r', b'"' | b'#', ..] | [b'b' | b'c', b'r', b'"' | b'#', ..] => {
            let hashes_from = if rest[0] == b'r' { 1 } else { 2 };
            let hashes = rest[hashes_from..].iter().take_while(|byte| **byte == b'#').count();
            let body = hashes_from + hashes + 1;
            if rest.get(body - 1) != Some(&b'"') {
                return at; // r#identifier
            }
            let end = [b"\"".as_slice(), &vec![b'#'; hashes]].concat();
            close(find(&end, body), end.len())
        }
        [b'\'', b'\\', ..] => at + quoted(rest, 1, b'\''),
        // A character and its quote; otherwise it is a lifetime.
        [b'\'', first, ..] => {
            let len = match first {
                0..0x80 => 1,
                0x80..0xe0 => 2,
                0xe0..0xf0 => 3,
                _ => 4,
            };
            if rest.get(1 + len) == Some(&b'\'') { at + len + 2 } else { at }
        }
        _ => at,
    }
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at + 1 < rest.len() {
        let step = match &rest[at..at + 2] {
            b"/*" => 1,
            b"*/" => -1,
            _ => 0,
        };
        depth += step;
        at += if step == 0 { 1 } else { 2 };
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn quoted(rest: &[u8], from: usize, quote: u8) -> usize {
    let mut at = from;
    while at < rest.len() && rest[at] != quote {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    rest.len().min(at + 1)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn word_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|byte| !is_word(*byte)).map_or(bytes.len(), |i| at + i)
}

/// The words of stripped text with their places.
pub fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let bytes = code.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        at += bytes[at..].iter().position(|byte| is_word(*byte))?;
        let from = at;
        at = word_end(bytes, at);
        Some((from, &code[from..at]))
    })
}

/// Every place of a whole word in stripped text.
pub fn find_word<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    words(code).filter(move |(_, found)| *found == word).map(|(at, _)| at)
}

/// The line of a place, from 1.
pub fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// The block whose opening brace comes next, before any `;` outside brackets: from brace to brace.
fn block_after(code: &str, at: usize) -> Option<Range<usize>> {
    let mut brackets = 0;
    for (i, byte) in code.bytes().enumerate().skip(at) {
        match byte {
            b'(' | b'[' => brackets += 1,
            b')' | b']' => brackets -= 1,
            b';' if brackets == 0 => return None,
            b'{' if brackets == 0 => return Some(i..close_of(code, i)),
            _ => {}
        }
    }
    None
}

fn close_of(code: &str, open: usize) -> usize {
    let mut depth = 0;
    for (i, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return i;
        }
    }
    code.len()
}

/// A function that has a body.
#[derive(Debug, PartialEq)]
pub struct Function {
    pub name: String,
    pub at: usize,
    /// Lines between the braces.
    pub lines: usize,
}

pub fn functions(code: &str) -> Vec<Function> {
    let mut functions = Vec::new();
    for at in find_word(code, "fn") {
        // `fn(u8)` is a type and has no name.
        let rest = code[at + 2..].trim_start();
        let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if name.is_empty() {
            continue;
        }
        if let Some(body) = block_after(code, at) {
            let lines = line_of(code, body.end).saturating_sub(line_of(code, body.start) + 1);
            functions.push(Function { name, at, lines });
        }
    }
    functions
}

/// The blocks that are compiled for tests only: what follows a `#[cfg(test)]` or a `#[cfg(all(test, …))]`.
pub fn test_blocks(code: &str) -> Vec<Range<usize>> {
    let attributes = code.match_indices("#[cfg(").filter_map(|(at, _)| {
        let len = code[at..].find(']')?;
        find_word(&code[at..at + len], "test").next()?;
        let negated = find_word(&code[at..at + len], "not").next().is_some();
        if negated { None } else { block_after(code, at + len + 1) }
    });
    attributes.collect()
}

/// The blocks of modules that are written out within the file.
fn inline_modules(code: &str) -> Vec<Range<usize>> {
    find_word(code, "mod").filter_map(|at| block_after(code, at)).collect()
}

/// What follows `crate::`, `snapring::`, or a chain of `super::` that reaches the root from a file whose module lies at
/// this depth: the first name, and its place. `use crate::{a::b, c}` gives `a` and `c`.
pub fn root_paths(code: &str, depth: usize) -> Vec<(usize, &str)> {
    let inline = inline_modules(code);
    let depth = |at| depth + inline.iter().filter(|block| block.contains(&at)).count();
    let mut paths = Vec::new();
    let mut supers = (0, 0);
    for (at, word) in words(code) {
        let Some(tail) = code[at + word.len()..].trim_start().strip_prefix("::") else { continue };
        let tail_at = code.len() - tail.len();
        let reaches = match word {
            "crate" | "snapring" => true,
            "super" => {
                // Goes on a chain if the last `super::` ended where this one begins.
                supers = (if supers.1 == at { supers.0 + 1 } else { 1 }, tail_at);
                supers.0 == depth(at)
            }
            _ => false,
        };
        if reaches {
            first_names(code, tail_at, &mut paths);
        }
    }
    paths
}

fn first_names<'a>(code: &'a str, at: usize, paths: &mut Vec<(usize, &'a str)>) {
    let at = at + code[at..].len() - code[at..].trim_start().len();
    if !code[at..].starts_with('{') {
        paths.extend(words(&code[at..]).next().filter(|(from, _)| *from == 0).map(|(_, name)| (at, name)));
        return;
    }
    let mut depth = 0;
    for (i, byte) in code[at..].bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return;
        }
        if depth == 1 && matches!(byte, b'{' | b',') {
            let from = at + i + 1;
            let from = from + code[from..].len() - code[from..].trim_start().len();
            paths.extend(words(&code[from..]).next().filter(|(gap, _)| *gap == 0).map(|(_, name)| (from, name)));
        }
    }
}
