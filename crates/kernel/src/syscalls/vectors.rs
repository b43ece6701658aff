//! Transfers of several buffers, and from file to file.

use super::files::{CHUNK, TRANSFER_MAX};
use super::{Answer, Call, Stop};
use ::syscalls::Errno;

/// The most buffers of a call.
const VECTORS_MAX: u64 = 1024;
/// RWF_HIPRI, which only matters to queues of devices.
const PRIORITY_FLAGS: u64 = 1;
/// The offset that means that of the open file.
const OWN_OFFSET: u64 = u64::MAX;

impl Call<'_> {
    pub(super) fn readv(&mut self, fd: i32, vectors: u64, count: u64) -> Answer {
        self.for_vectors(vectors, count, |call, base, len| call.read(fd, base, len))
    }

    pub(super) fn writev(&mut self, fd: i32, vectors: u64, count: u64) -> Answer {
        if self.process.files.get(fd)?.is_stream() {
            if !self.process.files.get(fd)?.writable {
                return Err(Errno::EBADF.into());
            }
            let bytes = self.gather(vectors, count)?;
            return self.write_stream(fd, &bytes);
        }
        self.for_vectors(vectors, count, |call, base, len| call.write(fd, base, len))
    }

    /// Transfers the buffers of an array of `struct iovec` one after the other, until one is not filled.
    fn for_vectors(
        &mut self,
        vectors: u64,
        count: u64,
        mut transfer: impl FnMut(&mut Self, u64, u64) -> Answer,
    ) -> Answer {
        let mut total = 0;
        if count > VECTORS_MAX {
            return Err(Errno::EINVAL.into());
        }
        for i in 0..count {
            let [base, len] = self.words_from(vectors.wrapping_add(16 * i))?;
            match transfer(self, base, len) {
                Ok(moved) => {
                    total += moved;
                    if moved < len {
                        break;
                    }
                }
                Err(Stop::Errno(_) | Stop::WaitForFiles { .. }) if total > 0 => break,
                Err(stop) => return Err(stop),
            }
        }
        Ok(total)
    }

    /// Address and length of each buffer of an array of `struct iovec`.
    pub(super) fn buffers(&mut self, vectors: u64, count: u64) -> Result<Vec<(u64, u64)>, Stop> {
        if count > VECTORS_MAX {
            return Err(Errno::EMSGSIZE.into());
        }
        let mut buffers = Vec::new();
        let mut room = TRANSFER_MAX;
        for i in 0..count {
            let [base, len] = self.words_from(vectors.wrapping_add(16 * i))?;
            let len = len.min(room);
            room -= len;
            self.check_range(base, len)?;
            buffers.push((base, len));
        }
        Ok(buffers)
    }

    /// The bytes of all buffers of an array of `struct iovec`.
    pub(super) fn gather(&mut self, vectors: u64, count: u64) -> Result<Vec<u8>, Stop> {
        let mut bytes = Vec::new();
        for (base, len) in self.buffers(vectors, count)? {
            bytes.extend(self.bytes_from(base, len)?);
        }
        Ok(bytes)
    }

    /// `preadv` with flags, and at the own offset of the file for -1.
    pub(super) fn preadv2(&mut self, fd: i32, vectors: u64, count: u64, offset: u64, flags: u64) -> Answer {
        if flags & !PRIORITY_FLAGS != 0 {
            return Err(Errno::EOPNOTSUPP.into());
        }
        match offset {
            OWN_OFFSET => self.readv(fd, vectors, count),
            offset => self.preadv(fd, vectors, count, offset),
        }
    }

    /// `pwritev` with flags, and at the own offset of the file for -1.
    pub(super) fn pwritev2(&mut self, fd: i32, vectors: u64, count: u64, offset: u64, flags: u64) -> Answer {
        /// RWF_DSYNC and RWF_SYNC: as if `fsync` followed.
        const SYNC_FLAGS: u64 = 2 | 4;
        if flags & !(PRIORITY_FLAGS | SYNC_FLAGS) != 0 {
            return Err(Errno::EOPNOTSUPP.into());
        }
        let written = match offset {
            OWN_OFFSET => self.writev(fd, vectors, count)?,
            offset => self.pwritev(fd, vectors, count, offset)?,
        };
        if flags & SYNC_FLAGS != 0 {
            self.fsync(fd)?;
        }
        Ok(written)
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
        if source.is_stream() || target.is_stream() {
            // Programs then read and write.
            return Err(Errno::EINVAL.into());
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
