//! Waiting for events of several files: `ppoll` and `pselect6`.

use super::files::O_NONBLOCK;
use super::{Answer, Call, Stop};
use crate::files::{FILES_MAX, Kind};
use crate::poll_events::{ALWAYS_REPORTED, ERROR, HANG_UP, INVALID, READABLE, WRITABLE};
use ::syscalls::Errno;

const MONOTONIC: u64 = 1;

impl Call<'_> {
    pub(super) fn ppoll(&mut self, fds: u64, count: u64, timeout: u64, mask: [u64; 2]) -> Answer {
        if count > FILES_MAX as u64 {
            return Err(Errno::EINVAL.into());
        }
        self.wait_with_mask(mask[0], mask[1])?;
        let (mut ready, mut watched) = (0, Vec::new());
        for entry in (0..count).map(|n| fds.wrapping_add(8 * n)) {
            let [word] = self.words_from(entry)?;
            // struct pollfd: descriptor, what is asked for, what there is.
            let (fd, asked) = (word as i32, (word >> 32) as u16 | ALWAYS_REPORTED);
            let found = if fd < 0 { 0 } else { self.state_of(fd) & asked };
            if let Ok(slot) = self.process.files.slot(fd) {
                watched.push((slot, asked));
            }
            ready += u64::from(found != 0);
            self.bytes_to(entry.wrapping_add(6), &found.to_le_bytes())?;
        }
        if ready > 0 { Ok(ready) } else { self.wait_for_any(watched, timeout) }
    }

    /// The state of a descriptor for `poll`.
    fn state_of(&self, fd: i32) -> u16 {
        let slot = self.process.files.slot(fd);
        slot.map_or(INVALID, |slot| self.process.readiness(self.thread, slot, self.now_ns))
    }

    pub(super) fn pselect6(&mut self, count: u64, sets: [u64; 3], timeout: u64, mask: u64) -> Answer {
        if count > FILES_MAX as u64 {
            return Err(Errno::EINVAL.into());
        }
        if mask != 0 {
            let [set, size] = self.words_from(mask)?;
            self.wait_with_mask(set, size)?;
        }
        // An urgent event, which the third set is for, never happens.
        let events = [READABLE | HANG_UP | ERROR, WRITABLE | ERROR, 0];
        let (mut ready, mut watched, mut found_words) = (0, Vec::new(), Vec::new());
        for (events, addr) in events.into_iter().zip(sets).filter(|&(_, addr)| addr != 0) {
            for first in (0..count).step_by(64) {
                let addr = addr.wrapping_add(first / 8);
                let [asked] = self.words_from(addr)?;
                let asked = asked & u64::MAX >> (64 - (count - first).min(64));
                let mut found = 0;
                for bit in (0..64).filter(|bit| asked >> bit & 1 != 0) {
                    let fd = first as i32 + bit;
                    let slot = self.process.files.slot(fd)?;
                    watched.push((slot, events));
                    found |= u64::from(self.state_of(fd) & events != 0) << bit;
                }
                ready += u64::from(found.count_ones());
                found_words.push((addr, found));
            }
        }
        if ready == 0
            && let waits @ Err(_) = self.wait_for_any(watched, timeout)
        {
            return waits;
        }
        for (addr, found) in found_words {
            self.words_to(addr, &[found])?;
        }
        Ok(ready)
    }

    /// Waits until one of some open files has one of its events, or for the timespec at `timeout`; 0 = without end.
    fn wait_for_any(&mut self, watched: Vec<(usize, u16)>, timeout: u64) -> Answer {
        let begun = self.thread().repeated;
        let until_ns = match (begun, timeout) {
            (Some(begun), _) => begun.until_ns,
            (None, 0) => None,
            (None, timeout) => Some(self.time_of(MONOTONIC, false, timeout)?),
        };
        match until_ns {
            // A plain sleep, unless a file could end it, or the signal mask has to come back.
            Some(until_ns) if begun.is_none() && !self.can_wait_for(&watched) && self.thread().saved_mask.is_none() => {
                Err(Stop::Sleep { until_ns })
            }
            Some(until_ns) if until_ns <= self.now_ns => Ok(0),
            _ => self.wait_for(watched, until_ns),
        }
    }

    /// Whether any of some open files may become ready.
    fn can_wait_for(&self, watched: &[(usize, u16)]) -> bool {
        watched.iter().filter_map(|&(slot, _)| self.process.files.at(slot)).any(|opened| {
            let kind = &opened.kind;
            let pipe = matches!(kind, Kind::Pipe { .. } | Kind::Socket { .. } | Kind::Epoll(_));
            pipe || matches!(kind, Kind::Event { .. } | Kind::Timer(_) | Kind::Signals { .. })
        })
    }

    /// The thread waits until one of some open files has one of its events, then makes the call again; no longer than
    /// until a simulated time.
    pub(super) fn wait_for(&mut self, watched: Vec<(usize, u16)>, until_ns: Option<u64>) -> Answer {
        let call = self.hart.x[17];
        let repeated = self.thread().repeated.get_or_insert_default();
        (repeated.call, repeated.until_ns) = (call, until_ns);
        let due = watched.iter().filter_map(|&(slot, _)| self.process.files.due_ns(slot, self.now_ns));
        let until_ns = due.chain(until_ns).min();
        Err(Stop::WaitForFiles { watched, until_ns, signals: 0 })
    }

    /// The thread waits until the open file of `fd` has one of `events`, unless it is not to wait.
    pub(super) fn wait_for_file<T>(&mut self, fd: i32, events: u16) -> Result<T, Stop> {
        if self.process.files.get(fd)?.flags & O_NONBLOCK != 0 {
            return Err(Errno::EAGAIN.into());
        }
        let slot = self.process.files.slot(fd)?;
        match self.wait_for(vec![(slot, events | ALWAYS_REPORTED)], None) {
            Err(stop) => Err(stop),
            Ok(_) => unreachable!("a wait has no answer yet"),
        }
    }
}
