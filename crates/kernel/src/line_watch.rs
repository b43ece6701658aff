//! Notices the ends of lines that a program prints.

use crate::{Output, Stream};

/// Passes the output of a program on, and notices ends of lines on its standard output.
pub struct LineWatch<'a> {
    output: &'a mut dyn Output,
    /// Whether a line has ended.
    pub line_ended: bool,
}

impl<'a> LineWatch<'a> {
    /// Of this output.
    pub fn new(output: &'a mut dyn Output) -> Self {
        LineWatch { output, line_ended: false }
    }
}

impl Output for LineWatch<'_> {
    fn write(&mut self, stream: Stream, bytes: &[u8]) {
        self.line_ended |= stream == Stream::Stdout && bytes.contains(&b'\n');
        self.output.write(stream, bytes);
    }

    fn stopped(&self) -> bool {
        self.output.stopped()
    }

    fn kept_bytes(&self) -> u64 {
        self.output.kept_bytes()
    }

    fn progress(&mut self, ops: u64) {
        self.output.progress(ops);
    }
}
