//! The reasons for which a replay stops.

use durasim_machine::{DataAccess, Machine, ThreadId};
use std::collections::BTreeMap;

/// Bytes whose accesses stop the replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Watchpoint {
    pub addr: u64,
    pub size_bytes: u64,
    pub at_loads: bool,
    pub at_stores: bool,
}

impl Watchpoint {
    fn concerns(&self, access: DataAccess) -> bool {
        access.overlaps(self.addr, self.size_bytes)
            && (access.loads && self.at_loads || access.stores && self.at_stores)
    }
}

/// A reason to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// A thread has executed, or undone, one instruction.
    Step,
    /// A thread is at a breakpoint.
    Breakpoint,
    /// A thread has made an access that is watched; before it, where the replay goes back.
    Watchpoint(Watchpoint),
    /// The run is at its end.
    End,
    /// The run is at its begin.
    Begin,
}

/// The watchpoints, and the next access of each thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watchpoints {
    all: Vec<Watchpoint>,
    next: BTreeMap<ThreadId, DataAccess>,
}

impl Watchpoints {
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn add(&mut self, watchpoint: Watchpoint) {
        self.all.push(watchpoint);
    }

    /// Removes a watchpoint. False: there is none like it.
    pub fn remove(&mut self, watchpoint: Watchpoint) -> bool {
        let index = self.all.iter().position(|known| *known == watchpoint);
        index.map(|index| self.all.remove(index)).is_some()
    }

    /// The watchpoint that an access concerns.
    pub fn concerned(&self, access: DataAccess) -> Option<Watchpoint> {
        self.all.iter().copied().find(|watchpoint| watchpoint.concerns(access))
    }

    /// The watchpoint that the instruction concerns which a thread has executed since it was looked at.
    pub fn hit(&self, thread: ThreadId) -> Option<Watchpoint> {
        if self.all.is_empty() {
            return None;
        }
        self.concerned(self.next_of(thread)?)
    }

    /// Notes the next access of a thread, if there are watchpoints.
    pub fn look_ahead(&mut self, machine: &mut Machine, thread: ThreadId) {
        if !self.all.is_empty() {
            self.note_next(machine, thread);
        }
    }

    /// Notes the next access of a thread.
    pub fn note_next(&mut self, machine: &mut Machine, thread: ThreadId) {
        match machine.next_access(thread) {
            Some(access) => self.next.insert(thread, access),
            None => self.next.remove(&thread),
        };
    }

    /// The next access of a thread, as it was noted.
    pub fn next_of(&self, thread: ThreadId) -> Option<DataAccess> {
        self.next.get(&thread).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watchpoints_stop_at_the_accesses_that_they_name() {
        let watchpoint = Watchpoint { addr: 0x100, size_bytes: 8, at_loads: false, at_stores: true };
        let access = |addr, loads, stores| DataAccess { addr, size_bytes: 4, loads, stores };
        let mut watchpoints = Watchpoints::default();
        watchpoints.add(watchpoint);
        assert_eq!(watchpoints.concerned(access(0x104, false, true)), Some(watchpoint));
        assert_eq!(watchpoints.concerned(access(0x104, true, false)), None, "a load");
        assert_eq!(watchpoints.concerned(access(0x108, false, true)), None, "the bytes after it");
        assert!(watchpoints.remove(watchpoint) && !watchpoints.remove(watchpoint));
        assert!(watchpoints.is_empty());
    }
}
