//! Counts words: text in, a line for each word when the input has ended.

use crate::Output;
use snapring::connector::Lines;
use snapring::dataflow::Dataflow;
use snapring::error::ConnectorError;
use snapring::record::Record;

/// How often a word occurs.
#[derive(Clone, Debug, PartialEq, Eq, Record)]
pub struct WordCount {
    /// The word, in lower case.
    pub word: String,
    /// Its occurrences.
    pub count: u64,
}

/// Draws the job.
///
/// # Errors
/// The output's path is that of a file.
pub fn wordcount(text: Lines, output: &Output) -> Result<Dataflow, ConnectorError> {
    let flow = Dataflow::new("wordcount");
    let counts = flow
        .source("text", text)
        .flat_map(|line| words(&line))
        .key_by_ref(|word| word)
        .fold_to_end("count", 0, |count: &mut u64, _| *count += 1)
        .map(|(word, count)| WordCount { word, count });
    output.take("counts", counts)?;
    Ok(flow)
}

/// The words of a line: maximal runs of ASCII letters and digits, in lower case. Any bytes will do.
#[must_use]
pub fn words(line: &[u8]) -> Vec<String> {
    line.split(|byte| !byte.is_ascii_alphanumeric())
        .filter(|run| !run.is_empty())
        .map(|run| run.iter().map(|byte| char::from(byte.to_ascii_lowercase())).collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn a_word_is_a_run_of_letters_and_digits() {
        assert_eq!(words(b"Ge1:1 In the BEGINNING, God"), ["ge1", "1", "in", "the", "beginning", "god"]);
        assert_eq!(words(b"\xff\xfea\xc3\xa9b\0c"), ["a", "b", "c"]);
        assert!(words(b" \t-").is_empty());
    }
}
