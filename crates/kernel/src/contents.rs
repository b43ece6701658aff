//! The contents of a file, as one process sees it.

use crate::host::{FileKey, HostFile};
use durasim_types::{PAGE_BYTES, Pages, PhysAddr};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// The most bytes of a file, as ext4 has it.
const FILE_MAX_BYTES: u64 = 1 << 44;
/// Bytes read from the host at a time.
const CHUNK_BYTES: u64 = 1 << 20;

/// Rights of files that programs create.
const CREATED_MODE: u32 = 0o644;
/// The right of the owner to write.
const WRITABLE_MODE: u32 = 0o200;

/// The pages that the process has written, over a file of the host where it has not.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Contents {
    pub(crate) size_bytes: u64,
    /// The bits of the rights.
    pub(crate) mode: u32,
    /// Whether the program changed it.
    pub(crate) changed: bool,
    /// The paths that name it.
    pub(crate) names: Vec<String>,
    /// The place on the host.
    pub(crate) host_path: Option<String>,
    pages: Pages,
    /// The file of the host, which shows below `base_bytes` where no page of `pages` was written.
    #[serde(skip)]
    base: Option<Arc<HostFile>>,
    #[serde(skip)]
    base_bytes: u64,
    /// The host file that changes go to as well, if the process writes to the host and has the file open for writing.
    #[serde(skip)]
    pub(crate) writer: Option<Arc<File>>,
}

/// Whether a change also changes the host, and who sees that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteScope {
    /// Changes stay in memory.
    Memory,
    /// Changes go to the host, without another process that looks at it.
    Host,
    /// Changes go to the host, where other processes have to see the earlier contents.
    SharedHost,
}

impl Contents {
    /// A new, empty file.
    pub(crate) fn empty() -> Self {
        Contents {
            size_bytes: 0,
            mode: CREATED_MODE,
            changed: true,
            names: Vec::new(),
            host_path: None,
            pages: Pages::new(PhysAddr(0), FILE_MAX_BYTES),
            base: None,
            base_bytes: 0,
            writer: None,
        }
    }

    /// The file that the host has at `path`.
    pub(crate) fn of(base: Arc<HostFile>, path: String) -> Self {
        Contents {
            size_bytes: base.size_bytes(),
            mode: base.mode(),
            changed: false,
            host_path: Some(path),
            base_bytes: base.size_bytes(),
            base: Some(base),
            ..Contents::empty()
        }
    }

    /// The identity of the file of the host below.
    pub(crate) fn key(&self) -> Option<FileKey> {
        self.base.as_ref().map(|base| base.key())
    }

    /// Whether the owner may write to it.
    pub(crate) fn is_writable(&self) -> bool {
        self.mode & WRITABLE_MODE != 0
    }

    /// Up to `len` bytes at `offset`; fewer only at the end.
    pub(crate) fn read(&self, offset: u64, len: u64) -> io::Result<Vec<u8>> {
        let end = self.size_bytes.min(offset.saturating_add(len));
        let mut bytes = vec![0; end.saturating_sub(offset) as usize];
        if bytes.is_empty() {
            return Ok(bytes);
        }
        if let Some(base) = self.base.as_ref().filter(|_| offset < self.base_bytes) {
            base.read(offset, &mut bytes[..(self.base_bytes.min(end) - offset) as usize])?;
        }
        for number in offset / PAGE_BYTES..end.div_ceil(PAGE_BYTES) {
            let (start, stop) = (offset.max(number * PAGE_BYTES), end.min((number + 1) * PAGE_BYTES));
            if self.pages.is_touched(PhysAddr(start)) {
                self.pages.read(PhysAddr(start), &mut bytes[(start - offset) as usize..(stop - offset) as usize]);
            }
        }
        Ok(bytes)
    }

    /// Writes `bytes` at `offset`.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8], reach: WriteScope) -> io::Result<()> {
        let end = offset.checked_add(bytes.len() as u64).filter(|&end| end <= FILE_MAX_BYTES);
        let end = end.ok_or(io::ErrorKind::FileTooLarge)?;
        if bytes.is_empty() {
            return Ok(());
        }
        self.take_over(offset..end, reach)?;
        if let (Some(writer), true) = (&self.writer, reach != WriteScope::Memory) {
            writer.write_all_at(bytes, offset)?;
        }
        self.pages.write(PhysAddr(offset), bytes);
        self.size_bytes = self.size_bytes.max(end);
        self.changed = true;
        Ok(())
    }

    /// Makes pages of the host's file that are about to be written the process's own.
    fn take_over(&mut self, range: Range<u64>, reach: WriteScope) -> io::Result<()> {
        let Some(base) = &self.base else { return Ok(()) };
        let pages = range.start / PAGE_BYTES..range.end.min(self.base_bytes).div_ceil(PAGE_BYTES);
        if reach == WriteScope::SharedHost {
            base.keep(pages.clone())?;
        }
        for number in pages {
            let start = number * PAGE_BYTES;
            let overwritten = range.start <= start && range.end >= start + PAGE_BYTES;
            if !overwritten && !self.pages.is_touched(PhysAddr(start)) {
                let mut page = [0; PAGE_BYTES as usize];
                let shown = (self.base_bytes - start).min(PAGE_BYTES) as usize;
                base.read(start, &mut page[..shown])?;
                self.pages.write(PhysAddr(start), &page);
            }
        }
        Ok(())
    }

    /// Gives the file another size; what it gains is zero.
    pub(crate) fn resize(&mut self, size_bytes: u64, reach: WriteScope) -> io::Result<()> {
        if size_bytes > FILE_MAX_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if let (Some(base), WriteScope::SharedHost) = (&self.base, reach) {
            base.keep(size_bytes / PAGE_BYTES..self.base_bytes.div_ceil(PAGE_BYTES))?;
        }
        if let (Some(writer), true) = (&self.writer, reach != WriteScope::Memory) {
            writer.set_len(size_bytes)?;
        }
        if size_bytes < self.size_bytes {
            self.pages.clear_from(PhysAddr(size_bytes));
            self.base_bytes = self.base_bytes.min(size_bytes);
        }
        self.size_bytes = size_bytes;
        self.changed = true;
        Ok(())
    }

    /// Bytes that only the host has.
    pub(crate) fn host_bytes(&self) -> u64 {
        if self.base.is_some() { self.base_bytes } else { 0 }
    }

    /// Whether closing it for good would lose nothing: the host has it as it is.
    pub(crate) fn is_on_host(&self) -> bool {
        self.base.is_some() && !self.changed
    }

    /// Reads all that the host has of it and does without the host from now on.
    pub(crate) fn load(&mut self) -> io::Result<()> {
        let Some(base) = self.base.take() else { return Ok(()) };
        let mut chunk = vec![0; CHUNK_BYTES as usize];
        for start in (0..self.base_bytes).step_by(CHUNK_BYTES as usize) {
            let len = (self.base_bytes - start).min(CHUNK_BYTES) as usize;
            base.read(start, &mut chunk[..len])?;
            for (page, bytes) in (start..).step_by(PAGE_BYTES as usize).zip(chunk[..len].chunks(PAGE_BYTES as usize)) {
                if !self.pages.is_touched(PhysAddr(page)) && bytes.iter().any(|&b| b != 0) {
                    self.pages.write(PhysAddr(page), bytes);
                }
            }
        }
        (self.base_bytes, self.writer) = (0, None);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::HostFolder;
    use cap_std::ambient_authority;
    use cap_std::fs::Dir;
    use durasim_types::Rng;

    /// Random changes, in memory and on the host, leave what the same changes leave of a vector.
    #[test]
    fn contents_are_a_vector_of_bytes() {
        let folder = tempfile::tempdir().unwrap();
        for (seed, reach) in
            (0..60).zip([WriteScope::Memory, WriteScope::Host, WriteScope::SharedHost].into_iter().cycle())
        {
            let mut rng = Rng::new(seed);
            let mut expected = vec![0; rng.below(20_000) as usize];
            rng.fill(&mut expected);
            let first = expected.clone();
            std::fs::write(folder.path().join("f"), &first).unwrap();
            let host = HostFolder::new(Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap());
            let base = host.open("/f").unwrap();
            let mut file = Contents::of(base.clone(), "/f".into());
            file.writer = Some(Arc::new(host.open_writer("/f", false).unwrap()));
            for _ in 0..40 {
                let offset = rng.below(25_000) as usize;
                if rng.below(3) == 0 {
                    file.resize(offset as u64, reach).unwrap();
                    expected.resize(offset, 0);
                } else {
                    let mut bytes = vec![0; 1 + rng.below(9000) as usize];
                    rng.fill(&mut bytes);
                    file.write(offset as u64, &bytes, reach).unwrap();
                    expected.resize(expected.len().max(offset + bytes.len()), 0);
                    expected[offset..offset + bytes.len()].copy_from_slice(&bytes);
                }
                let (at, len) = (rng.below(30_000), rng.below(9000));
                let end = expected.len().min((at + len) as usize);
                let wanted = expected.get(at as usize..end.max(at as usize)).unwrap_or(&[]);
                assert_eq!(file.read(at, len).unwrap(), wanted, "seed {seed}");
            }
            let on_host = std::fs::read(folder.path().join("f")).unwrap();
            assert_eq!(on_host, if reach == WriteScope::Memory { &first } else { &expected }[..], "seed {seed}");
            if reach != WriteScope::Host {
                let mut before = vec![0; first.len()];
                base.read(0, &mut before).unwrap();
                assert_eq!(before, first, "others see what was there before");
            }
            let mut loaded = file.clone();
            loaded.load().unwrap();
            let saved: Contents = postcard::from_bytes(&postcard::to_stdvec(&loaded).unwrap()).unwrap();
            assert_eq!(saved.read(0, u64::MAX).unwrap(), expected, "seed {seed}");
        }
    }

    #[test]
    fn absurd_sizes_are_refused() {
        let mut file = Contents::empty();
        assert_eq!(
            file.write(u64::MAX - 1, &[1, 2, 3], WriteScope::Memory).unwrap_err().kind(),
            io::ErrorKind::FileTooLarge
        );
        assert!(file.resize(FILE_MAX_BYTES + 1, WriteScope::Memory).is_err());
        file.resize(FILE_MAX_BYTES, WriteScope::Memory).unwrap();
        assert_eq!(file.read(FILE_MAX_BYTES - 3, 10).unwrap(), [0; 3]);
    }
}
