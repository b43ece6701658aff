//! Transfers of several buffers, and from file to file.

use super::files::{CHUNK, TRANSFER_MAX};
use super::{Answer, Call, Stop};
use ::syscalls::Errno;

impl Call<'_> {
    pub(super) fn readv(&mut self, fd: i32, vectors: u64, count: u64) -> Answer {
        self.for_vectors(vectors, count, |call, base, len| call.read(fd, base, len))
    }

    pub(super) fn writev(&mut self, fd: i32, vectors: u64, count: u64) -> Answer {
        self.for_vectors(vectors, count, |call, base, len| call.write(fd, base, len))
    }

    /// Transfers the buffers of an array of `struct iovec` one after the other, until one is not filled.
    fn for_vectors(
        &mut self,
        vectors: u64,
        count: u64,
        mut transfer: impl FnMut(&mut Self, u64, u64) -> Answer,
    ) -> Answer {
        const VECTORS_MAX: u64 = 1024;
        if count > VECTORS_MAX {
            return Err(Errno::EINVAL.into());
        }
        let mut total = 0;
        for i in 0..count {
            let [base, len] = self.words_from(vectors.wrapping_add(16 * i))?;
            match transfer(self, base, len) {
                Ok(moved) => {
                    total += moved;
                    if moved < len {
                        break;
                    }
                }
                Err(Stop::Errno(_)) if total > 0 => break,
                Err(stop) => return Err(stop),
            }
        }
        Ok(total)
    }

    pub(super) fn preadv(&mut self, fd: i32, vectors: u64, count: u64, offset: u64) -> Answer {
        self.check_position(fd, offset)?;
        let mut at = offset;
        self.for_vectors(vectors, count, |call, base, len| {
            let moved = call.read_at(fd, at, base, len)?;
            at += moved;
            Ok(moved)
        })
    }

    pub(super) fn pwritev(&mut self, fd: i32, vectors: u64, count: u64, offset: u64) -> Answer {
        self.check_position(fd, offset)?;
        let mut at = offset;
        self.for_vectors(vectors, count, |call, base, len| {
            let moved = call.write_at(fd, at, base, len)?;
            at += moved;
            Ok(moved)
        })
    }

    fn check_position(&self, fd: i32, offset: u64) -> Result<(), Stop> {
        self.seekable(fd)?;
        if (offset as i64) < 0 { Err(Errno::EINVAL.into()) } else { Ok(()) }
    }

    /// Copies from a file at `offset`, which follows, or without one at its own position, to another file.
    pub(super) fn sendfile(&mut self, to: i32, from: i32, offset: u64, count: u64) -> Answer {
        let (source, target) = (self.process.files.get(from)?, self.process.files.get(to)?);
        if !source.readable || !target.writable {
            return Err(Errno::EBADF.into());
        }
        let (own, mut out) = (source.offset, target.offset);
        let start = if offset == 0 { own } else { self.words_from::<1>(offset)?[0] };
        self.check_position(from, start)?;
        let count = count.min(TRANSFER_MAX);
        let mut done = 0;
        while done < count {
            let wanted = CHUNK.min(count - done);
            let bytes = self.fetch(from, start + done, wanted)?;
            self.put(to, out, &bytes)?;
            out += bytes.len() as u64;
            done += bytes.len() as u64;
            if (bytes.len() as u64) < wanted {
                break;
            }
        }
        if offset == 0 {
            self.process.files.get_mut(from)?.offset = start + done;
        } else {
            self.words_to(offset, &[start + done])?;
        }
        self.process.files.get_mut(to)?.offset = out;
        Ok(done)
    }
}
