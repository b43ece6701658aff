//! Instructions that each thread has executed.

use durasim_kernel::ThreadId;
use std::collections::BTreeMap;

/// Instructions of each thread.
#[derive(Default)]
pub(super) struct Slices {
    running: Option<ThreadId>,
    /// Start of its slice, in instructions of all threads.
    begin_instructions: u64,
    /// Instructions of each thread in slices that have ended.
    instructions: BTreeMap<ThreadId, u64>,
}

impl Slices {
    /// A slice of a thread begins, after this many instructions of all threads.
    pub(super) fn begin(&mut self, thread: ThreadId, instructions: u64) {
        if self.running == Some(thread) {
            return;
        }
        if let Some(before) = self.running.replace(thread) {
            *self.instructions.entry(before).or_default() += instructions - self.begin_instructions;
        }
        self.begin_instructions = instructions;
    }

    /// The thread that runs, and its instructions, after this many of all threads.
    pub(super) fn of_this_thread(&self, instructions: u64) -> (ThreadId, u64) {
        let thread = self.running.unwrap_or(ThreadId::FIRST);
        let before = self.instructions.get(&thread).copied().unwrap_or_default();
        (thread, before + instructions - self.begin_instructions)
    }
}
