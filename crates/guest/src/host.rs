//! Files of the host: opening inside the root folder only, and shared mappings of them.

use crate::PhysMemory;
use ::syscalls::Errno;
use cap_std::fs::{Dir, OpenOptions};
use durasim_types::{PAGE_BYTES, PhysAddr};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;

/// An open file of the host. Offsets are kept by the process, never by the host.
#[derive(Clone, Debug)]
pub(crate) struct HostFile {
    pub(crate) file: Arc<File>,
    /// Device and inode on the host: tells whether two opened files are the same. Never shown to the program.
    pub(crate) key: (u64, u64),
}

/// What a program asks of `openat`, decoded.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OpenMode {
    pub(crate) write: bool,
    pub(crate) create: bool,
    pub(crate) exclusive: bool,
    pub(crate) truncate: bool,
}

/// Opens the regular file `path`, relative to `root` and confined to it.
pub(crate) fn open(root: &Dir, path: &str, mode: OpenMode) -> io::Result<HostFile> {
    let mut options = OpenOptions::new();
    // Files opened for writing are readable as well: a shared mapping has to load its pages.
    options.read(true).write(mode.write || mode.truncate);
    options.truncate(mode.truncate);
    if mode.create && mode.exclusive {
        options.create_new(true);
    } else {
        // The host refuses to create through a descriptor that cannot write; O_RDONLY | O_CREAT is legal, though rare.
        options.create(mode.create).write(mode.write || mode.truncate || mode.create);
    }
    let file = root.open_with(path, &options)?.into_std();
    let metadata = file.metadata()?;
    Ok(HostFile { key: (metadata.dev(), metadata.ino()), file: Arc::new(file) })
}

/// The Linux error for an error of the host. Found by kind first: the numbers of other hosts differ.
pub(crate) fn errno(error: &io::Error) -> Errno {
    use io::ErrorKind as Kind;
    match error.kind() {
        Kind::NotFound => Errno::ENOENT,
        Kind::AlreadyExists => Errno::EEXIST,
        Kind::PermissionDenied => Errno::EACCES,
        Kind::NotADirectory => Errno::ENOTDIR,
        Kind::IsADirectory => Errno::EISDIR,
        Kind::DirectoryNotEmpty => Errno::ENOTEMPTY,
        Kind::StorageFull => Errno::ENOSPC,
        Kind::QuotaExceeded => Errno::EDQUOT,
        Kind::FileTooLarge => Errno::EFBIG,
        Kind::ReadOnlyFilesystem => Errno::EROFS,
        Kind::InvalidInput | Kind::InvalidFilename => Errno::EINVAL,
        Kind::ResourceBusy => Errno::EBUSY,
        Kind::CrossesDevices => Errno::EXDEV,
        _ => Errno::EIO,
    }
}

/// Reads up to `len` bytes at `offset`; fewer only at the end of the file.
pub(crate) fn read_at(file: &File, offset: u64, len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    let mut done = 0;
    while done < len {
        match file.read_at(&mut bytes[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    bytes.truncate(done);
    Ok(bytes)
}

/// A file of the host of which pages are mapped with MAP_SHARED. All its mappings share one set of frames.
#[derive(Clone, Debug)]
pub(crate) struct SharedFile {
    pub(crate) host: HostFile,
    /// Frames by page of the file.
    pub(crate) frames: BTreeMap<u64, PhysAddr>,
    /// Whether the file was opened for writing: then its pages are written back.
    pub(crate) writable: bool,
}

impl SharedFile {
    /// Writes the pages back, up to the end that the file has.
    pub(crate) fn write_back(&self, mem: &mut dyn PhysMemory) -> io::Result<()> {
        if !self.writable {
            return Ok(());
        }
        let size_bytes = self.host.file.metadata()?.len();
        let mut page = [0; PAGE_BYTES as usize];
        for (&number, &frame) in &self.frames {
            let start = number * PAGE_BYTES;
            let len = size_bytes.saturating_sub(start).min(PAGE_BYTES) as usize;
            mem.read(frame, &mut page);
            self.host.file.write_all_at(&page[..len], start)?;
        }
        Ok(())
    }

    /// The file was emptied: its pages read as zero.
    pub(crate) fn clear(&self, mem: &mut dyn PhysMemory) {
        for &frame in self.frames.values() {
            mem.write(frame, &[0; PAGE_BYTES as usize]);
        }
    }

    /// Brings bytes that were written to the file at `offset` into the frames that hold them.
    pub(crate) fn take_over(&self, mem: &mut dyn PhysMemory, offset: u64, bytes: &[u8]) {
        for (&number, &frame) in &self.frames {
            let (start, end) = (number * PAGE_BYTES, (number + 1) * PAGE_BYTES);
            let (from, to) = (offset.max(start), (offset + bytes.len() as u64).min(end));
            if from < to {
                mem.write(frame.plus(from - start), &bytes[(from - offset) as usize..(to - offset) as usize]);
            }
        }
    }
}
