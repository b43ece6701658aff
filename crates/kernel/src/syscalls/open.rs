//! System calls that take a path.

use super::files::{O_CLOEXEC, pmem_errno};
use super::paths::PathTarget;
use super::{Answer, Call, Stop};
use crate::files::{Kind, Opened};
use crate::folder::{Node, OpenMode, Opening};
use ::syscalls::Errno;

const O_ACCESS: u64 = 3;
const O_CREAT: u64 = 0x40;
const O_EXCL: u64 = 0x80;
const O_TRUNC: u64 = 0x200;
const O_DIRECTORY: u64 = 0x1_0000;
const O_NOFOLLOW: u64 = 0x2_0000;
const O_PATH: u64 = 0x20_0000;
const O_TMPFILE: u64 = 0x40_0000;
/// Flags that only matter while opening; F_GETFL does not show them.
const OPENING_ONLY: u64 = O_CREAT | O_EXCL | 0x100 | O_TRUNC | O_CLOEXEC;

impl Call<'_> {
    pub(super) fn openat(&mut self, folder_fd: i32, path: u64, flags: u64, _mode: u64) -> Answer {
        if flags & (O_PATH | O_TMPFILE) != 0 {
            return Err(Errno::EOPNOTSUPP.into());
        }
        let place = self.place_at(folder_fd, path)?;
        let (readable, writable) = match flags & O_ACCESS {
            0 => (true, false),
            1 => (false, true),
            2 => (true, true),
            _ => return Err(Errno::EINVAL.into()),
        };
        let kind = self.open_place(place, flags, writable)?;
        if flags & O_DIRECTORY != 0 && !matches!(kind, Kind::Folder { .. }) {
            return Err(Errno::ENOTDIR.into());
        }
        if matches!(kind, Kind::Folder { .. }) && (writable || flags & O_CREAT != 0) {
            return Err(Errno::EISDIR.into());
        }
        let opened = Opened::new(kind, readable, writable, flags & !OPENING_ONLY);
        Ok(self.process.files.add(opened, flags & O_CLOEXEC != 0)? as u64)
    }

    fn open_place(&mut self, place: PathTarget, flags: u64, writable: bool) -> Result<Kind, Stop> {
        let mode = OpenMode {
            write: writable,
            create: flags & O_CREAT != 0,
            exclusive: flags & O_EXCL != 0,
            truncate: flags & O_TRUNC != 0 && writable,
        };
        match place {
            PathTarget::PmemFolder => Ok(Kind::Folder { path: "/pmem".into(), entries: None }),
            PathTarget::Pmem(name) => {
                let exists = self.process.pool.get(&name).is_some();
                match (exists, mode.create) {
                    (true, true) if mode.exclusive => return Err(Errno::EEXIST.into()),
                    (true, _) if mode.truncate => self.resize_pmem(&name, 0)?,
                    (true, _) => {}
                    (false, true) => self.process.pool.create(&name),
                    (false, false) => return Err(Errno::ENOENT.into()),
                }
                Ok(Kind::Pmem { name })
            }
            PathTarget::Device(device) => Ok(Kind::Device(device)),
            PathTarget::Executable => Err(Errno::EACCES.into()),
            PathTarget::Host(path) => self.open_file(path, mode, flags & O_NOFOLLOW != 0),
        }
    }

    fn open_file(&mut self, path: String, mode: OpenMode, stay: bool) -> Result<Kind, Stop> {
        let Opening::File(file) = self.process.files.root.open(&path, mode, stay)? else {
            return Ok(Kind::Folder { path, entries: None });
        };
        if mode.truncate
            && let Some(shared) = self.process.files.shared_of(file)
        {
            shared.clear(self.mem);
        }
        Ok(Kind::File { file, path })
    }

    pub(super) fn faccessat(&mut self, folder_fd: i32, path: u64, mode: u64) -> Answer {
        const EXECUTE: u64 = 1;
        let place = self.place_at(folder_fd, path)?;
        let found = self.stat_of(&place, true)?;
        if mode & EXECUTE != 0 && !found.executable() {
            return Err(Errno::EACCES.into());
        }
        Ok(0)
    }

    pub(super) fn readlinkat(&mut self, folder_fd: i32, path: u64, to: u64, len: u64) -> Answer {
        let target = match self.place_at(folder_fd, path)? {
            PathTarget::Executable => self.process.exe_link.clone(),
            PathTarget::Host(path) => match self.process.files.root.resolve(&path, false)?.1 {
                Node::Symlink(target) => target,
                Node::Absent => return Err(Errno::ENOENT.into()),
                _ => return Err(Errno::EINVAL.into()),
            },
            place => {
                self.stat_of(&place, false)?;
                return Err(Errno::EINVAL.into());
            }
        };
        let bytes = &target.as_bytes()[..target.len().min(len as usize)];
        self.bytes_to(to, bytes)?;
        Ok(bytes.len() as u64)
    }

    pub(super) fn unlinkat(&mut self, folder_fd: i32, path: u64, flags: u64) -> Answer {
        const REMOVE_FOLDER: u64 = 0x200;
        let folder = flags & REMOVE_FOLDER != 0;
        match self.place_at(folder_fd, path)? {
            PathTarget::Host(path) => {
                let files = &mut self.process.files;
                if folder {
                    files.root.remove_folder(&path)?;
                } else if let Some(file) = files.root.unlink(&path)? {
                    files.release_unused(file);
                }
                Ok(0)
            }
            PathTarget::Pmem(name) if !folder => {
                self.remove_pmem(&name)?;
                Ok(0)
            }
            PathTarget::Pmem(_) => Err(Errno::ENOTDIR.into()),
            _ => Err(Errno::EPERM.into()),
        }
    }

    /// Removes a file under `/pmem/`. Its pages would be free at once, so it must not be in use.
    fn remove_pmem(&mut self, name: &str) -> Result<(), Stop> {
        let extent = self.process.pool.get(name).ok_or(Errno::ENOENT)?;
        let mapped = self.process.space.maps_pmem(extent.offset_bytes, extent.end_bytes());
        if mapped || self.process.files.has_pmem_open(name) {
            return Err(Errno::EBUSY.into());
        }
        let lost = self.process.pool.remove(name).map_err(pmem_errno)?;
        self.clear_pmem(lost);
        Ok(())
    }

    pub(super) fn mkdirat(&mut self, folder_fd: i32, path: u64) -> Answer {
        match self.place_at(folder_fd, path)? {
            PathTarget::Host(path) => {
                self.process.files.root.make_folder(&path)?;
                Ok(0)
            }
            PathTarget::PmemFolder => Err(Errno::EEXIST.into()),
            _ => Err(Errno::EPERM.into()),
        }
    }

    pub(super) fn renameat2(&mut self, from_fd: i32, from: u64, to_fd: i32, to: u64, flags: u64) -> Answer {
        const NO_REPLACE: u64 = 1;
        if flags & !NO_REPLACE != 0 {
            return Err(Errno::EINVAL.into());
        }
        let (from, to) = (self.place_at(from_fd, from)?, self.place_at(to_fd, to)?);
        if from == to {
            self.stat_of(&from, false)?;
            return Ok(0);
        }
        if flags & NO_REPLACE != 0 && self.stat_of(&to, false).is_ok() {
            return Err(Errno::EEXIST.into());
        }
        match (from, to) {
            (PathTarget::Host(from), PathTarget::Host(to)) => {
                if let Some(file) = self.process.files.root.rename(&from, &to)? {
                    self.process.files.release_unused(file);
                }
            }
            (PathTarget::Pmem(from), PathTarget::Pmem(to)) => {
                self.process.pool.get(&from).ok_or(Errno::ENOENT)?;
                if self.process.pool.get(&to).is_some() {
                    self.remove_pmem(&to)?;
                }
                self.process.pool.rename(&from, &to).map_err(pmem_errno)?;
                self.process.files.rename_pmem(&from, &to);
            }
            _ => return Err(Errno::EXDEV.into()),
        }
        Ok(0)
    }

    pub(super) fn getcwd(&mut self, to: u64, len: u64) -> Answer {
        let mut bytes = self.process.files.cwd.clone().into_bytes();
        bytes.push(0);
        if (bytes.len() as u64) > len {
            return Err(Errno::ERANGE.into());
        }
        self.bytes_to(to, &bytes)?;
        Ok(bytes.len() as u64)
    }

    pub(super) fn chdir(&mut self, path: u64) -> Answer {
        const AT_FDCWD: i32 = -100;
        let place = self.place_at(AT_FDCWD, path)?;
        if !self.stat_of(&place, true)?.is_folder() {
            return Err(Errno::ENOTDIR.into());
        }
        self.process.files.cwd = match place {
            PathTarget::Host(path) => path,
            _ => "/pmem".into(),
        };
        Ok(0)
    }

    pub(super) fn fchdir(&mut self, fd: i32) -> Answer {
        let Kind::Folder { path, .. } = self.process.files.get(fd)?.kind.clone() else {
            return Err(Errno::ENOTDIR.into());
        };
        self.process.files.cwd = path;
        Ok(0)
    }

    /// Files of the host are created with the rights that the host gives; the program sees a mask all the same.
    pub(super) fn umask(&mut self, mask: u64) -> Answer {
        let before = std::mem::replace(&mut self.process.files.creation_mask, mask & 0o777);
        Ok(before)
    }
}
