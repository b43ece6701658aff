//! Rights, owners, times, links and sizes of files by path.
//!
//! The program's changes of these are made to the files of the host where that is possible; what `stat` shows does not
//! follow the host (see `stat.rs`).

use super::paths::PathTarget;
use super::{Answer, Call, Stop};
use crate::files::Kind;
use crate::stack::USER_ID;
use ::syscalls::Errno;
use durasim_types::PAGE_BYTES;

const AT_FDCWD: i32 = -100;
const AT_SYMLINK_NOFOLLOW: u64 = 0x100;
const AT_EMPTY_PATH: u64 = 0x1000;

impl Call<'_> {
    pub(super) fn fchmod(&mut self, fd: i32, mode: u64) -> Answer {
        if let Kind::File { file, .. } = self.process.files.get(fd)?.kind {
            self.process.files.root.set_rights_of(file, (mode & 0o777) as u32)?;
        }
        Ok(0)
    }

    pub(super) fn fchmodat(&mut self, folder_fd: i32, path: u64, mode: u64) -> Answer {
        let place = self.place_at(folder_fd, path)?;
        if let PathTarget::Host(path) = &place {
            if let Some(file) = self.process.files.root.set_rights(path, (mode & 0o777) as u32)? {
                self.process.files.release_unused(file);
            }
        } else {
            self.stat_of(&place, true)?;
        }
        Ok(0)
    }

    pub(super) fn fchown(&mut self, fd: i32, user: u64, group: u64) -> Answer {
        self.process.files.get(fd)?;
        check_owner(user, group)
    }

    pub(super) fn fchownat(&mut self, folder_fd: i32, path: u64, user: u64, group: u64, flags: u64) -> Answer {
        self.check_exists(folder_fd, path, flags)?;
        check_owner(user, group)
    }

    /// The program sees no times of files, so there are none to be set.
    pub(super) fn utimensat(&mut self, folder_fd: i32, path: u64, times: u64, flags: u64) -> Answer {
        if times != 0 {
            self.words_from::<4>(times)?;
        }
        if path == 0 {
            self.process.files.get(folder_fd)?;
        } else {
            self.check_exists(folder_fd, path, flags)?;
        }
        Ok(0)
    }

    fn check_exists(&mut self, folder_fd: i32, path: u64, flags: u64) -> Result<(), Stop> {
        let path = self.text_from(path)?;
        if path.is_empty() && flags & AT_EMPTY_PATH != 0 {
            self.process.files.get(folder_fd)?;
            return Ok(());
        }
        let place = self.resolve(folder_fd, &path)?;
        self.stat_of(&place, flags & AT_SYMLINK_NOFOLLOW == 0).map(drop)
    }

    pub(super) fn truncate(&mut self, path: u64, size_bytes: i64) -> Answer {
        let size_bytes = u64::try_from(size_bytes).map_err(|_| Errno::EINVAL)?;
        let place = self.place_at(AT_FDCWD, path)?;
        if self.stat_of(&place, true)?.is_folder() {
            return Err(Errno::EISDIR.into());
        }
        match place {
            PathTarget::Host(path) => {
                // Stores through mappings come first: the new size cuts them off.
                self.process.files.write_back_all(self.mem);
                let file = self.process.files.root.truncate(&path, size_bytes)?;
                self.process.files.release_unused(file);
            }
            PathTarget::Pmem(name) => self.resize_pmem(&name, size_bytes)?,
            _ => return Err(Errno::EINVAL.into()),
        }
        Ok(0)
    }

    pub(super) fn linkat(&mut self, from_fd: i32, from: u64, to_fd: i32, to: u64) -> Answer {
        match (self.place_at(from_fd, from)?, self.place_at(to_fd, to)?) {
            (PathTarget::Host(from), PathTarget::Host(to)) => {
                self.process.files.root.link(&from, &to)?;
                Ok(0)
            }
            (PathTarget::Pmem(_), PathTarget::Pmem(_)) => Err(Errno::EPERM.into()),
            _ => Err(Errno::EXDEV.into()),
        }
    }

    /// Links that leave the root folder are not made.
    pub(super) fn symlinkat(&mut self, target: u64, folder_fd: i32, path: u64) -> Answer {
        let target = self.text_from(target)?;
        let PathTarget::Host(path) = self.place_at(folder_fd, path)? else { return Err(Errno::EPERM.into()) };
        self.process.files.root.symlink(&target, &path)?;
        Ok(0)
    }

    pub(super) fn fstatfs(&mut self, fd: i32, to: u64) -> Answer {
        let pmem = match &self.process.files.get(fd)?.kind {
            Kind::Pmem { .. } => true,
            Kind::Folder { path, .. } => path == "/pmem",
            _ => false,
        };
        self.file_system(pmem, to)
    }

    pub(super) fn statfs(&mut self, path: u64, to: u64) -> Answer {
        let place = self.place_at(AT_FDCWD, path)?;
        self.stat_of(&place, true)?;
        self.file_system(matches!(place, PathTarget::Pmem(_) | PathTarget::PmemFolder), to)
    }

    /// `struct statfs`. The pool is shown as it is; of the host's disk the program learns nothing, so it sees a file
    /// system of one TB, all of it free.
    fn file_system(&mut self, pmem: bool, to: u64) -> Answer {
        const EXT4: u64 = 0xef53;
        const NAME_BYTES: u64 = 255;
        let (blocks, free) = if pmem {
            let pool = &self.process.pool;
            let used: u64 = pool.files().map(|(_, extent)| extent.end_bytes() - extent.offset_bytes).sum();
            (pool.capacity_bytes() / PAGE_BYTES, (pool.capacity_bytes() - used) / PAGE_BYTES)
        } else {
            let all = (1 << 40) / PAGE_BYTES;
            (all, all)
        };
        let mut words = [0; 15];
        words[..5].copy_from_slice(&[EXT4, PAGE_BYTES, blocks, free, free]);
        words[8..10].copy_from_slice(&[NAME_BYTES, PAGE_BYTES]);
        self.words_to(to, &words)?;
        Ok(0)
    }

    /// Everything written so far reaches the files of the host, and all files under `/pmem/` are durable.
    pub(super) fn sync(&mut self) -> Answer {
        let names: Vec<String> = self.process.pool.files().map(|(name, _)| name.to_owned()).collect();
        for name in names {
            self.persist_file(&name);
        }
        self.process.files.write_back_all(self.mem);
        Ok(0)
    }
}

/// A program owns its files and may say so; it cannot give them away.
fn check_owner(user: u64, group: u64) -> Answer {
    const UNCHANGED: u32 = u32::MAX;
    let own = |id: u64| [UNCHANGED, USER_ID as u32].contains(&(id as u32));
    if own(user) && own(group) { Ok(0) } else { Err(Errno::EPERM.into()) }
}
