//! The events of open files for which threads can wait, and those that epoll reports.

use crate::files::{FileTable, Interest, Kind, Opened};
use crate::poll_events::{
    EDGE_TRIGGERED, ERROR, HANG_UP, INTEREST_OPTIONS, INVALID, READ_HANG_UP, READABLE, WRITABLE, when,
};
use crate::process::Process;
use crate::threads::ThreadId;

impl Process {
    /// The events of the open file at `slot`, as `thread` sees them.
    pub(crate) fn readiness(&self, thread: ThreadId, slot: usize, now_ns: u64) -> u16 {
        let Some(opened) = self.files.at(slot) else { return INVALID };
        match &opened.kind {
            Kind::Stdin => READABLE,
            Kind::Output(_) => WRITABLE,
            &Kind::Pipe { pipe } => self.files.pipe_readiness(pipe, opened.writable),
            &Kind::Socket { link, side } => self.files.link(link).readiness(side),
            &Kind::Event { count, .. } => when(count > 0, READABLE) | when(count < u64::MAX - 1, WRITABLE),
            Kind::Timer(timer) => when(timer.expirations(now_ns) > 0, READABLE),
            &Kind::Signals { mask } => when(self.pending_of(thread) & mask != 0, READABLE),
            Kind::Epoll(interests) => {
                let any = interests.iter().any(|interest| self.reported(thread, interest, now_ns) != 0);
                when(any, READABLE)
            }
            Kind::Device(_) | Kind::File { .. } | Kind::Pmem { .. } | Kind::Folder { .. } => READABLE | WRITABLE,
        }
    }

    /// The signals that wait for a thread, its own and those of the process.
    pub(crate) fn pending_of(&self, thread: ThreadId) -> u64 {
        self.threads.get(thread).pending.set() | self.signals.pending.set()
    }

    /// The events that epoll reports of an interest now.
    pub(crate) fn reported(&self, thread: ThreadId, interest: &Interest, now_ns: u64) -> u32 {
        let wanted = interest.events & !INTEREST_OPTIONS;
        if wanted == 0 {
            // An interest that has had its one report.
            return 0;
        }
        let there = u32::from(self.readiness(thread, interest.slot, now_ns)) & (wanted | u32::from(ERROR | HANG_UP));
        let is_new = interest.events & EDGE_TRIGGERED == 0 || {
            let happened = self.happened(interest.slot, now_ns);
            interest.seen.is_none_or(|seen| {
                let asks = [READABLE | READ_HANG_UP, WRITABLE].map(|events| wanted & u32::from(events) != 0);
                (0..2).any(|way| asks[way] && happened[way] != seen[way])
            })
        };
        if is_new { there } else { 0 }
    }

    /// Number of times that something came to be read, or room to write, of an open file.
    pub(crate) fn happened(&self, slot: usize, now_ns: u64) -> [u64; 2] {
        let Some(Opened { kind, happened, .. }) = self.files.at(slot) else { return [0; 2] };
        let reads = match kind {
            Kind::Timer(timer) => timer.taken + timer.expirations(now_ns),
            Kind::Signals { .. } => self.signals.sent,
            // Of an epoll inside of another every look counts.
            Kind::Epoll(_) => now_ns + 1,
            _ => 0,
        };
        [happened[0] + reads, happened[1]]
    }
}

impl FileTable {
    /// The next time after `now_ns` at which the open file at `slot` becomes readable without anyone's doing.
    pub(crate) fn due_ns(&self, slot: usize, now_ns: u64) -> Option<u64> {
        match &self.at(slot)?.kind {
            Kind::Timer(timer) => timer.next_after(now_ns),
            Kind::Epoll(interests) => interests.iter().filter_map(|i| self.due_ns(i.slot, now_ns)).min(),
            _ => None,
        }
    }
}
