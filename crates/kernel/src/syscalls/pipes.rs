//! Pipes of a program to itself, with which its threads and signal handlers wake each other.

use super::files::{O_CLOEXEC, O_NONBLOCK};
use super::signals::sent;
use super::{Answer, Call, Stop};
use crate::files::{Kind, Opened, PIPE_BYTES, UNDIVIDED_BYTES};
use crate::poll_events::{HANG_UP, READABLE, WRITABLE};
use crate::signals::SI_USER;
use ::syscalls::Errno;

const SIGPIPE: u8 = 13;

impl Call<'_> {
    pub(super) fn pipe2(&mut self, to: u64, flags: u64) -> Answer {
        // Packet mode (O_DIRECT) is unknown, as before Linux 3.4.
        if flags & !(O_CLOEXEC | O_NONBLOCK) != 0 {
            return Err(Errno::EINVAL.into());
        }
        self.check_range(to, 8)?;
        let files = &mut self.process.files;
        let pipe = files.add_pipe();
        let mut ends = [0; 8];
        for (slot, writable) in ends.chunks_exact_mut(4).zip([false, true]) {
            let kind = Kind::Pipe { pipe };
            let end = Opened::new(kind, !writable, writable, flags & O_NONBLOCK | u64::from(writable));
            match files.add(end, flags & O_CLOEXEC != 0) {
                Ok(fd) => slot.copy_from_slice(&fd.to_le_bytes()),
                Err(errno) => {
                    if writable {
                        files.close(i32::from_le_bytes(ends[..4].try_into().expect("four bytes")))?;
                    }
                    return Err(errno.into());
                }
            }
        }
        self.bytes_to(to, &ends)?;
        Ok(0)
    }

    /// Something was read from a pipe, or written: the other end may go on.
    fn note_pipe(&mut self, pipe: u64, happened: [u64; 2]) {
        self.process.files.note(|kind| matches!(kind, Kind::Pipe { pipe: p } if *p == pipe), happened);
    }

    /// Takes up to `len` bytes out of the pipe that `fd` reads.
    pub(super) fn take_from_pipe(&mut self, fd: i32, pipe: u64, len: u64) -> Result<Vec<u8>, Stop> {
        let files = &mut self.process.files;
        let (empty, written) = (files.pipe(pipe).is_empty(), files.has_pipe_end(pipe, true));
        if empty && written && len > 0 {
            return self.wait_for_file(fd, READABLE | HANG_UP);
        }
        let held = files.pipe(pipe);
        let count = held.len().min(len as usize);
        let taken = held.drain(..count).collect();
        self.note_pipe(pipe, [0, 1]);
        Ok(taken)
    }

    /// Puts some of `bytes` into the pipe that `fd` writes, all of them if they are few; how many it were.
    pub(super) fn put_into_pipe(&mut self, fd: i32, pipe: u64, bytes: &[u8]) -> Answer {
        let files = &mut self.process.files;
        if !files.has_pipe_end(pipe, false) {
            self.send_to_thread(self.thread, sent(SIGPIPE, SI_USER))?;
            return Err(Errno::EPIPE.into());
        }
        let room = PIPE_BYTES - files.pipe(pipe).len();
        let needed = if bytes.len() <= UNDIVIDED_BYTES { bytes.len() } else { 1 };
        if room < needed {
            return self.wait_for_file(fd, WRITABLE);
        }
        let put = room.min(bytes.len());
        files.pipe(pipe).extend(&bytes[..put]);
        self.note_pipe(pipe, [1, 0]);
        Ok(put as u64)
    }
}
