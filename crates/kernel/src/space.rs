//! The address space of a process: which virtual pages exist, with which rights, and where they lie.
//!
//! Layout (47-bit user addresses, as a RISC-V kernel with Sv48 gives; stack and mappings where `qemu-riscv64` puts them,
//! since programs that hash pointers or align mappings execute other instructions elsewhere):
//!
//! | from | to | what |
//! | --- | --- | --- |
//! | `0x1_0000` | [`PMEM_WINDOW_BASE`] | the program and its heap (`brk`); hinted mappings |
//! | [`PMEM_WINDOW_BASE`] | [`PMEM_WINDOW_END`] | files under `/pmem/`, each at its offset in the pool; private mappings of them may lie elsewhere, and shared ones while a private one lies here |
//! | [`STACK_TOP`] - 8 MB | [`STACK_TOP`] | stack, with a page below that forbids everything |
//! | [`MAPPINGS_BEGIN`] | | `mmap`, from the bottom up |
//! | | [`USER_END`] | `mmap` with a hint that is taken, from the top down |

mod private_copies;

pub use private_copies::PageCopy;

use crate::frames::Frames;
use crate::table::PageTable;
use crate::{MemoryMap, PhysMemory};
use durasim_isa::{Access, AccessFault, AccessFaultKind};
use durasim_types::{ConfigError, PAGE_BYTES, PhysAddr};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// First address that a program may map; lower ones catch null pointers.
pub(crate) const USER_BEGIN: u64 = 0x1_0000;
/// Guest address of the first byte of the pmem data area: a file at offset `o` is always mapped at this address plus
/// `o`, so that pointers kept in a pool stay valid in later runs.
pub const PMEM_WINDOW_BASE: u64 = 0x10_0000_0000;
/// End of the addresses kept free for persistent memory: 128 GB.
pub(crate) const PMEM_WINDOW_END: u64 = 0x30_0000_0000;
/// One past the stack of the first thread.
pub(crate) const STACK_TOP: u64 = 0x40_0080_1000;
/// The address from which mappings without an address of their own grow upwards. The page between is where other
/// systems keep the return from signal handlers.
pub(crate) const MAPPINGS_BEGIN: u64 = 0x40_0080_2000;
/// One past the last user address: 2^47.
pub const USER_END: u64 = 0x8000_0000_0000;

/// Levels of the page table: those of Sv48, which addresses of 47 bits need.
pub const PAGE_TABLE_LEVELS: u32 = 4;

/// The rights of a program on a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rights {
    /// Loads.
    pub read: bool,
    /// Stores and atomics.
    pub write: bool,
    /// Instruction fetch.
    pub execute: bool,
}

impl Rights {
    pub(crate) const READ_WRITE: Rights = Rights { read: true, write: true, execute: false };

    /// Rights that allow what either allows.
    pub(crate) fn union(self, other: Rights) -> Rights {
        Rights {
            read: self.read || other.read,
            write: self.write || other.write,
            execute: self.execute || other.execute,
        }
    }

    /// Whether `access` is allowed. RISC-V has no write-only pages: what can be written can be read.
    pub fn allow(self, access: Access) -> bool {
        match access {
            Access::Read => self.read || self.write,
            Access::Write => self.write,
            Access::Execute => self.execute,
        }
    }

    fn covers(self, other: Rights) -> bool {
        [Access::Read, Access::Write, Access::Execute].into_iter().all(|a| self.allow(a) || !other.allow(a))
    }
}

/// The backing of the pages of an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Backing {
    /// DRAM frames of its own, taken at the first touch.
    Private,
    /// `Private`, with frames that start as a copy of a file.
    FileCopy,
    /// Pages of the pmem data area itself, from this offset on.
    Pmem { offset_bytes: u64 },
    /// Pages of the pmem data area from this offset on, read there until they are written: then DRAM frames of its own.
    PmemCopy { offset_bytes: u64 },
    /// Frames that belong to a shared file mapping; `first_page` is the page of the file at the start of the area.
    Shared { object: usize, first_page: u64 },
}

/// A run of pages with equal rights and backing.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Area {
    pub(crate) end: u64,
    pub(crate) rights: Rights,
    pub(crate) backing: Backing,
}

/// The virtual address space of a process, in pages of 4 KB.
///
/// A user may cache what [`AddressSpace::translate`] returned for a page and an access until [`AddressSpace::epoch`]
/// changes; failures may not be cached. [`AddressSpace::code_epoch`] does the same for decoded instructions.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AddressSpace {
    map: MemoryMap,
    areas: BTreeMap<u64, Area>,
    /// Frames of touched pages of DRAM, by virtual page number.
    pages: PageTable,
    pub(crate) frames: Frames,
    /// The places of pages of the page table that a walk has read: by level, and by the addresses that they translate.
    /// Their contents are in `areas` and `pages`.
    tables: BTreeMap<(u32, u64), PhysAddr>,
    /// The address of the next mapping without an address of its own.
    next_mapping: u64,
    epoch: u64,
    code_epoch: u64,
    /// Pages that are yet to be reported to a user of cached translations.
    #[serde(skip)]
    lost: Vec<Range<u64>>,
    /// Private copies of pages of persistent memory that are yet to be reported to the machine.
    #[serde(skip)]
    copies: Vec<PageCopy>,
    dram_spent: bool,
}

pub(crate) const fn page_down(addr: u64) -> u64 {
    addr & !(PAGE_BYTES - 1)
}

/// Rounds up to a page; saturates so that absurd sizes stay absurd instead of wrapping to small ones.
pub(crate) const fn page_up(addr: u64) -> u64 {
    page_down(addr.saturating_add(PAGE_BYTES - 1))
}

/// The memory at a virtual address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Viewed {
    /// This physical address. Bytes up to the end of the page follow contiguously.
    Frame(PhysAddr),
    /// Zeros up to the end of the page, which was never touched.
    Zeros,
}

impl Viewed {
    /// The physical address, if there is one.
    pub fn frame(self) -> Option<PhysAddr> {
        match self {
            Viewed::Frame(phys) => Some(phys),
            Viewed::Zeros => None,
        }
    }
}

impl AddressSpace {
    /// An empty address space on the memories of `map`.
    pub(crate) fn new(map: MemoryMap) -> Result<Self, ConfigError> {
        if [map.dram_base.0, map.dram_bytes, map.pmem_base.0, map.pmem_data_bytes].iter().any(|x| x % PAGE_BYTES != 0) {
            return Err(ConfigError::new("memory", "DRAM and pmem must start and end at multiples of 4096 bytes"));
        }
        if map.pmem_data_bytes > PMEM_WINDOW_END - PMEM_WINDOW_BASE {
            return Err(ConfigError::new("memory", "pools may use at most 128 GB of persistent memory"));
        }
        Ok(AddressSpace {
            frames: Frames::new(&map),
            map,
            areas: BTreeMap::new(),
            pages: PageTable::default(),
            tables: BTreeMap::new(),
            lost: Vec::new(),
            copies: Vec::new(),
            next_mapping: MAPPINGS_BEGIN,
            epoch: 0,
            code_epoch: 0,
            dram_spent: false,
        })
    }

    /// Moves the space to other memories, which start where the ones before did.
    pub(crate) fn move_to(&mut self, map: MemoryMap) -> Result<(), ConfigError> {
        let starts = |map: &MemoryMap| (map.dram_base, map.pmem_base);
        assert!(starts(&self.map) == starts(&map), "memories that start elsewhere");
        if !self.frames.resize(&map) {
            let problem = format!("the program uses more than the {} bytes of the DRAM", map.dram_bytes);
            return Err(ConfigError::new("dram.capacity_mib", problem));
        }
        self.map = map;
        Ok(())
    }

    /// The physical address of `vaddr`, if `access` is allowed there. The first touch of a page of DRAM gives it
    /// a zeroed frame. Bytes up to the end of the page follow contiguously.
    ///
    /// A fault of the kind [`AccessFaultKind::CopyOnWrite`] is no fault of the program: it asks for
    /// [`AddressSpace::resolve_copy_on_write`] and a second try.
    pub fn translate(&mut self, vaddr: u64, access: Access) -> Result<PhysAddr, AccessFault> {
        let fault = |why| AccessFault { addr: vaddr, access, why };
        let (start, area) = self.area_at(vaddr).ok_or(fault(AccessFaultKind::Unmapped))?;
        if !area.rights.allow(access) {
            return Err(fault(AccessFaultKind::Protected));
        }
        if let Backing::Pmem { offset_bytes } = area.backing {
            return Ok(self.map.pmem_base.plus(offset_bytes + (vaddr - start)));
        }
        let page = vaddr / PAGE_BYTES;
        let frame = match (self.pages.get(page), area.backing) {
            (Some(frame), _) => frame,
            (None, Backing::PmemCopy { .. }) if access == Access::Write => {
                return Err(fault(AccessFaultKind::CopyOnWrite));
            }
            (None, Backing::PmemCopy { offset_bytes }) => {
                return Ok(self.map.pmem_base.plus(offset_bytes + (vaddr - start)));
            }
            (None, _) => self.back_page(page).ok_or(fault(AccessFaultKind::Unmapped))?,
        };
        Ok(frame.plus(vaddr % PAGE_BYTES))
    }

    /// The memory at a virtual address, for a debugger, whatever the program may do there: nothing is touched. `None`: nothing is
    /// mapped. [`Viewed::Zeros`]: a page that has no frame yet.
    pub fn view(&self, vaddr: u64) -> Option<Viewed> {
        let (start, area) = self.area_at(vaddr)?;
        let from_pmem = |offset_bytes: u64| Viewed::Frame(self.map.pmem_base.plus(offset_bytes + (vaddr - start)));
        if let Backing::Pmem { offset_bytes } = area.backing {
            return Some(from_pmem(offset_bytes));
        }
        Some(match (self.pages.get(vaddr / PAGE_BYTES), area.backing) {
            (Some(frame), _) => Viewed::Frame(frame.plus(vaddr % PAGE_BYTES)),
            (None, Backing::PmemCopy { offset_bytes }) => from_pmem(offset_bytes),
            (None, _) => Viewed::Zeros,
        })
    }

    /// The program runs on this processor now: first touches take frames from its list.
    #[inline]
    pub fn run_on(&mut self, processor: usize) {
        self.frames.run_on(processor);
    }

    /// Backs a page that has no frame with a zeroed one, or notes that the DRAM is used up.
    fn back_page(&mut self, page: u64) -> Option<PhysAddr> {
        let frame = self.frames.take();
        match frame {
            Some(frame) => self.pages.insert(page, frame),
            None => self.dram_spent = true,
        }
        frame
    }

    /// Changes whenever a mapping is removed, moved or loses a right: users then drop cached translations.
    #[inline]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The pages for which [`AddressSpace::epoch`] has changed since this was asked last: TLBs drop their translations.
    pub fn take_lost(&mut self) -> Vec<Range<u64>> {
        std::mem::take(&mut self.lost)
    }

    /// The address from which a walk reads the entry of the page table for `vaddr` at a level, of
    /// [`PAGE_TABLE_LEVELS`], the leaves being level 0. Pages of the table are in frames of the DRAM, which they take
    /// when they are first read.
    ///
    /// # Errors
    /// The DRAM is used up.
    pub fn table_entry(&mut self, vaddr: u64, level: u32) -> Result<PhysAddr, AccessFault> {
        // A table has 512 entries of eight bytes.
        let shift = PAGE_BYTES.trailing_zeros() + 9 * level;
        let table = (level, vaddr >> (shift + 9));
        let frame = match self.tables.get(&table) {
            Some(&frame) => frame,
            None => {
                let Some(frame) = self.frames.take() else {
                    self.dram_spent = true;
                    return Err(AccessFault { addr: vaddr, access: Access::Read, why: AccessFaultKind::Unmapped });
                };
                self.tables.insert(table, frame);
                frame
            }
        };
        Ok(frame.plus((vaddr >> shift) % 512 * 8))
    }

    /// Changes whenever an executable mapping changes or the program asks for it: users then drop decoded code.
    #[inline]
    pub fn code_epoch(&self) -> u64 {
        self.code_epoch
    }

    /// One sentence about a fault that [`AddressSpace::translate`] returned.
    pub fn describe(&self, fault: &AccessFault) -> String {
        let verb = match fault.access {
            Access::Read => "load from",
            Access::Write => "store to",
            Access::Execute => "instruction fetch from",
        };
        match fault.why {
            AccessFaultKind::Unmapped if self.dram_spent => {
                format!("the program needs more than the {} bytes of DRAM of the machine", self.map.dram_bytes)
            }
            AccessFaultKind::Unmapped => format!("{verb} {:#x}, where nothing is mapped", fault.addr),
            AccessFaultKind::Protected => format!("{verb} {:#x}, which its mapping forbids", fault.addr),
            AccessFaultKind::Misaligned => format!("{verb} {:#x}, which is not aligned", fault.addr),
            AccessFaultKind::CopyOnWrite => format!("{verb} {:#x}, whose page is not copied yet", fault.addr),
        }
    }

    /// Whether a fault was due to the lack of DRAM, not to the program's pointer.
    pub(crate) fn dram_spent(&self) -> bool {
        self.dram_spent
    }

    /// The memories below.
    pub(crate) fn map(&self) -> &MemoryMap {
        &self.map
    }

    /// Copies guest memory at `vaddr` to `bytes` with the rights of the program.
    pub fn read(&mut self, mem: &mut dyn PhysMemory, vaddr: u64, bytes: &mut [u8]) -> Result<(), AccessFault> {
        let mut done = 0;
        while done < bytes.len() {
            let here = vaddr.wrapping_add(done as u64);
            let end = bytes.len().min(done + (PAGE_BYTES - here % PAGE_BYTES) as usize);
            let addr = self.translate(here, Access::Read)?;
            mem.read(addr, &mut bytes[done..end]);
            done = end;
        }
        Ok(())
    }

    /// Copies `bytes` to guest memory at `vaddr` with the rights of the program.
    pub fn write(&mut self, mem: &mut dyn PhysMemory, vaddr: u64, bytes: &[u8]) -> Result<(), AccessFault> {
        let mut done = 0;
        while done < bytes.len() {
            let here = vaddr.wrapping_add(done as u64);
            let end = bytes.len().min(done + (PAGE_BYTES - here % PAGE_BYTES) as usize);
            let addr = match self.translate(here, Access::Write) {
                Err(AccessFault { why: AccessFaultKind::CopyOnWrite, .. }) => {
                    self.resolve_copy_on_write(mem, here)?;
                    self.translate(here, Access::Write)?
                }
                found => found?,
            };
            mem.write(addr, &bytes[done..end]);
            done = end;
        }
        Ok(())
    }

    /// Fills private pages whatever the program may do with them: loading of segments and files.
    pub(crate) fn fill(&mut self, mem: &mut dyn PhysMemory, vaddr: u64, bytes: &[u8]) -> Result<(), AccessFault> {
        let mut done = 0;
        while done < bytes.len() {
            let here = vaddr + done as u64;
            let end = bytes.len().min(done + (PAGE_BYTES - here % PAGE_BYTES) as usize);
            let spent = AccessFault { addr: here, access: Access::Write, why: AccessFaultKind::Unmapped };
            let page = here / PAGE_BYTES;
            let frame = self.pages.get(page).or_else(|| self.back_page(page)).ok_or(spent)?;
            mem.write(frame.plus(here % PAGE_BYTES), &bytes[done..end]);
            done = end;
        }
        Ok(())
    }

    /// The area that holds `vaddr`, with its start.
    pub(crate) fn area_at(&self, vaddr: u64) -> Option<(u64, Area)> {
        let (&start, &area) = self.areas.range(..=vaddr).next_back()?;
        (vaddr < area.end).then_some((start, area))
    }

    /// The areas that touch `[start, end)`, clipped to it, in order.
    pub(crate) fn areas_in(&self, start: u64, end: u64) -> Vec<(u64, Area)> {
        let first = self.area_at(start).map_or(start, |(s, _)| s);
        let clip = |(&s, &a): (&u64, &Area)| {
            let backing = shifted(a.backing, start.saturating_sub(s));
            (s.max(start), Area { end: a.end.min(end), backing, ..a })
        };
        self.areas.range(first..end).map(clip).filter(|(s, area)| *s < area.end).collect()
    }

    /// Whether no page of `[start, end)` is mapped.
    pub(crate) fn is_free(&self, start: u64, end: u64) -> bool {
        self.areas_in(start, end).is_empty()
    }

    /// Whether every page of `[start, end)` is mapped.
    pub(crate) fn is_mapped(&self, start: u64, end: u64) -> bool {
        let mut next = start;
        for (s, area) in self.areas_in(start, end) {
            if s != next {
                return false;
            }
            next = area.end;
        }
        next == end
    }

    /// Whether any area is backed by the shared file mapping `object`.
    pub(crate) fn uses_object(&self, object: usize) -> bool {
        self.areas.values().any(|a| matches!(a.backing, Backing::Shared { object: o, .. } if o == object))
    }

    /// Whether any mapping, shared or private, shows bytes of `[start, end)` of the pmem data area.
    pub(crate) fn maps_pmem(&self, start: u64, end: u64) -> bool {
        self.areas.iter().any(|(&at, area)| {
            let offset_bytes = match area.backing {
                Backing::Pmem { offset_bytes } | Backing::PmemCopy { offset_bytes } => offset_bytes,
                _ => return false,
            };
            start < end && offset_bytes < page_up(end) && start < offset_bytes + (area.end - at)
        })
    }

    /// A free range of `bytes` (whole pages) for a mapping without an address of its own: after the last such mapping.
    /// As under qemu in user mode, what lies between and was given back is not used again.
    pub(crate) fn find_gap(&mut self, bytes: u64) -> Option<u64> {
        let wanted = self.next_mapping;
        let start = match wanted.checked_add(bytes) {
            Some(end) if end <= USER_END && self.is_free(wanted, end) => wanted,
            _ => self.find_high_gap(bytes)?,
        };
        self.next_mapping = start + bytes;
        Some(start)
    }

    /// A free range of `bytes` (whole pages) near the end of the user addresses, for a mapping whose hint is taken.
    ///
    /// Under qemu the host chooses, at random and from the top down. What a program does with the mapping can depend on
    /// how far it is from a multiple of 64 KB; so it is always in the middle between two.
    pub(crate) fn find_high_gap(&self, bytes: u64) -> Option<u64> {
        const STEP: u64 = 16 * PAGE_BYTES;
        const MIDDLE: u64 = 8 * PAGE_BYTES;
        let below = |top: u64| top.checked_sub(bytes + MIDDLE).map(|start| start - start % STEP + MIDDLE);
        let mut top = USER_END;
        for (&start, area) in self.areas.iter().rev() {
            if below(top).is_some_and(|start| start >= area.end) {
                break;
            }
            top = top.min(start);
        }
        below(top).filter(|&start| start >= MAPPINGS_BEGIN)
    }

    /// Adds `[start, end)`, which must be free.
    pub(crate) fn map_area(&mut self, start: u64, end: u64, rights: Rights, backing: Backing) {
        debug_assert!(
            start < end
                && start.is_multiple_of(PAGE_BYTES)
                && end.is_multiple_of(PAGE_BYTES)
                && self.is_free(start, end)
        );
        if rights.execute {
            self.code_epoch += 1;
        }
        self.areas.insert(start, Area { end, rights, backing });
        self.merge_around(start, end);
    }

    /// Maps existing frames at the pages from `start` on: those of a shared file mapping.
    pub(crate) fn install(&mut self, start: u64, frames: impl IntoIterator<Item = PhysAddr>) {
        for (page, frame) in (start / PAGE_BYTES..).zip(frames) {
            self.pages.insert(page, frame);
        }
    }

    /// Removes whatever is mapped in `[start, end)` and gives private frames back.
    pub(crate) fn unmap(&mut self, start: u64, end: u64, mem: &mut dyn PhysMemory) {
        self.split(start);
        self.split(end);
        for (from, area) in self.areas_in(start, end) {
            self.areas.remove(&from);
            self.lose(from, area);
            self.drop_pages(from, area, mem);
        }
    }

    /// Empties the private pages of `[start, end)`: they read as zero afterwards, copies as what they are copies of.
    pub(crate) fn discard(&mut self, start: u64, end: u64, mem: &mut dyn PhysMemory) {
        for (from, area) in self.areas_in(start, end) {
            if matches!(area.backing, Backing::Private | Backing::PmemCopy { .. }) {
                self.lose(from, area);
                self.drop_pages(from, area, mem);
            }
        }
    }

    fn drop_pages(&mut self, start: u64, area: Area, mem: &mut dyn PhysMemory) {
        let range = start / PAGE_BYTES..area.end / PAGE_BYTES;
        for (_, frame) in self.pages.remove(range) {
            if matches!(area.backing, Backing::Private | Backing::FileCopy | Backing::PmemCopy { .. }) {
                self.frames.give_back(frame, mem);
            }
            if matches!(area.backing, Backing::PmemCopy { .. }) {
                self.copies.push(PageCopy { frame, original: None });
            }
        }
    }

    /// Gives `[start, end)`, which must be mapped, other rights.
    pub(crate) fn protect(&mut self, start: u64, end: u64, rights: Rights) {
        self.split(start);
        self.split(end);
        for (from, area) in self.areas_in(start, end) {
            if !rights.covers(area.rights) {
                self.lose(from, area);
            }
            if rights.execute {
                self.code_epoch += 1;
            }
            self.areas.insert(from, Area { rights, ..area });
        }
        self.merge_around(start, end);
    }

    /// Moves the pages of `[from, from + bytes)`, one private area, to the free range at `to`.
    pub(crate) fn relocate(&mut self, from: u64, to: u64, bytes: u64) {
        self.split(from);
        self.split(from + bytes);
        for (start, area) in self.areas_in(from, from + bytes) {
            self.areas.remove(&start);
            self.lose(start, area);
            self.map_area(start - from + to, area.end - from + to, area.rights, area.backing);
        }
        let range = from / PAGE_BYTES..(from + bytes) / PAGE_BYTES;
        for (page, frame) in self.pages.remove(range) {
            self.pages.insert(page - from / PAGE_BYTES + to / PAGE_BYTES, frame);
        }
    }

    /// The program changed code in place and says so.
    pub(crate) fn code_changed(&mut self) {
        self.code_epoch += 1;
    }

    /// Whether this many bytes could ever be backed by the DRAM that is left.
    pub(crate) fn can_back(&self, bytes: u64) -> bool {
        bytes / PAGE_BYTES <= self.frames.available()
    }

    /// Translations of an area that begins at `start` have changed.
    fn lose(&mut self, start: u64, area: Area) {
        self.lose_pages(start, area.end);
        if area.rights.execute {
            self.code_epoch += 1;
        }
    }

    fn lose_pages(&mut self, start: u64, end: u64) {
        self.epoch += 1;
        self.lost.push(start / PAGE_BYTES..end.div_ceil(PAGE_BYTES));
    }

    /// Makes `at` a boundary between areas.
    fn split(&mut self, at: u64) {
        let Some((start, area)) = self.area_at(at) else { return };
        if start < at {
            self.areas.insert(start, Area { end: at, ..area });
            self.areas.insert(at, Area { backing: shifted(area.backing, at - start), ..area });
        }
    }

    /// Joins equal private areas from the neighbour before `start` to the one after `end`, as a kernel does: a later
    /// `mremap` or `mprotect` then sees one area.
    fn merge_around(&mut self, start: u64, end: u64) {
        let mut at = self.area_at(start.saturating_sub(1)).map_or(start, |(s, _)| s);
        while at <= end {
            let Some(&area) = self.areas.get(&at) else { break };
            match self.areas.get(&area.end) {
                Some(&next) if alike(&area, &next) => {
                    self.areas.remove(&area.end);
                    self.areas.insert(at, Area { end: next.end, ..area });
                }
                _ => at = area.end,
            }
        }
    }
}

fn alike(a: &Area, b: &Area) -> bool {
    let placed = matches!(a.backing, Backing::Shared { .. } | Backing::Pmem { .. } | Backing::PmemCopy { .. });
    a.rights == b.rights && a.backing == b.backing && !placed
}

/// The backing of the part of an area that starts `bytes` after its start.
fn shifted(backing: Backing, bytes: u64) -> Backing {
    match backing {
        Backing::Shared { object, first_page } => {
            Backing::Shared { object, first_page: first_page + bytes / PAGE_BYTES }
        }
        Backing::Pmem { offset_bytes } => Backing::Pmem { offset_bytes: offset_bytes + bytes },
        Backing::PmemCopy { offset_bytes } => Backing::PmemCopy { offset_bytes: offset_bytes + bytes },
        other => other,
    }
}
