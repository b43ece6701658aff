//! The system calls that take a descriptor.

use super::{Answer, Call, Stop};
use crate::files::{Device, Kind, Opened};
use crate::folder::FileId;
use crate::{Extent, PmemError};
use ::syscalls::Errno;
use durasim_types::PAGE_BYTES;

/// The most that one system call transfers, as in Linux.
pub(super) const TRANSFER_MAX: u64 = 0x7fff_f000;
/// Bytes copied at a time.
pub(super) const CHUNK: u64 = 1 << 20;

const O_APPEND: u64 = 0x400;
/// O_RDWR.
const READ_WRITE: u64 = 2;
pub(super) const O_NONBLOCK: u64 = 0x800;
pub(super) const O_CLOEXEC: u64 = 0x8_0000;
/// The flags that F_SETFL may change: O_APPEND, O_NONBLOCK, O_ASYNC, O_DIRECT, O_NOATIME.
const SETTABLE: u64 = O_APPEND | 0x800 | 0x2000 | 0x4000 | 0x4_0000;

impl Call<'_> {
    pub(super) fn read(&mut self, fd: i32, to: u64, len: u64) -> Answer {
        let offset = self.process.files.get(fd)?.offset;
        let count = self.read_at(fd, offset, to, len)?;
        self.process.files.get_mut(fd)?.offset += count;
        Ok(count)
    }

    pub(super) fn pread(&mut self, fd: i32, to: u64, len: u64, offset: u64) -> Answer {
        self.seekable(fd)?;
        if (offset as i64) < 0 {
            return Err(Errno::EINVAL.into());
        }
        self.read_at(fd, offset, to, len)
    }

    pub(super) fn read_at(&mut self, fd: i32, offset: u64, to: u64, len: u64) -> Answer {
        let len = len.min(TRANSFER_MAX);
        if !self.process.files.get(fd)?.readable {
            return Err(Errno::EBADF.into());
        }
        self.check_range(to, len)?;
        let mut done = 0;
        while done < len {
            let wanted = CHUNK.min(len - done);
            let moved = self.fetch(fd, offset + done, wanted).and_then(|bytes| {
                self.bytes_to(to + done, &bytes)?;
                Ok(bytes.len() as u64)
            });
            match moved {
                Ok(count) => done += count,
                Err(Stop::Errno(_)) if done > 0 => break,
                Err(stop) => return Err(stop),
            }
            if moved != Ok(wanted) {
                break;
            }
        }
        Ok(done)
    }

    /// Up to `len` bytes of the file at `offset`; fewer only at its end.
    pub(super) fn fetch(&mut self, fd: i32, offset: u64, len: u64) -> Result<Vec<u8>, Stop> {
        match self.process.files.get(fd)?.kind.clone() {
            Kind::Stdin => {
                let input = &self.process.files.stdin;
                let start = (offset as usize).min(input.len());
                Ok(input[start..input.len().min(start + len as usize)].to_vec())
            }
            Kind::Output(_) => Err(Errno::EBADF.into()),
            Kind::Device(Device::Null) => Ok(Vec::new()),
            Kind::Device(Device::Zero) => Ok(vec![0; len as usize]),
            Kind::Device(Device::Random) => {
                let mut bytes = vec![0; len as usize];
                self.process.random.fill(&mut bytes);
                Ok(bytes)
            }
            Kind::File { file, .. } => {
                self.process.files.write_back(file, self.mem)?;
                Ok(self.process.files.root.read(file, offset, len)?)
            }
            Kind::Pmem { name } => {
                let extent = self.pmem_extent(&name);
                let mut bytes = vec![0; len.min(extent.size_bytes.saturating_sub(offset)) as usize];
                let base = self.process.space.map().pmem_base;
                self.mem.read(base.plus(extent.offset_bytes + offset.min(extent.size_bytes)), &mut bytes);
                Ok(bytes)
            }
            Kind::Pipe { pipe } => self.take_from_pipe(fd, pipe, len),
            Kind::Socket { .. } => self.take_from_socket(fd, len),
            Kind::Event { .. } => self.take_events(fd, len),
            Kind::Timer(_) => self.take_expirations(fd, len),
            Kind::Signals { mask } => self.take_signals(fd, mask, len),
            Kind::Epoll(_) => Err(Errno::EINVAL.into()),
            Kind::Folder { .. } => Err(Errno::EISDIR.into()),
        }
    }

    pub(super) fn write(&mut self, fd: i32, from: u64, len: u64) -> Answer {
        let opened = self.process.files.get(fd)?;
        if opened.is_stream() {
            if !opened.writable {
                return Err(Errno::EBADF.into());
            }
            let bytes = self.bytes_from(from, len.min(TRANSFER_MAX))?;
            return self.write_stream(fd, &bytes);
        }
        let (offset, append) = (opened.offset, opened.flags & O_APPEND != 0);
        let offset = if append { self.size_of(fd)? } else { offset };
        let count = self.write_at(fd, offset, from, len)?;
        self.process.files.get_mut(fd)?.offset = offset + count;
        Ok(count)
    }

    pub(super) fn pwrite(&mut self, fd: i32, from: u64, len: u64, offset: u64) -> Answer {
        self.seekable(fd)?;
        if (offset as i64) < 0 {
            return Err(Errno::EINVAL.into());
        }
        self.write_at(fd, offset, from, len)
    }

    pub(super) fn write_at(&mut self, fd: i32, offset: u64, from: u64, len: u64) -> Answer {
        let len = len.min(TRANSFER_MAX);
        if !self.process.files.get(fd)?.writable {
            return Err(Errno::EBADF.into());
        }
        self.check_range(from, len)?;
        let mut done = 0;
        while done < len {
            let wanted = CHUNK.min(len - done);
            let moved = self.bytes_from(from + done, wanted).and_then(|bytes| self.put(fd, offset + done, &bytes));
            match moved {
                Ok(()) => done += wanted,
                Err(Stop::Errno(_)) if done > 0 => break,
                Err(stop) => return Err(stop),
            }
        }
        Ok(done)
    }

    pub(super) fn put(&mut self, fd: i32, offset: u64, bytes: &[u8]) -> Result<(), Stop> {
        match self.process.files.get(fd)?.kind.clone() {
            Kind::Output(stream) => self.sink.write(stream, bytes),
            Kind::Device(_) => {}
            Kind::File { file, .. } => {
                self.process.files.root.write(file, offset, bytes)?;
                if let Some(shared) = self.process.files.shared_of(file) {
                    shared.take_over(self.mem, offset, bytes);
                }
            }
            Kind::Pmem { name } => {
                let end = offset.checked_add(bytes.len() as u64).ok_or(Errno::EFBIG)?;
                if end > self.pmem_extent(&name).size_bytes {
                    self.resize_pmem(&name, end)?;
                }
                let base = self.process.space.map().pmem_base;
                self.mem.write(base.plus(self.pmem_extent(&name).offset_bytes + offset), bytes);
            }
            Kind::Stdin | Kind::Folder { .. } | Kind::Timer(_) | Kind::Signals { .. } | Kind::Epoll(_) => {
                return Err(Errno::EBADF.into());
            }
            // Neither has an offset, and a write may have to wait.
            Kind::Pipe { .. } | Kind::Socket { .. } | Kind::Event { .. } => return Err(Errno::EINVAL.into()),
        }
        Ok(())
    }

    /// Writes `bytes` to a pipe, a socket or an eventfd; how many it were.
    pub(super) fn write_stream(&mut self, fd: i32, bytes: &[u8]) -> Answer {
        match self.process.files.get(fd)?.kind {
            Kind::Pipe { pipe } => self.write_all(bytes, |call, bytes| call.put_into_pipe(fd, pipe, bytes)),
            Kind::Socket { .. } => self.write_all(bytes, |call, bytes| call.put_into_socket(fd, bytes, 0)),
            Kind::Event { .. } => self.add_events(fd, bytes),
            _ => Err(Errno::EBADF.into()),
        }
    }

    /// Puts all of `bytes` where each call of `put` puts some, and waits where there is no room. A call that is made
    /// again goes on where it was.
    pub(super) fn write_all(&mut self, bytes: &[u8], put: impl Fn(&mut Self, &[u8]) -> Answer) -> Answer {
        let done = self.thread().repeated.map_or(0, |repeated| repeated.done);
        let mut done = done.min(bytes.len() as u64);
        loop {
            match put(self, &bytes[done as usize..]) {
                Ok(put) => done += put,
                Err(waits @ Stop::WaitForFiles { .. }) => {
                    self.thread().repeated.get_or_insert_default().done = done;
                    return Err(waits);
                }
                Err(Stop::Errno(_)) if done > 0 => return Ok(done),
                Err(stop) => return Err(stop),
            }
            if done == bytes.len() as u64 {
                return Ok(done);
            }
        }
    }

    pub(super) fn lseek(&mut self, fd: i32, distance: i64, whence: u64) -> Answer {
        self.seekable(fd)?;
        let start = match whence {
            0 => 0,
            1 => self.process.files.get(fd)?.offset,
            2 => self.size_of(fd)?,
            _ => return Err(Errno::EINVAL.into()),
        };
        let offset = (start as i64).checked_add(distance).filter(|&o| o >= 0).ok_or(Errno::EINVAL)? as u64;
        let opened = self.process.files.get_mut(fd)?;
        if let Kind::Folder { entries, .. } = &mut opened.kind
            && offset == 0
        {
            *entries = None;
        }
        opened.offset = offset;
        Ok(offset)
    }

    pub(super) fn seekable(&self, fd: i32) -> Result<(), Stop> {
        match self.process.files.get(fd)?.kind {
            Kind::Stdin | Kind::Output(_) | Kind::Pipe { .. } | Kind::Socket { .. } => Err(Errno::ESPIPE.into()),
            Kind::Event { .. } | Kind::Timer(_) | Kind::Signals { .. } | Kind::Epoll(_) => Err(Errno::ESPIPE.into()),
            _ => Ok(()),
        }
    }

    /// The length of the file.
    pub(super) fn size_of(&self, fd: i32) -> Result<u64, Stop> {
        match &self.process.files.get(fd)?.kind {
            &Kind::File { file, .. } => Ok(self.process.files.root.file(file).size_bytes),
            Kind::Pmem { name } => Ok(self.pmem_extent(name).size_bytes),
            _ => Ok(0),
        }
    }

    pub(super) fn close(&mut self, fd: i32) -> Answer {
        self.process.files.close(fd)?;
        Ok(0)
    }

    pub(super) fn dup(&mut self, fd: i32) -> Answer {
        self.dup_from(fd, 0, false)
    }

    fn dup_from(&mut self, fd: i32, lowest: i32, close_on_exec: bool) -> Answer {
        self.process.files.get(fd)?;
        let to = self.process.files.free_from(lowest)?;
        self.process.files.duplicate(fd, to, close_on_exec)?;
        Ok(to as u64)
    }

    pub(super) fn dup3(&mut self, from: i32, to: i32, flags: u64) -> Answer {
        if from == to || flags & !O_CLOEXEC != 0 {
            return Err(Errno::EINVAL.into());
        }
        if !(0..self.process.files.descriptors_max).contains(&to) {
            return Err(Errno::EBADF.into());
        }
        self.process.files.duplicate(from, to, flags & O_CLOEXEC != 0)?;
        Ok(to as u64)
    }

    pub(super) fn fcntl(&mut self, fd: i32, command: u64, argument: u64) -> Answer {
        const DUPFD: u64 = 0;
        const GETFD: u64 = 1;
        const SETFD: u64 = 2;
        const GETFL: u64 = 3;
        const SETFL: u64 = 4;
        const GETLK: u64 = 5;
        const SETLK: u64 = 6;
        const SETLKW: u64 = 7;
        const OFD_GETLK: u64 = 36;
        const OFD_SETLK: u64 = 37;
        const OFD_SETLKW: u64 = 38;
        const DUPFD_CLOEXEC: u64 = 1030;
        let close_on_exec = self.process.files.close_on_exec(fd)?;
        match command {
            DUPFD | DUPFD_CLOEXEC => {
                let lowest = i32::try_from(argument)
                    .ok()
                    .filter(|&l| l < self.process.files.descriptors_max)
                    .ok_or(Errno::EINVAL)?;
                self.dup_from(fd, lowest, command == DUPFD_CLOEXEC)
            }
            GETFD => Ok(u64::from(close_on_exec)),
            SETFD => {
                self.process.files.set_close_on_exec(fd, argument & 1 != 0)?;
                Ok(0)
            }
            GETFL => Ok(self.process.files.get(fd)?.flags),
            SETFL => {
                let opened = self.process.files.get_mut(fd)?;
                opened.flags = opened.flags & !SETTABLE | argument & SETTABLE;
                Ok(0)
            }
            GETLK | OFD_GETLK => {
                // No one else holds a lock: F_UNLCK in `struct flock`.
                self.bytes_to(argument, &2u16.to_le_bytes())?;
                Ok(0)
            }
            // One process alone always gets its locks.
            SETLK | SETLKW | OFD_SETLK | OFD_SETLKW => Ok(0),
            // Signals at events (SETOWN, SETSIG), leases, seals, sizes of pipes: as in a kernel without them.
            _ => Err(Errno::EINVAL.into()),
        }
    }

    /// No file is a terminal or another device that would take commands; what is left are flags, and the bytes that wait.
    pub(super) fn ioctl(&mut self, fd: i32, command: u64, argument: u64) -> Answer {
        const DO_NOT_WAIT: u32 = 0x5421;
        const BYTES_THAT_WAIT: u32 = 0x541b;
        const CLOSE_ON_EXEC: u32 = 0x5451;
        const KEEP_ON_EXEC: u32 = 0x5450;
        let opened = self.process.files.get(fd)?;
        match command as u32 {
            CLOSE_ON_EXEC | KEEP_ON_EXEC => {
                self.process.files.set_close_on_exec(fd, command as u32 == CLOSE_ON_EXEC)?;
            }
            DO_NOT_WAIT => {
                let wanted = self.word_from(argument)? != 0;
                let opened = self.process.files.get_mut(fd)?;
                let other_flags = opened.flags & !O_NONBLOCK;
                opened.flags = if wanted { other_flags | O_NONBLOCK } else { other_flags };
            }
            BYTES_THAT_WAIT if opened.is_stream() && opened.readable => {
                let waiting = match opened.kind {
                    Kind::Pipe { pipe } => self.process.files.pipe(pipe).len(),
                    Kind::Socket { link, side } => self.process.files.link(link).held_bytes(side),
                    _ => return Err(Errno::ENOTTY.into()),
                };
                self.bytes_to(argument, &(waiting as u32).to_le_bytes())?;
            }
            _ => return Err(Errno::ENOTTY.into()),
        }
        Ok(0)
    }

    /// Closes the descriptors from `first` to `last`, or marks them to be closed at `execve`.
    pub(super) fn close_range(&mut self, first: u64, last: u64, flags: u64) -> Answer {
        const UNSHARE: u64 = 2;
        const CLOSE_ON_EXEC: u64 = 4;
        let (first, last) = (first as u32, last as u32);
        if first > last || flags & !(UNSHARE | CLOSE_ON_EXEC) != 0 {
            return Err(Errno::EINVAL.into());
        }
        let within = |fd: u32| i32::try_from(fd).unwrap_or(i32::MAX);
        for fd in self.process.files.descriptors_in(within(first), within(last)) {
            if flags & CLOSE_ON_EXEC != 0 {
                self.process.files.set_close_on_exec(fd, true)?;
            } else {
                self.process.files.close(fd)?;
            }
        }
        Ok(0)
    }

    /// A file in memory that no path names.
    pub(super) fn memfd_create(&mut self, name: u64, flags: u64) -> Answer {
        const CLOSE_ON_EXEC: u64 = 1;
        /// ALLOW_SEALING, NOEXEC_SEAL, EXEC: there are no seals, so none is ever there.
        const WITHOUT_EFFECT: u64 = 2 | 8 | 0x10;
        const NAME_MAX_BYTES: usize = 249;
        let name = self.text_from(name)?;
        if name.len() > NAME_MAX_BYTES || flags & !(CLOSE_ON_EXEC | WITHOUT_EFFECT) != 0 {
            return Err(Errno::EINVAL.into());
        }
        let file = self.process.files.root.add_unnamed();
        let kind = Kind::File { file, path: format!("/memfd:{name}") };
        let opened = Opened::new(kind, true, true, READ_WRITE);
        Ok(self.process.files.add(opened, flags & CLOSE_ON_EXEC != 0)? as u64)
    }

    pub(super) fn flock(&mut self, fd: i32) -> Answer {
        // One process alone always gets its locks.
        self.process.files.get(fd)?;
        Ok(0)
    }

    pub(super) fn ftruncate(&mut self, fd: i32, size_bytes: i64) -> Answer {
        let size_bytes = u64::try_from(size_bytes).map_err(|_| Errno::EINVAL)?;
        let opened = self.process.files.get(fd)?;
        if !opened.writable {
            return Err(Errno::EINVAL.into());
        }
        match opened.kind.clone() {
            Kind::File { file, .. } => self.resize_file(file, size_bytes)?,
            Kind::Pmem { name } => self.resize_pmem(&name, size_bytes)?,
            _ => return Err(Errno::EINVAL.into()),
        }
        Ok(0)
    }

    fn resize_file(&mut self, file: FileId, size_bytes: u64) -> Result<(), Stop> {
        self.process.files.write_back(file, self.mem)?;
        Ok(self.process.files.root.resize(file, size_bytes)?)
    }

    pub(super) fn fallocate(&mut self, fd: i32, mode: u64, offset: i64, len: i64) -> Answer {
        if offset < 0 || len <= 0 {
            return Err(Errno::EINVAL.into());
        }
        if mode != 0 {
            return Err(Errno::EOPNOTSUPP.into());
        }
        if !self.process.files.get(fd)?.writable {
            return Err(Errno::EBADF.into());
        }
        let end = offset.checked_add(len).ok_or(Errno::EFBIG)?;
        if end as u64 > self.size_of(fd)? { self.ftruncate(fd, end) } else { Ok(0) }
    }

    pub(super) fn fsync(&mut self, fd: i32) -> Answer {
        match self.process.files.get(fd)?.kind.clone() {
            Kind::File { file, .. } => {
                self.process.files.write_back(file, self.mem)?;
                self.process.files.root.sync(file)?;
                Ok(0)
            }
            Kind::Pmem { name } => {
                self.persist_file(&name);
                Ok(0)
            }
            Kind::Folder { .. } => Ok(0),
            _ => Err(Errno::EINVAL.into()),
        }
    }

    /// Begins to write a part of a file, without a promise.
    pub(super) fn sync_file_range(&mut self, fd: i32) -> Answer {
        match self.process.files.get(fd)?.kind.clone() {
            Kind::File { file, .. } => {
                self.process.files.write_back(file, self.mem)?;
                Ok(0)
            }
            Kind::Pmem { .. } | Kind::Folder { .. } => Ok(0),
            _ => Err(Errno::ESPIPE.into()),
        }
    }

    /// Makes the contents of a file under `/pmem/` durable.
    pub(super) fn persist_file(&mut self, name: &str) {
        let extent = self.pmem_extent(name);
        let base = self.process.space.map().pmem_base;
        self.mem.persist(base.plus(extent.offset_bytes), extent.size_bytes);
    }

    /// The extent of an open file under `/pmem/`.
    pub(super) fn pmem_extent(&self, name: &str) -> Extent {
        self.process.pool.get(name).expect("a file under /pmem/ stays while it is open")
    }

    /// Changes the size of a file under `/pmem/` and clears the bytes that it loses.
    pub(super) fn resize_pmem(&mut self, name: &str, size_bytes: u64) -> Result<(), Stop> {
        let old = self.pmem_extent(name);
        if size_bytes < old.size_bytes {
            let kept = old.offset_bytes + size_bytes.next_multiple_of(PAGE_BYTES);
            if self.process.space.maps_pmem(kept, old.end_bytes()) {
                return Err(Errno::EBUSY.into());
            }
        }
        let lost = self.process.pool.resize(name, size_bytes).map_err(pmem_errno)?;
        self.clear_pmem(lost);
        Ok(())
    }

    /// Zeroes a range of the pmem data area.
    pub(super) fn clear_pmem(&mut self, range: std::ops::Range<u64>) {
        let base = self.process.space.map().pmem_base;
        let mut at = range.start;
        while at < range.end {
            let end = range.end.min((at / PAGE_BYTES + 1) * PAGE_BYTES);
            self.mem.write(base.plus(at), &[0; PAGE_BYTES as usize][..(end - at) as usize]);
            at = end;
        }
    }
}

pub(super) fn pmem_errno(error: PmemError) -> Errno {
    match error {
        PmemError::NotFound => Errno::ENOENT,
        PmemError::NoSpace => Errno::ENOSPC,
    }
}
