//! The open files of a process: its descriptors, what each refers to, and what it maps of them.

use crate::folder::{FileId, RootFolder};
use crate::links::Link;
use crate::poll_events::{ERROR, HANG_UP, READABLE, WRITABLE, when};
use crate::{PhysMemory, Stream};
use ::syscalls::Errno;
use durasim_types::{PAGE_BYTES, PhysAddr};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Descriptors are below this.
pub(crate) const FILES_MAX: i32 = 1024;

/// The object of a descriptor.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Kind {
    Stdin,
    Output(Stream),
    Device(Device),
    /// A file under the root folder, with the path that it was opened by.
    File {
        file: FileId,
        path: String,
    },
    Pmem {
        name: String,
    },
    /// An end of a pipe; whether it reads or writes stands with the open file.
    Pipe {
        pipe: u64,
    },
    Folder {
        path: String,
        entries: Option<Arc<Vec<Entry>>>,
    },
    /// An eventfd.
    Event {
        count: u64,
        /// A read takes one instead of all.
        semaphore: bool,
    },
    Timer(Timer),
    /// A signalfd, with the set of signals that it takes.
    Signals {
        mask: u64,
    },
    /// An epoll, with its interests in the order in which they report.
    Epoll(Vec<Interest>),
    /// One of two sockets that are connected to each other.
    Socket {
        link: u64,
        /// 0 or 1.
        side: usize,
    },
}

/// The capacity of a pipe, as in Linux.
pub(crate) const PIPE_BYTES: usize = 65536;
/// Writes of up to this many bytes are not divided.
pub(crate) const UNDIVIDED_BYTES: usize = 4096;

/// A timerfd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Timer {
    pub(crate) clock: u64,
    /// Simulated time of the next expiration that no read has taken; none if the timer is stopped.
    pub(crate) next_ns: Option<u64>,
    /// Time between expirations, 0 = there is one.
    pub(crate) interval_ns: u64,
    /// Expirations that reads have taken.
    pub(crate) taken: u64,
}

impl Timer {
    /// Expirations that no read has taken.
    pub(crate) fn expirations(&self, now_ns: u64) -> u64 {
        match (self.next_ns.and_then(|next_ns| now_ns.checked_sub(next_ns)), self.interval_ns) {
            (None, _) => 0,
            (Some(_), 0) => 1,
            (Some(late_ns), interval_ns) => 1 + late_ns / interval_ns,
        }
    }

    /// The first expiration after `now_ns`.
    pub(crate) fn next_after(&self, now_ns: u64) -> Option<u64> {
        let (next_ns, passed) = (self.next_ns?, self.expirations(now_ns));
        let is_over = passed > 0 && self.interval_ns == 0;
        (!is_over).then(|| next_ns.saturating_add(passed.saturating_mul(self.interval_ns)))
    }

    /// A read takes all expirations.
    pub(crate) fn take(&mut self, now_ns: u64) -> u64 {
        let taken = self.expirations(now_ns);
        if taken > 0 {
            self.next_ns = self.next_after(now_ns);
            self.taken += taken;
        }
        taken
    }
}

/// A file that an epoll watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Interest {
    pub(crate) fd: i32,
    /// The open file.
    pub(crate) slot: usize,
    /// Events and options of `struct epoll_event`; 0 after the report of a one-shot interest.
    pub(crate) events: u32,
    pub(crate) data: u64,
    /// The numbers of times that something had happened at the last report.
    pub(crate) seen: Option<[u64; 2]>,
}

/// Devices that exist without a root folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Device {
    /// Empty to read, swallows what is written.
    Null,
    /// Endless zeros.
    Zero,
    /// Endless bytes of the seeded generator.
    Random,
}

/// A name in a folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) inode: u64,
    /// DT_REG, DT_DIR or another of the types of `struct linux_dirent64`.
    pub(crate) file_type: u8,
}

/// An open file, which several descriptors may share.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Opened {
    pub(crate) kind: Kind,
    pub(crate) offset: u64,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// The flags of F_GETFL: access mode and status flags.
    pub(crate) flags: u64,
    /// Number of times that something came to be read, and room to write: edge-triggered interests report a change.
    pub(crate) happened: [u64; 2],
}

impl Opened {
    pub(crate) fn new(kind: Kind, readable: bool, writable: bool, flags: u64) -> Self {
        Opened { kind, offset: 0, readable, writable, flags, happened: [0; 2] }
    }

    /// Whether reads and writes have no offset and may wait for others.
    pub(crate) fn is_stream(&self) -> bool {
        let is_descriptor = matches!(self.kind, Kind::Event { .. } | Kind::Timer(_) | Kind::Signals { .. });
        is_descriptor || matches!(self.kind, Kind::Pipe { .. } | Kind::Socket { .. })
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Descriptor {
    opened: usize,
    close_on_exec: bool,
}

/// The open files of a process, its view of the host's files and what it maps of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FileTable {
    descriptors: BTreeMap<i32, Descriptor>,
    opened: Vec<Option<Opened>>,
    pub(crate) shared: Vec<Option<SharedFile>>,
    pub(crate) root: RootFolder,
    pub(crate) cwd: String,
    pub(crate) creation_mask: u64,
    pub(crate) stdin: Arc<Vec<u8>>,
    /// The contents of the pipes that have an end.
    pipes: BTreeMap<u64, VecDeque<u8>>,
    /// The pairs of sockets.
    links: BTreeMap<u64, Link>,
    /// Descriptors are below this, which the program may lower.
    pub(crate) descriptors_max: i32,
}

impl FileTable {
    pub(crate) fn new(root: RootFolder, stdin: Vec<u8>) -> Self {
        let mut table = FileTable {
            descriptors: BTreeMap::new(),
            opened: Vec::new(),
            shared: Vec::new(),
            root,
            cwd: "/".into(),
            creation_mask: 0o022,
            stdin: Arc::new(stdin),
            pipes: BTreeMap::new(),
            links: BTreeMap::new(),
            descriptors_max: FILES_MAX,
        };
        let stream = |kind, readable| Opened::new(kind, readable, !readable, !readable as u64);
        for opened in [
            stream(Kind::Stdin, true),
            stream(Kind::Output(Stream::Stdout), false),
            stream(Kind::Output(Stream::Stderr), false),
        ] {
            table.add(opened, false).expect("an empty table has room");
        }
        table
    }

    /// Gives `opened` the lowest free descriptor.
    pub(crate) fn add(&mut self, opened: Opened, close_on_exec: bool) -> Result<i32, Errno> {
        let fd = self.free_from(0)?;
        let slot = self.opened.iter().position(Option::is_none).unwrap_or(self.opened.len());
        if slot == self.opened.len() {
            self.opened.push(None);
        }
        self.opened[slot] = Some(opened);
        self.descriptors.insert(fd, Descriptor { opened: slot, close_on_exec });
        Ok(fd)
    }

    /// The lowest free descriptor that is not below `lowest`.
    pub(crate) fn free_from(&self, lowest: i32) -> Result<i32, Errno> {
        (lowest..self.descriptors_max).find(|fd| !self.descriptors.contains_key(fd)).ok_or(Errno::EMFILE)
    }

    fn descriptor(&self, fd: i32) -> Result<Descriptor, Errno> {
        self.descriptors.get(&fd).copied().ok_or(Errno::EBADF)
    }

    pub(crate) fn close_on_exec(&self, fd: i32) -> Result<bool, Errno> {
        Ok(self.descriptor(fd)?.close_on_exec)
    }

    pub(crate) fn set_close_on_exec(&mut self, fd: i32, close_on_exec: bool) -> Result<(), Errno> {
        self.descriptors.get_mut(&fd).ok_or(Errno::EBADF)?.close_on_exec = close_on_exec;
        Ok(())
    }

    /// The place of the open file of a descriptor.
    pub(crate) fn slot(&self, fd: i32) -> Result<usize, Errno> {
        Ok(self.descriptor(fd)?.opened)
    }

    /// The open file at a place.
    pub(crate) fn at(&self, slot: usize) -> Option<&Opened> {
        self.opened.get(slot)?.as_ref()
    }

    /// The places of the open epolls.
    pub(crate) fn epolls(&self) -> impl Iterator<Item = usize> + '_ {
        let is_epoll = |opened: &Option<Opened>| matches!(opened, Some(Opened { kind: Kind::Epoll(_), .. }));
        self.opened.iter().enumerate().filter(move |(_, opened)| is_epoll(opened)).map(|(slot, _)| slot)
    }

    /// The open descriptors from `first` to `last`.
    pub(crate) fn descriptors_in(&self, first: i32, last: i32) -> Vec<i32> {
        self.descriptors.range(first..=last).map(|(&fd, _)| fd).collect()
    }

    pub(crate) fn get(&self, fd: i32) -> Result<&Opened, Errno> {
        Ok(self.opened[self.descriptor(fd)?.opened].as_ref().expect("descriptors name open files"))
    }

    pub(crate) fn get_mut(&mut self, fd: i32) -> Result<&mut Opened, Errno> {
        let slot = self.descriptor(fd)?.opened;
        Ok(self.opened[slot].as_mut().expect("descriptors name open files"))
    }

    pub(crate) fn close(&mut self, fd: i32) -> Result<(), Errno> {
        let closed = self.descriptors.remove(&fd).ok_or(Errno::EBADF)?;
        if !self.descriptors.values().any(|d| d.opened == closed.opened) {
            self.close_last(closed.opened);
        }
        Ok(())
    }

    /// The last descriptor of an open file is closed.
    fn close_last(&mut self, slot: usize) {
        let closed = self.opened[slot].take().map(|opened| opened.kind);
        for opened in self.opened.iter_mut().flatten() {
            if let Kind::Epoll(interests) = &mut opened.kind {
                interests.retain(|interest| interest.slot != slot);
            }
        }
        match closed {
            Some(Kind::File { file, .. }) => self.release_unused(file),
            Some(Kind::Pipe { pipe }) => {
                if self.has_pipe_end(pipe, false) || self.has_pipe_end(pipe, true) {
                    self.note(|kind| matches!(kind, Kind::Pipe { pipe: p } if *p == pipe), [1, 1]);
                } else {
                    self.pipes.remove(&pipe);
                }
            }
            Some(Kind::Socket { link, side }) => {
                self.link_mut(link).close(side);
                self.note(|kind| matches!(kind, Kind::Socket { link: l, .. } if *l == link), [1, 1]);
                if self.links[&link].is_closed() {
                    self.links.remove(&link);
                }
            }
            _ => {}
        }
    }

    /// Something came to be read, or room to write, of some open files.
    pub(crate) fn note(&mut self, of: impl Fn(&Kind) -> bool, happened: [u64; 2]) {
        for opened in self.opened.iter_mut().flatten().filter(|opened| of(&opened.kind)) {
            opened.happened[0] += happened[0];
            opened.happened[1] += happened[1];
        }
    }

    /// Makes two sockets that are connected, which have to be added, and gives the number of their link.
    pub(crate) fn add_link(&mut self, link: Link) -> u64 {
        let number = self.links.last_key_value().map_or(0, |(last, _)| last + 1);
        self.links.insert(number, link);
        number
    }

    pub(crate) fn link(&self, link: u64) -> &Link {
        self.links.get(&link).expect("a link lives as long as its sockets")
    }

    pub(crate) fn link_mut(&mut self, link: u64) -> &mut Link {
        self.links.get_mut(&link).expect("a link lives as long as its sockets")
    }

    /// The events of an end of a pipe.
    pub(crate) fn pipe_readiness(&self, pipe: u64, writes: bool) -> u16 {
        let held_bytes = self.pipes[&pipe].len();
        let is_alone = !self.has_pipe_end(pipe, !writes);
        match writes {
            true => when(held_bytes + UNDIVIDED_BYTES <= PIPE_BYTES, WRITABLE) | when(is_alone, ERROR),
            false => when(held_bytes > 0, READABLE) | when(is_alone, HANG_UP),
        }
    }

    /// Lets the root folder forget a file that no descriptor and no mapping leads to any more, if it may.
    pub(crate) fn release_unused(&mut self, file: FileId) {
        let opened = |o: &Opened| matches!(o.kind, Kind::File { file: f, .. } if f == file);
        if !self.opened.iter().flatten().any(opened) && self.shared_of(file).is_none() {
            self.root.release(file);
        }
    }

    pub(crate) fn duplicate(&mut self, from: i32, to: i32, close_on_exec: bool) -> Result<(), Errno> {
        let opened = self.descriptor(from)?.opened;
        if self.descriptors.contains_key(&to) {
            self.close(to)?;
        }
        self.descriptors.insert(to, Descriptor { opened, close_on_exec });
        Ok(())
    }

    /// Makes an empty pipe, whose ends have to be added, and gives its number.
    pub(crate) fn add_pipe(&mut self) -> u64 {
        let pipe = self.pipes.last_key_value().map_or(0, |(last, _)| last + 1);
        self.pipes.insert(pipe, VecDeque::new());
        pipe
    }

    /// The contents of a pipe.
    pub(crate) fn pipe(&mut self, pipe: u64) -> &mut VecDeque<u8> {
        self.pipes.get_mut(&pipe).expect("a pipe lives as long as its ends")
    }

    /// Whether an end of the pipe that writes (or reads) is open.
    pub(crate) fn has_pipe_end(&self, pipe: u64, writes: bool) -> bool {
        let mut opened = self.opened.iter().flatten();
        opened.any(|o| matches!(o.kind, Kind::Pipe { pipe: p } if p == pipe) && o.writable == writes)
    }

    /// Whether the file `name` under `/pmem/` is open.
    pub(crate) fn has_pmem_open(&self, name: &str) -> bool {
        self.opened.iter().flatten().any(|o| matches!(&o.kind, Kind::Pmem { name: n } if n == name))
    }

    /// Open files follow a file under `/pmem/` to its new name.
    pub(crate) fn rename_pmem(&mut self, from: &str, to: &str) {
        for opened in self.opened.iter_mut().flatten() {
            if let Kind::Pmem { name } = &mut opened.kind
                && name == from
            {
                *name = to.to_string();
            }
        }
    }

    /// Keeps a file with pages mapped with MAP_SHARED; the number of its place.
    pub(crate) fn add_shared(&mut self, shared: SharedFile) -> usize {
        let object = self.shared.iter().position(Option::is_none).unwrap_or(self.shared.len());
        if object == self.shared.len() {
            self.shared.push(None);
        }
        self.shared[object] = Some(shared);
        object
    }

    /// The shared mapping of `file`.
    pub(crate) fn shared_of(&self, file: FileId) -> Option<&SharedFile> {
        self.shared.iter().flatten().find(|shared| shared.file == file)
    }

    /// Writes all shared mappings back; errors of the host are dropped.
    pub(crate) fn write_back_all(&mut self, mem: &mut dyn PhysMemory) {
        let FileTable { shared, root, .. } = self;
        for shared in shared.iter().flatten() {
            shared.write_back(root, mem).ok();
        }
    }

    /// Makes what the program stored through shared mappings of `file` visible in it.
    pub(crate) fn write_back(&mut self, file: FileId, mem: &mut dyn PhysMemory) -> Result<(), Errno> {
        let FileTable { shared, root, .. } = self;
        let shared = shared.iter().flatten().find(|shared| shared.file == file);
        shared.map_or(Ok(()), |shared| shared.write_back(root, mem))
    }
}

/// A file with pages mapped with MAP_SHARED. All its mappings share one set of frames.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SharedFile {
    pub(crate) file: FileId,
    /// Frames by page of the file.
    pub(crate) frames: BTreeMap<u64, PhysAddr>,
    /// Whether the file was opened for writing: then its pages are written back.
    pub(crate) writable: bool,
}

impl SharedFile {
    /// Writes the pages that differ back, up to the end that the file has.
    pub(crate) fn write_back(&self, root: &mut RootFolder, mem: &mut dyn PhysMemory) -> Result<(), Errno> {
        if !self.writable {
            return Ok(());
        }
        let mut page = [0; PAGE_BYTES as usize];
        for (&number, &frame) in &self.frames {
            let known = root.read(self.file, number * PAGE_BYTES, PAGE_BYTES)?;
            mem.read(frame, &mut page);
            if page[..known.len()] != known {
                root.write(self.file, number * PAGE_BYTES, &page[..known.len()])?;
            }
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
