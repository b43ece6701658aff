//! Mappings.

use super::{Answer, Call, Stop, refuse};
use crate::files::{Device, Kind, SharedFile};
use crate::folder::FileId;
use crate::space::{
    Area, Backing, PMEM_WINDOW_BASE, PMEM_WINDOW_END, Rights, USER_BEGIN, USER_END, page_down, page_up,
};
use ::syscalls::Errno;
use durasim_isa::{AccessFault, AccessFaultKind};
use durasim_types::{PAGE_BYTES, PhysAddr};
use std::collections::BTreeMap;

const MAP_SHARED: u64 = 1;
const MAP_PRIVATE: u64 = 2;
const MAP_SHARED_VALIDATE: u64 = 3;
const MAP_KIND: u64 = 0xf;
const MAP_FIXED: u64 = 0x10;
const MAP_ANONYMOUS: u64 = 0x20;
const MAP_NORESERVE: u64 = 0x4000;
const MAP_HUGETLB: u64 = 0x4_0000;
const MAP_SYNC: u64 = 0x8_0000;
const MAP_FIXED_NOREPLACE: u64 = 0x10_0000;
/// The flags above and those that change nothing here: GROWSDOWN, DENYWRITE, EXECUTABLE, LOCKED, POPULATE, NONBLOCK,
/// STACK.
const MAP_KNOWN: u64 = 0x1f_ffff & !0x80;

fn whole_page(addr: u64) -> bool {
    addr.is_multiple_of(PAGE_BYTES)
}

/// Whether a mapping other than of `/pmem/` may be there.
fn allowed(start: u64, end: u64) -> bool {
    start >= USER_BEGIN && end <= USER_END && (end <= PMEM_WINDOW_BASE || start >= PMEM_WINDOW_END)
}

impl Rights {
    /// The rights of the PROT_ bits of `mmap` and `mprotect`.
    fn of_prot(prot: u64) -> Rights {
        Rights { read: prot & 1 != 0, write: prot & 2 != 0, execute: prot & 4 != 0 }
    }
}

impl Call<'_> {
    pub(super) fn brk(&mut self, wanted: u64) -> Answer {
        let heap = self.process.heap;
        if wanted < heap.start || wanted > PMEM_WINDOW_BASE {
            return Ok(heap.end);
        }
        let (old, new) = (page_up(heap.end), page_up(wanted));
        if new > old {
            if !self.process.space.is_free(old, new) || !self.process.space.can_back(new - old) {
                return Ok(heap.end);
            }
            self.process.space.map_area(old, new, Rights::READ_WRITE, Backing::Private);
        } else if new < old {
            self.unmap(new, old)?;
        }
        self.process.heap.end = wanted;
        Ok(wanted)
    }

    pub(super) fn mmap(&mut self, hint: u64, len: u64, prot: u64, flags: u64, fd: i32, offset: u64) -> Answer {
        if len == 0 || !whole_page(offset) {
            return Err(Errno::EINVAL.into());
        }
        let len = page_up(len);
        if len > USER_END {
            return Err(Errno::ENOMEM.into());
        }
        if offset.checked_add(len).is_none_or(|end| end > i64::MAX as u64) {
            return Err(Errno::EOVERFLOW.into());
        }
        let shared = match flags & MAP_KIND {
            MAP_PRIVATE => false,
            MAP_SHARED => true,
            MAP_SHARED_VALIDATE if flags & !MAP_KNOWN == 0 => true,
            MAP_SHARED_VALIDATE => return Err(Errno::EOPNOTSUPP.into()),
            _ => return Err(Errno::EINVAL.into()),
        };
        if flags & MAP_HUGETLB != 0 {
            // As on a machine without reserved huge pages.
            return Err(Errno::ENOMEM.into());
        }
        let rights = Rights::of_prot(prot);
        if flags & MAP_ANONYMOUS != 0 {
            return self.map_anonymous(hint, len, rights, flags);
        }
        let opened = self.process.files.get(fd)?;
        let writable = opened.writable;
        if !opened.readable || (shared && rights.write && !writable) {
            return Err(Errno::EACCES.into());
        }
        match opened.kind.clone() {
            Kind::Pmem { name } if shared => self.map_pmem(&name, hint, len, rights, flags, offset),
            Kind::Pmem { name } => self.map_pmem_copy(&name, hint, len, rights, flags, offset),
            _ if flags & MAP_KIND == MAP_SHARED_VALIDATE && flags & MAP_SYNC != 0 => Err(Errno::EOPNOTSUPP.into()),
            Kind::File { file, .. } if shared => self.map_shared(file, writable, hint, len, rights, flags, offset),
            Kind::File { file, .. } => self.map_copy(file, hint, len, rights, flags, offset),
            Kind::Device(Device::Zero) => self.map_anonymous(hint, len, rights, flags),
            _ => Err(Errno::ENODEV.into()),
        }
    }

    fn map_anonymous(&mut self, hint: u64, len: u64, rights: Rights, flags: u64) -> Answer {
        if rights.write && flags & MAP_NORESERVE == 0 && !self.process.space.can_back(len) {
            return Err(Errno::ENOMEM.into());
        }
        let start = self.place_mapping(hint, len, flags)?;
        // With one process, shared memory and private memory are the same.
        self.process.space.map_area(start, start + len, rights, Backing::Private);
        Ok(start)
    }

    /// A private copy of a part of a host file, taken at once. Pages after its end are zero.
    fn map_copy(&mut self, file: FileId, hint: u64, len: u64, rights: Rights, flags: u64, offset: u64) -> Answer {
        let bytes = self.file_bytes(file, offset, len)?;
        let start = self.place_mapping(hint, len, flags)?;
        self.process.space.map_area(start, start + len, rights, Backing::FileCopy);
        let filled = self.process.space.fill(self.mem, start, &bytes);
        filled.map_err(|fault| Stop::Refuse(self.process.space.describe(&fault)))?;
        Ok(start)
    }

    /// The bytes of a host file that exist in a range, if the DRAM could hold them.
    fn file_bytes(&mut self, file: FileId, offset: u64, len: u64) -> Result<Vec<u8>, Stop> {
        let size_bytes = self.process.files.root.file(file).size_bytes;
        let wanted = len.min(size_bytes.saturating_sub(offset));
        if !self.process.space.can_back(page_up(wanted)) {
            return Err(Errno::ENOMEM.into());
        }
        Ok(self.process.files.root.read(file, offset, wanted)?)
    }

    /// A mapping whose stores reach the host file: at `msync`, when it is unmapped, when the file is read and at the
    /// end of the program.
    #[allow(clippy::too_many_arguments, reason = "these are the arguments of mmap")]
    fn map_shared(
        &mut self,
        file: FileId,
        writable: bool,
        hint: u64,
        len: u64,
        rights: Rights,
        flags: u64,
        offset: u64,
    ) -> Answer {
        let (first_page, count) = (offset / PAGE_BYTES, len / PAGE_BYTES);
        // Placed first: it may take away the last other mapping of this file.
        let start = self.place_mapping(hint, len, flags)?;
        let files = &mut self.process.files;
        let known = files.shared.iter().position(|s| s.as_ref().is_some_and(|s| s.file == file));
        let object = known.unwrap_or_else(|| files.add_shared(SharedFile { file, frames: BTreeMap::new(), writable }));
        if let Err(stop) = self.load_shared(object, first_page, count) {
            if known.is_none() {
                self.process.files.shared[object] = None;
            }
            return Err(stop);
        }
        let shared = self.process.files.shared[object].as_mut().expect("found or added");
        shared.writable |= writable;
        let frames: Vec<PhysAddr> = shared.frames.range(first_page..first_page + count).map(|(_, &f)| f).collect();
        self.process.space.map_area(start, start + len, rights, Backing::Shared { object, first_page });
        self.process.space.install(start, frames);
        Ok(start)
    }

    /// Brings those pages of a range of a file into frames that no mapping has brought before: all of them or none.
    fn load_shared(&mut self, object: usize, first_page: u64, count: u64) -> Result<(), Stop> {
        let shared = self.process.files.shared[object].as_ref().expect("found or added");
        let pages = first_page..first_page + count;
        let present = shared.frames.range(pages.clone()).count() as u64;
        if !self.process.space.can_back((count - present) * PAGE_BYTES) {
            return Err(Errno::ENOMEM.into());
        }
        let missing: Vec<u64> = pages.filter(|page| !shared.frames.contains_key(page)).collect();
        let file = shared.file;
        let read = |page: &u64| self.process.files.root.read(file, page * PAGE_BYTES, PAGE_BYTES);
        let contents: Vec<Vec<u8>> = missing.iter().map(read).collect::<Result<_, _>>()?;
        let shared = self.process.files.shared[object].as_mut().expect("found or added");
        for (page, bytes) in missing.into_iter().zip(contents) {
            let frame = self.process.space.frames.take().expect("counted before");
            self.mem.write(frame, &bytes);
            shared.frames.insert(page, frame);
        }
        Ok(())
    }

    /// Persistent memory is at the one guest address that belongs to its place in the pool. While a private copy of it
    /// is there, it can be shared at another one.
    fn map_pmem(&mut self, name: &str, hint: u64, len: u64, rights: Rights, flags: u64, offset: u64) -> Answer {
        let offset_bytes = self.pmem_offset(name, offset, len)?;
        let start = PMEM_WINDOW_BASE + offset_bytes;
        let there = self.process.space.areas_in(start, start + len);
        let is_copied = |(_, area): &(u64, Area)| matches!(area.backing, Backing::PmemCopy { .. });
        if !there.is_empty() && there.iter().all(is_copied) && hint != start {
            let start = self.place_mapping(hint, len, flags)?;
            self.process.space.map_area(start, start + len, rights, Backing::Pmem { offset_bytes });
            return Ok(start);
        }
        if flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) != 0 && hint != start {
            return refuse(format!("/pmem/{name} can be mapped at {start:#x} only"));
        }
        if flags & MAP_FIXED != 0 {
            self.unmap(start, start + len)?;
        }
        if !self.process.space.is_free(start, start + len) {
            return refuse(format!("/pmem/{name} is mapped already; it cannot be mapped a second time"));
        }
        self.process.space.map_area(start, start + len, rights, Backing::Pmem { offset_bytes });
        Ok(start)
    }

    /// A mapping whose stores stay in DRAM: a page is copied when it is first written. It lies where any other mapping
    /// could, or, if the program asks for that, where the file would be shared.
    fn map_pmem_copy(&mut self, name: &str, hint: u64, len: u64, rights: Rights, flags: u64, offset: u64) -> Answer {
        let offset_bytes = self.pmem_offset(name, offset, len)?;
        let shared_at = PMEM_WINDOW_BASE + offset_bytes;
        let fixed = flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) != 0;
        let free = self.process.space.is_free(shared_at, shared_at + len);
        let start = match hint == shared_at {
            true if !fixed && !free => self.place_mapping(0, len, flags)?,
            true if !free && flags & MAP_FIXED_NOREPLACE != 0 => return Err(Errno::EEXIST.into()),
            true => {
                self.unmap(shared_at, shared_at + len)?;
                shared_at
            }
            false => self.place_mapping(hint, len, flags)?,
        };
        self.process.space.map_area(start, start + len, rights, Backing::PmemCopy { offset_bytes });
        Ok(start)
    }

    /// The offset in the pmem data area of the byte `offset` of a file, with `len` bytes to be mapped.
    fn pmem_offset(&self, name: &str, offset: u64, len: u64) -> Answer {
        let extent = self.pmem_extent(name);
        let end = offset + len;
        if end > page_up(extent.size_bytes) {
            let size_bytes = extent.size_bytes;
            return refuse(format!(
                "the mapping ends at byte {end} of /pmem/{name}, which has {size_bytes} bytes; set its size first"
            ));
        }
        Ok(extent.offset_bytes + offset)
    }

    /// Chooses the address of a new mapping and frees it if the program insists on it.
    fn place_mapping(&mut self, hint: u64, len: u64, flags: u64) -> Answer {
        if flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) != 0 {
            if !whole_page(hint) {
                return Err(Errno::EINVAL.into());
            }
            let end = hint.checked_add(len).filter(|&end| end <= USER_END).ok_or(Errno::ENOMEM)?;
            if hint < USER_BEGIN {
                return Err(Errno::EPERM.into());
            }
            if !allowed(hint, end) {
                return refuse(format!(
                    "the addresses from {PMEM_WINDOW_BASE:#x} to {PMEM_WINDOW_END:#x} are reserved for files under /pmem/"
                ));
            }
            if flags & MAP_FIXED_NOREPLACE == 0 {
                self.unmap(hint, end)?;
            } else if !self.process.space.is_free(hint, end) {
                return Err(Errno::EEXIST.into());
            }
            return Ok(hint);
        }
        let (hint, space) = (page_down(hint), &mut self.process.space);
        let found = match hint.checked_add(len) {
            Some(_) if hint == 0 => space.find_gap(len),
            Some(end) if allowed(hint, end) && space.is_free(hint, end) => Some(hint),
            _ => space.find_high_gap(len),
        };
        Ok(found.ok_or(Errno::ENOMEM)?)
    }

    pub(super) fn munmap(&mut self, start: u64, len: u64) -> Answer {
        let end = range_end(start, len)?;
        if len == 0 {
            return Err(Errno::EINVAL.into());
        }
        self.unmap(start, end)?;
        Ok(0)
    }

    /// Removes mappings, and shared files that are mapped nowhere any more.
    fn unmap(&mut self, start: u64, end: u64) -> Result<(), Stop> {
        let space = &mut self.process.space;
        space.unmap(start, end, self.mem);
        for object in 0..self.process.files.shared.len() {
            if space.uses_object(object) {
                continue;
            }
            if let Some(shared) = self.process.files.shared[object].take() {
                let written = shared.write_back(&mut self.process.files.root, self.mem);
                for frame in shared.frames.into_values() {
                    space.frames.give_back(frame, self.mem);
                }
                self.process.files.release_unused(shared.file);
                written?;
            }
        }
        Ok(())
    }

    pub(super) fn mremap(&mut self, old: u64, old_len: u64, new_len: u64, flags: u64) -> Answer {
        const MAY_MOVE: u64 = 1;
        if !whole_page(old) || new_len == 0 || old_len == 0 {
            return Err(Errno::EINVAL.into());
        }
        if flags & !MAY_MOVE != 0 {
            return refuse("MREMAP_FIXED and MREMAP_DONTUNMAP are not supported");
        }
        let (old_len, new_len) = (page_up(old_len), page_up(new_len));
        let old_end = old.checked_add(old_len).ok_or(Errno::EINVAL)?;
        let (_, area) = self.process.space.area_at(old).filter(|(_, a)| a.end >= old_end).ok_or(Errno::EFAULT)?;
        let more_bytes = new_len.saturating_sub(old_len);
        if area.backing != Backing::Private && more_bytes > 0 {
            return refuse("mappings of files cannot grow");
        }
        if new_len > USER_END || (area.rights.write && !self.process.space.can_back(more_bytes)) {
            return Err(Errno::ENOMEM.into());
        }
        let kept = old_len.min(new_len);
        if kept < old_len {
            self.unmap(old + kept, old_end)?;
        }
        // A mapping that may move does so even if it need not, as under qemu: later mappings are then at the addresses
        // that they have there.
        let at = if flags & MAY_MOVE != 0 && area.backing == Backing::Private {
            let new = self.process.space.find_gap(new_len).ok_or(Errno::ENOMEM)?;
            self.process.space.relocate(old, new, kept);
            new
        } else {
            old
        };
        let (end, new_end) = (at + kept, at + new_len);
        if end < new_end {
            if !allowed(at, new_end) || !self.process.space.is_free(end, new_end) {
                return Err(Errno::ENOMEM.into());
            }
            self.process.space.map_area(end, new_end, area.rights, Backing::Private);
        }
        Ok(at)
    }

    pub(super) fn mprotect(&mut self, start: u64, len: u64, prot: u64) -> Answer {
        let end = range_end(start, len)?;
        if !self.process.space.is_mapped(start, end) {
            return Err(Errno::ENOMEM.into());
        }
        let rights = Rights::of_prot(prot);
        for (_, area) in self.process.space.areas_in(start, end) {
            if let (Backing::Shared { object, .. }, true) = (area.backing, rights.write)
                && !self.process.files.shared[object].as_ref().is_some_and(|s| s.writable)
            {
                return Err(Errno::EACCES.into());
            }
        }
        self.process.space.protect(start, end, rights);
        Ok(0)
    }

    pub(super) fn madvise(&mut self, start: u64, len: u64, advice: u64) -> Answer {
        const DONTNEED: u64 = 4;
        const POPULATE_WRITE: u64 = 23;
        /// NORMAL, RANDOM, SEQUENTIAL, WILLNEED, FREE, DONTFORK, DOFORK, MERGEABLE, UNMERGEABLE, HUGEPAGE, NOHUGEPAGE,
        /// DONTDUMP, DODUMP, WIPEONFORK, KEEPONFORK, COLD, PAGEOUT: ignoring them is within their contract.
        const ADVICE: [u64; 17] = [0, 1, 2, 3, 8, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21];
        let end = range_end(start, len)?;
        if ![DONTNEED, POPULATE_WRITE].contains(&advice) && !ADVICE.contains(&advice) {
            return Err(Errno::EINVAL.into());
        }
        if !self.process.space.is_mapped(start, end) {
            return Err(Errno::ENOMEM.into());
        }
        if advice == DONTNEED {
            let areas = self.process.space.areas_in(start, end);
            if areas.iter().any(|(_, a)| a.backing == Backing::FileCopy) {
                return refuse("MADV_DONTNEED on a private mapping of a file is not supported");
            }
            self.process.space.discard(start, end, self.mem);
        }
        if advice == POPULATE_WRITE {
            let populated = self.process.space.populate(self.mem, start, end);
            return populated.map_or_else(|fault| Err(no_page(&fault)), |()| Ok(0));
        }
        Ok(0)
    }

    pub(super) fn msync(&mut self, start: u64, len: u64, flags: u64) -> Answer {
        const MS_SYNC: u64 = 4;
        let end = range_end(start, len)?;
        if !self.process.space.is_mapped(start, end) {
            return Err(Errno::ENOMEM.into());
        }
        for (at, area) in self.process.space.areas_in(start, end) {
            match area.backing {
                Backing::Shared { object, .. } => {
                    let shared = self.process.files.shared[object].as_ref().expect("mapped objects stay");
                    shared.write_back(&mut self.process.files.root, self.mem)?;
                }
                Backing::Pmem { offset_bytes } if flags & MS_SYNC != 0 => {
                    let first = self.process.space.map().pmem_base.plus(offset_bytes);
                    self.mem.persist(first, area.end - at);
                }
                Backing::Pmem { .. } | Backing::Private | Backing::FileCopy | Backing::PmemCopy { .. } => {}
            }
        }
        Ok(0)
    }

    /// Nothing is ever swapped out, so every mapped page is there, and locked if that is wanted.
    pub(super) fn mlock(&mut self, start: u64, len: u64) -> Answer {
        let first = start - start % PAGE_BYTES;
        let end = start.checked_add(len).ok_or(Errno::EINVAL)?;
        if self.process.space.is_mapped(first, page_up(end)) { Ok(0) } else { Err(Errno::ENOMEM.into()) }
    }

    pub(super) fn mincore(&mut self, start: u64, len: u64, to: u64) -> Answer {
        let end = range_end(start, len)?;
        if !self.process.space.is_mapped(start, end) {
            return Err(Errno::ENOMEM.into());
        }
        let pages = (end - start) / PAGE_BYTES;
        self.check_range(to, pages)?;
        self.bytes_to(to, &vec![1; pages as usize])?;
        Ok(0)
    }

    pub(super) fn flush_icache(&mut self) -> Answer {
        self.process.space.code_changed();
        Ok(0)
    }
}

/// The error of MADV_POPULATE_WRITE: the mapping forbids writes, or there is no DRAM left.
fn no_page(fault: &AccessFault) -> Stop {
    if fault.why == AccessFaultKind::Protected { Errno::EINVAL.into() } else { Errno::ENOMEM.into() }
}

/// The end of a range in whole pages that starts at a page.
fn range_end(start: u64, len: u64) -> Answer {
    match start.checked_add(page_up(len)) {
        Some(end) if whole_page(start) && end <= USER_END => Ok(end),
        _ => Err(Errno::EINVAL.into()),
    }
}
