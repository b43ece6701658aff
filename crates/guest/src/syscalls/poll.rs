//! Waiting for files. All files that exist here are ready at once: what remains is to wait for a time.

use super::{Answer, Call, Stop, refuse};
use crate::files::{FILES_MAX, Kind};
use ::syscalls::Errno;

/// Something to read, there under two names (IN, RDNORM).
const READABLE: u16 = 0x1 | 0x40;
/// Room to write (OUT, WRNORM).
const WRITABLE: u16 = 0x4 | 0x100;
const INVALID: u16 = 0x20;
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
            let found = match self.process.files.get(fd) {
                _ if fd < 0 => 0,
                Err(_) => INVALID,
                Ok(opened) => {
                    asked
                        & match opened.kind {
                            Kind::Stdin => READABLE,
                            Kind::Output(_) => WRITABLE,
                            _ => READABLE | WRITABLE,
                        }
                }
            };
            ready += u64::from(found != 0);
            self.bytes_to(entry.wrapping_add(6), &found.to_le_bytes())?;
        }
        if ready > 0 { Ok(ready) } else { self.wait_for_nothing(timeout) }
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
                for fd in (0..64).filter(|bit| asked >> bit & 1 != 0) {
                    self.process.files.get(first as i32 + fd)?;
                }
                // The third set is for exceptions, of which there are none.
                let found = if set < 2 { asked } else { 0 };
                ready += u64::from(found.count_ones());
                self.words_to(addr, &[found])?;
            }
        }
        if ready > 0 { Ok(ready) } else { self.wait_for_nothing(timeout) }
    }

    fn wait_for_nothing(&mut self, timeout: u64) -> Answer {
        if timeout == 0 {
            return refuse("it would wait for ever, as no file will become ready");
        }
        Err(Stop::Sleep { until_ns: self.time_of(MONOTONIC, false, timeout)? })
    }
}
