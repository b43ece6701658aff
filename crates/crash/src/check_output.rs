//! The output of a check, for results: the begin of each stream, as text without control characters.

use durasim_machine::Stream;
use serde::{Deserialize, Serialize};
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
}
