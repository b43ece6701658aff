//! Information about files for the program. Times, owners, inode numbers and rights of the host are not shown: they
//! would differ from run to run.

use super::paths::PathTarget;
use super::{Answer, Call, Stop};
use crate::files::{Entry, Kind};
use crate::folder::Node;
use crate::stack::USER_ID;
use ::syscalls::Errno;
use durasim_types::PAGE_BYTES;
use std::sync::Arc;

const AT_SYMLINK_NOFOLLOW: u64 = 0x100;
const AT_EMPTY_PATH: u64 = 0x1000;

const TYPE_MASK: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const FOLDER: u32 = 0o040_000;
const SYMLINK: u32 = 0o120_000;
const CHARACTER_DEVICE: u32 = 0o020_000;
const PIPE: u32 = 0o010_000;
const SOCKET: u32 = 0o140_000;

/// The facts about a file that are not the same for all files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    inode: u64,
    mode: u32,
    size_bytes: u64,
}

impl Facts {
    fn new(path: &str, mode: u32, size_bytes: u64) -> Self {
        Facts { inode: inode_of(path), mode, size_bytes }
    }

    pub(crate) fn is_folder(&self) -> bool {
        self.mode & TYPE_MASK == FOLDER
    }

    pub(crate) fn executable(&self) -> bool {
        self.mode & 0o100 != 0
    }

    fn blocks(&self) -> u64 {
        self.size_bytes.div_ceil(512)
    }

    /// `struct stat` of 64-bit RISC-V (asm-generic), 128 bytes.
    fn stat(&self) -> [u8; 128] {
        let mut out = [0; 128];
        let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &1u64.to_le_bytes());
        put(8, &self.inode.to_le_bytes());
        put(16, &self.mode.to_le_bytes());
        put(20, &1u32.to_le_bytes());
        put(24, &(USER_ID as u32).to_le_bytes());
        put(28, &(USER_ID as u32).to_le_bytes());
        put(48, &self.size_bytes.to_le_bytes());
        put(56, &(PAGE_BYTES as u32).to_le_bytes());
        put(64, &self.blocks().to_le_bytes());
        out
    }

    /// `struct statx`, 256 bytes, with the basic fields.
    fn statx(&self) -> [u8; 256] {
        const BASIC: u32 = 0x7ff;
        let mut out = [0; 256];
        let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &BASIC.to_le_bytes());
        put(4, &(PAGE_BYTES as u32).to_le_bytes());
        put(16, &1u32.to_le_bytes());
        put(20, &(USER_ID as u32).to_le_bytes());
        put(24, &(USER_ID as u32).to_le_bytes());
        put(28, &(self.mode as u16).to_le_bytes());
        put(32, &self.inode.to_le_bytes());
        put(40, &self.size_bytes.to_le_bytes());
        put(48, &self.blocks().to_le_bytes());
        // Device 0:1, as in `stat`.
        put(140, &1u32.to_le_bytes());
        out
    }
}

/// An inode number that depends on nothing but the path: the host's would leak, and even numbers given in the order
/// of first use would, since hosts reuse inodes of removed files as they like.
fn inode_of(path: &str) -> u64 {
    let hash = blake3::hash(path.as_bytes());
    u64::from_le_bytes(hash.as_bytes()[..8].try_into().expect("eight bytes")) >> 1
}

/// A file of this many bytes with these bits of rights.
fn file_facts(path: &str, size_bytes: u64, mode: u32) -> Facts {
    Facts::new(path, REGULAR | if mode & 0o100 != 0 { 0o755 } else { 0o644 }, size_bytes)
}

impl Call<'_> {
    pub(super) fn fstat(&mut self, fd: i32, to: u64) -> Answer {
        let facts = self.stat_of_fd(fd)?;
        self.bytes_to(to, &facts.stat())?;
        Ok(0)
    }

    pub(super) fn newfstatat(&mut self, folder_fd: i32, path: u64, to: u64, flags: u64) -> Answer {
        let facts = self.stat_at(folder_fd, path, flags)?;
        self.bytes_to(to, &facts.stat())?;
        Ok(0)
    }

    pub(super) fn statx(&mut self, folder_fd: i32, path: u64, flags: u64, to: u64) -> Answer {
        let facts = self.stat_at(folder_fd, path, flags)?;
        self.bytes_to(to, &facts.statx())?;
        Ok(0)
    }

    fn stat_at(&mut self, folder_fd: i32, path: u64, flags: u64) -> Result<Facts, Stop> {
        let path = self.text_from(path)?;
        if path.is_empty() && flags & AT_EMPTY_PATH != 0 {
            return self.stat_of_fd(folder_fd);
        }
        let place = self.resolve(folder_fd, &path)?;
        self.stat_of(&place, flags & AT_SYMLINK_NOFOLLOW == 0)
    }

    fn stat_of_fd(&mut self, fd: i32) -> Result<Facts, Stop> {
        let size_bytes = self.size_of(fd)?;
        match &self.process.files.get(fd)?.kind {
            Kind::Stdin => Ok(Facts::new("pipe:0", PIPE | 0o600, 0)),
            Kind::Output(_) => Ok(Facts::new("pipe:1", PIPE | 0o600, 0)),
            Kind::Pipe { pipe } => Ok(Facts::new(&format!("own pipe:{pipe}"), PIPE | 0o600, 0)),
            Kind::Socket { link, side } => Ok(Facts::new(&format!("socket:{link}:{side}"), SOCKET | 0o777, 0)),
            Kind::Event { .. } | Kind::Timer(_) | Kind::Signals { .. } | Kind::Epoll(_) => {
                Ok(Facts::new("anon_inode", 0o600, 0))
            }
            Kind::Device(device) => self.stat_of(&PathTarget::Device(*device), true),
            Kind::File { path, .. } => Ok(Facts::new(path, REGULAR | 0o644, size_bytes)),
            Kind::Pmem { name } => Ok(Facts::new(&format!("/pmem/{name}"), REGULAR | 0o600, size_bytes)),
            Kind::Folder { path, .. } => Ok(Facts::new(path, FOLDER | 0o755, PAGE_BYTES)),
        }
    }

    /// The facts about what `place` names, of the target of a symbolic link if `follow`.
    pub(super) fn stat_of(&self, place: &PathTarget, follow: bool) -> Result<Facts, Stop> {
        match place {
            PathTarget::PmemFolder => Ok(Facts::new("/pmem", FOLDER | 0o755, PAGE_BYTES)),
            PathTarget::Pmem(name) => {
                let extent = self.process.pool.get(name).ok_or(Errno::ENOENT)?;
                Ok(Facts::new(&format!("/pmem/{name}"), REGULAR | 0o600, extent.size_bytes))
            }
            PathTarget::Device(device) => Ok(Facts::new(&format!("{device:?}"), CHARACTER_DEVICE | 0o666, 0)),
            PathTarget::Executable => Ok(Facts::new("/proc/self/exe", SYMLINK | 0o777, 0)),
            PathTarget::Host(path) => {
                let root = &self.process.files.root;
                match root.resolve(path, follow)?.1 {
                    Node::Absent => Err(Errno::ENOENT.into()),
                    Node::Folder { .. } => Ok(Facts::new(path, FOLDER | 0o755, PAGE_BYTES)),
                    Node::Symlink(target) => Ok(Facts::new(path, SYMLINK | 0o777, target.len() as u64)),
                    Node::File(file) => Ok(file_facts(path, root.file(file).size_bytes, root.file(file).mode)),
                    Node::HostFile { size_bytes, mode, .. } => Ok(file_facts(path, size_bytes, mode)),
                    Node::Other => Ok(file_facts(path, 0, 0)),
                }
            }
        }
    }

    /// Fills the buffer with as many whole `struct linux_dirent64` as fit. Names come in ascending order.
    pub(super) fn getdents64(&mut self, fd: i32, to: u64, len: u64) -> Answer {
        let opened = self.process.files.get(fd)?;
        let Kind::Folder { path, entries } = opened.kind.clone() else { return Err(Errno::ENOTDIR.into()) };
        let first = opened.offset;
        let entries = match entries {
            Some(entries) => entries,
            None => {
                let listed = Arc::new(self.list(&path)?);
                self.process.files.get_mut(fd)?.kind = Kind::Folder { path, entries: Some(listed.clone()) };
                listed
            }
        };
        let mut out = Vec::new();
        let mut next = first;
        for entry in entries.iter().skip(first as usize) {
            // Inode, offset of the next entry, length, type, name and its zero byte, padded to 8.
            let length = (19 + entry.name.len() + 1).next_multiple_of(8);
            if (out.len() + length) as u64 > len {
                break;
            }
            next += 1;
            let end = out.len() + length;
            out.extend(entry.inode.to_le_bytes());
            out.extend(next.to_le_bytes());
            out.extend((length as u16).to_le_bytes());
            out.push(entry.file_type);
            out.extend(entry.name.as_bytes());
            out.resize(end, 0);
        }
        if out.is_empty() && (first as usize) < entries.len() {
            return Err(Errno::EINVAL.into());
        }
        self.bytes_to(to, &out)?;
        self.process.files.get_mut(fd)?.offset = next;
        Ok(out.len() as u64)
    }

    fn list(&self, path: &str) -> Result<Vec<Entry>, Stop> {
        const REGULAR_TYPE: u8 = 8;
        const FOLDER_TYPE: u8 = 4;
        const SYMLINK_TYPE: u8 = 10;
        let entry = |name: String, file_type| Entry { inode: inode_of(&format!("{path}/{name}")), name, file_type };
        let mut entries = Vec::new();
        if path == "/pmem" {
            entries.extend(self.process.pool.files().map(|(name, _)| entry(name.to_string(), REGULAR_TYPE)));
        } else {
            for (name, node) in self.process.files.root.list(path)? {
                let file_type = match node {
                    Node::Folder { .. } => FOLDER_TYPE,
                    Node::Symlink(_) => SYMLINK_TYPE,
                    _ => REGULAR_TYPE,
                };
                entries.push(entry(name, file_type));
            }
        }
        entries.extend([entry(".".into(), FOLDER_TYPE), entry("..".into(), FOLDER_TYPE)]);
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }
}
