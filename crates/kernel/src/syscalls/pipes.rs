//! Pipes of a program to itself: what its threads and signal handlers would wake each other with. No one waits for one:
//! a transfer that would have to is refused, or EAGAIN for ends that are not to wait.

use super::files::O_CLOEXEC;
use super::{Answer, Call, Stop, refuse};
use crate::files::{Kind, Opened};
use ::syscalls::Errno;

pub(super) const O_NONBLOCK: u64 = 0x800;
/// The capacity of a pipe, as in Linux.
const CAPACITY_BYTES: usize = 65536;

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
            let flags = flags & O_NONBLOCK | u64::from(writable);
            let end = Opened { kind, offset: 0, readable: !writable, writable, flags };
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

    /// Takes up to `len` bytes out of the pipe that `fd` reads.
    pub(super) fn take_from_pipe(&mut self, fd: i32, pipe: u64, len: u64) -> Result<Vec<u8>, Stop> {
        let waits = self.process.files.get(fd)?.flags & O_NONBLOCK == 0;
        let files = &mut self.process.files;
        let (empty, written) = (files.pipe(pipe).is_empty(), files.has_pipe_end(pipe, true));
        match () {
            () if empty && written && len > 0 && waits => {
                refuse("waiting until another thread writes into a pipe is not supported")
            }
            () if empty && written && len > 0 => Err(Errno::EAGAIN.into()),
            () => {
                let held = files.pipe(pipe);
                let count = held.len().min(len as usize);
                Ok(held.drain(..count).collect())
            }
        }
    }

    /// Puts all of `bytes` into the pipe that `fd` writes.
    pub(super) fn put_into_pipe(&mut self, fd: i32, pipe: u64, bytes: &[u8]) -> Result<(), Stop> {
        let waits = self.process.files.get(fd)?.flags & O_NONBLOCK == 0;
        let files = &mut self.process.files;
        if !files.has_pipe_end(pipe, false) {
            return refuse("the pipe has no reader, and the signal SIGPIPE is not supported");
        }
        let held = files.pipe(pipe);
        match held.len() + bytes.len() <= CAPACITY_BYTES {
            true => held.extend(bytes),
            false if waits => return refuse("waiting for room in a pipe is not supported"),
            false => return Err(Errno::EAGAIN.into()),
        }
        Ok(())
    }

    /// Whether an end of a pipe has something to read or room to write, and whether the other side is closed.
    pub(super) fn pipe_state(&mut self, pipe: u64, writable: bool) -> (bool, bool) {
        let files = &mut self.process.files;
        let held_bytes = files.pipe(pipe).len();
        let ready = if writable { held_bytes < CAPACITY_BYTES } else { held_bytes > 0 };
        (ready, !files.has_pipe_end(pipe, !writable))
    }
}
