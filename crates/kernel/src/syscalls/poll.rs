//! Waiting for files. All files but pipes are ready at once: what remains is to wait for a time.

use super::{Answer, Call, Stop, refuse};
use crate::files::{FILES_MAX, Kind};
use ::syscalls::Errno;

/// Something to read, there under two names (IN, RDNORM).
const READABLE: u16 = 0x1 | 0x40;
/// Room to write (OUT, WRNORM).
const WRITABLE: u16 = 0x4 | 0x100;
/// The other end of a pipe is closed: seen from the end that writes, and from the end that reads.
const ERROR: u16 = 0x8;
const HANG_UP: u16 = 0x10;
const INVALID: u16 = 0x20;
const ALWAYS_REPORTED: u16 = ERROR | HANG_UP | INVALID;
const MONOTONIC: u64 = 1;

impl Call<'_> {
    pub(super) fn ppoll(&mut self, fds: u64, count: u64, timeout: u64) -> Answer {
        if count > FILES_MAX as u64 {
            return Err(Errno::EINVAL.into());
        }
        let mut ready = 0;
        for entry in (0..count).map(|n| fds.wrapping_add(8 * n)) {
            let [word] = self.words_from(entry)?;
            // struct pollfd: descriptor, what is asked for, what there is.
            let (fd, asked) = (word as i32, (word >> 32) as u16);
            let found = if fd < 0 { 0 } else { self.state_of(fd) & (asked | ALWAYS_REPORTED) };
            ready += u64::from(found != 0);
            self.bytes_to(entry.wrapping_add(6), &found.to_le_bytes())?;
        }
        if ready > 0 { Ok(ready) } else { self.wait_for_nothing(timeout) }
    }

    /// The state of a descriptor for `poll`.
    fn state_of(&mut self, fd: i32) -> u16 {
        let Ok(opened) = self.process.files.get(fd) else { return INVALID };
        let writable = opened.writable;
        match opened.kind {
            Kind::Stdin => READABLE,
            Kind::Output(_) => WRITABLE,
            Kind::Pipe { pipe } => {
                let (ready, alone) = self.pipe_state(pipe, writable);
                let (state, end) = if writable { (WRITABLE, ERROR) } else { (READABLE, HANG_UP) };
                (u16::from(ready) * state) | (u16::from(alone) * end)
            }
            _ => READABLE | WRITABLE,
        }
    }

    pub(super) fn pselect6(&mut self, count: u64, sets: [u64; 3], timeout: u64) -> Answer {
        if count > FILES_MAX as u64 {
            return Err(Errno::EINVAL.into());
        }
        let mut ready = 0;
        for (set, addr) in sets.into_iter().enumerate().filter(|&(_, addr)| addr != 0) {
            for first in (0..count).step_by(64) {
                let addr = addr.wrapping_add(first / 8);
                let [asked] = self.words_from(addr)?;
                let asked = asked & u64::MAX >> (64 - (count - first).min(64));
                let mut found = 0;
                for bit in (0..64).filter(|bit| asked >> bit & 1 != 0) {
                    let fd = first as i32 + bit;
                    // Files are ready for all that can be done; the third set is for exceptions, and there are none.
                    let ready = match (set, &self.process.files.get(fd)?.kind) {
                        (0, Kind::Pipe { .. }) => self.state_of(fd) & (READABLE | HANG_UP) != 0,
                        (1, Kind::Pipe { .. }) => self.state_of(fd) & (WRITABLE | ERROR) != 0,
                        (set, _) => set < 2,
                    };
                    found |= u64::from(ready) << bit;
                }
                ready += u64::from(found.count_ones());
                self.words_to(addr, &[found])?;
            }
        }
        if ready > 0 { Ok(ready) } else { self.wait_for_nothing(timeout) }
    }

    fn wait_for_nothing(&mut self, timeout: u64) -> Answer {
        if timeout == 0 {
            return refuse("the call would never return: no file will become ready");
        }
        Err(Stop::Sleep { until_ns: self.time_of(MONOTONIC, false, timeout)? })
    }
}
