//! The output of a check, for results: the begin of each stream, as text without control characters.

use crate::outcome::Outcome;
use crate::trial::Trial;
use durasim_machine::Stream;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Bytes of each stream that are kept of a run of a program.
const KEPT_BYTES_MAX: usize = 4096;

/// The output of one run of a check. Control characters other than line breaks and tabs, and bytes that are no UTF-8, are
/// written as `\x1b`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckOutput {
    /// The first 4096 bytes of its standard output.
    pub stdout: String,
    /// Further bytes of its standard output, which are not kept.
    pub stdout_left_out_bytes: u64,
    /// The first 4096 bytes of its standard error.
    pub stderr: String,
    /// Further bytes of its standard error, which are not kept.
    pub stderr_left_out_bytes: u64,
}

/// The runs of the check in a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialChecks {
    /// The trial, as `--replay` takes it.
    pub id: String,
    /// Each run of the check, in order: one on what the power failure left, and a second one on what that has recovered. Empty if
    /// the trial ended before a check.
    pub checks: Vec<CheckOutput>,
}

/// Those of the trials that a result lists: the first ones that fail, or that of a replay.
pub(crate) fn listed(tried: &[(Trial, Outcome)], is_replay: bool, trials_max: usize) -> Vec<TrialChecks> {
    let is_listed = |(_, outcome): &&(Trial, Outcome)| is_replay || !outcome.objections.is_empty();
    let checks =
        |(trial, outcome): &(Trial, Outcome)| TrialChecks { id: trial.to_string(), checks: outcome.checks.clone() };
    tried.iter().filter(is_listed).take(trials_max).map(checks).collect()
}

/// The outputs of trials of a campaign while it runs. Only the first failing trials are listed, so further ones need no memory.
pub(crate) struct FirstChecks {
    first: BTreeMap<Trial, Vec<CheckOutput>>,
    trials_max: usize,
}

impl FirstChecks {
    /// For a result that lists this number of failing trials.
    pub fn new(trials_max: usize) -> Self {
        FirstChecks { first: BTreeMap::new(), trials_max }
    }

    /// Takes the outputs out of these trials. A trial that did not end keeps them: it may run once more.
    pub fn take(&mut self, tried: &mut [(Trial, Outcome)]) {
        for (trial, outcome) in tried.iter_mut().filter(|(_, outcome)| outcome.unfinished.is_none()) {
            let checks = std::mem::take(&mut outcome.checks);
            if outcome.objections.is_empty() || checks.is_empty() {
                continue;
            }
            self.first.insert(trial.clone(), checks);
            if self.first.len() > self.trials_max {
                self.first.pop_last();
            }
        }
    }

    /// Gives the outputs back to the first failing trials.
    pub fn give_back(mut self, tried: &mut [(Trial, Outcome)]) {
        for (trial, outcome) in tried {
            if let Some(checks) = self.first.remove(trial) {
                outcome.checks = checks;
            }
        }
    }
}

/// The begin of the two streams of a program while it runs.
#[derive(Default)]
pub(crate) struct WrittenStreams {
    stdout: Written,
    stderr: Written,
}

#[derive(Default)]
struct Written {
    kept: Vec<u8>,
    left_out_bytes: u64,
}

impl WrittenStreams {
    /// The program wrote these bytes.
    pub fn write(&mut self, stream: Stream, bytes: &[u8]) {
        let written = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        let (kept, left_out) = bytes.split_at(bytes.len().min(KEPT_BYTES_MAX - written.kept.len()));
        written.kept.extend_from_slice(kept);
        written.left_out_bytes += left_out.len() as u64;
    }

    /// As results show it.
    pub fn document(&self) -> CheckOutput {
        CheckOutput {
            stdout: printable(&self.stdout.kept),
            stdout_left_out_bytes: self.stdout.left_out_bytes,
            stderr: printable(&self.stderr.kept),
            stderr_left_out_bytes: self.stderr.left_out_bytes,
        }
    }
}

/// The text of these bytes, with escapes as [`CheckOutput`] describes.
fn printable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() && c != '\n' && c != '\t' {
                write!(text, "\\x{:02x}", u32::from(c)).expect("a text takes all");
            } else {
                text.push(c);
            }
        }
        for byte in chunk.invalid() {
            write!(text, "\\x{byte:02x}").expect("a text takes all");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Oracle;

    #[test]
    fn control_characters_and_other_bytes_are_escaped() {
        assert_eq!(printable(b"a\x1b[31m\tb\r\n\xff\xc3\xa4\x7f"), "a\\x1b[31m\tb\\x0d\n\\xff\u{e4}\\x7f");
        assert_eq!(printable("\u{9b}31m".as_bytes()), "\\x9b31m", "a control character of Latin-1");
    }

    #[test]
    fn streams_are_apart_and_bounded() {
        let mut written = WrittenStreams::default();
        written.write(Stream::Stdout, &[b'a'; 4000]);
        written.write(Stream::Stderr, b"wrong\n");
        written.write(Stream::Stdout, &[b'b'; 1000]);
        written.write(Stream::Stdout, b"c");
        let output = written.document();
        assert_eq!((output.stdout.len(), output.stdout_left_out_bytes), (4096, 905));
        assert!(output.stdout.ends_with(&"b".repeat(96)));
        assert_eq!((output.stderr.as_str(), output.stderr_left_out_bytes), ("wrong\n", 0));
    }

    fn tried(text: &str, fails: bool) -> (Trial, Outcome) {
        let mut outcome = if fails { Outcome::object(Oracle::Guest, "no".into()) } else { Outcome::default() };
        outcome.checks.push(CheckOutput { stdout: text.to_owned(), ..CheckOutput::default() });
        (text.parse().expect("an id of a trial"), outcome)
    }

    #[test]
    fn the_first_failing_trials_keep_their_outputs() {
        let mut first = FirstChecks::new(2);
        let mut late = vec![tried("e7", true), tried("e9", true), tried("e8", false)];
        first.take(&mut late);
        let mut early = vec![tried("e2", true)];
        first.take(&mut early);
        let mut all: Vec<(Trial, Outcome)> = early.into_iter().chain(late).collect();
        first.give_back(&mut all);
        let kept = |listed: Vec<TrialChecks>| -> Vec<(String, usize)> {
            listed.into_iter().map(|trial| (trial.id, trial.checks.len())).collect()
        };
        assert_eq!(kept(listed(&all, false, 2)), [("e2".to_owned(), 1), ("e7".to_owned(), 1)]);
        assert_eq!(kept(listed(&[tried("e8", false)], true, 2)), [("e8".to_owned(), 1)], "a replay that passes");
    }
}
