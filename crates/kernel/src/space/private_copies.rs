//! Private copies of pages of persistent memory: a page of a private mapping is in the pool until it is first written,
//! and in a frame of the DRAM from then on.

use super::{AddressSpace, Backing, page_down};
use crate::PhysMemory;
use durasim_isa::{Access, AccessFault, AccessFaultKind};
use durasim_types::{PAGE_BYTES, PhysAddr};

/// A frame of the DRAM that has become the private copy of a page of persistent memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageCopy {
    /// The frame.
    pub frame: PhysAddr,
    /// The page; `None`: the frame is none any more.
    pub original: Option<PhysAddr>,
}

impl AddressSpace {
    /// Gives the page that holds `vaddr`, on which [`AccessFaultKind::CopyOnWrite`] was reported, a copy in DRAM. The epoch
    /// changes: cached translations still lead to the original. A page that can be written already stays as it is.
    ///
    /// # Errors
    /// A fault of the program if the page cannot be written after all, or the DRAM is used up.
    pub fn resolve_copy_on_write(&mut self, mem: &mut dyn PhysMemory, vaddr: u64) -> Result<(), AccessFault> {
        match self.translate(vaddr, Access::Write) {
            Err(AccessFault { why: AccessFaultKind::CopyOnWrite, .. }) => {}
            other => return other.map(drop),
        }
        let mut bytes = [0; PAGE_BYTES as usize];
        let original = self.translate(page_down(vaddr), Access::Read)?;
        mem.read(original, &mut bytes);
        let spent = AccessFault { addr: vaddr, access: Access::Write, why: AccessFaultKind::Unmapped };
        let frame = self.back_page(vaddr / PAGE_BYTES).ok_or(spent)?;
        mem.write(frame, &bytes);
        self.lose_pages(vaddr, vaddr + 1);
        self.copies.push(PageCopy { frame, original: Some(original) });
        Ok(())
    }

    /// Writes no byte of `[start, end)`, but gives its pages what a first write would give them: a frame, or a copy in DRAM.
    ///
    /// # Errors
    /// The fault of the first page that cannot be written, or for which there is no DRAM. Pages before it stay as they have become.
    pub fn populate(&mut self, mem: &mut dyn PhysMemory, start: u64, end: u64) -> Result<(), AccessFault> {
        let populated =
            (start..end).step_by(PAGE_BYTES as usize).try_for_each(|page| self.resolve_copy_on_write(mem, page));
        // The program is notified, and continues: what it does wrong later is no lack of DRAM.
        self.dram_spent = false;
        populated
    }

    /// The pages that have got a private copy, or lost it, since this was asked last, in that order.
    pub fn take_copies(&mut self) -> Vec<PageCopy> {
        std::mem::take(&mut self.copies)
    }

    /// All pages that have a private copy now, in the order of their addresses.
    pub fn private_copies(&self) -> Vec<PageCopy> {
        let mut copies = Vec::new();
        for (&start, area) in &self.areas {
            let Backing::PmemCopy { offset_bytes } = area.backing else { continue };
            for page in (start..area.end).step_by(PAGE_BYTES as usize) {
                if let Some(frame) = self.pages.get(page / PAGE_BYTES) {
                    let original = Some(self.map.pmem_base.plus(offset_bytes + (page - start)));
                    copies.push(PageCopy { frame, original });
                }
            }
        }
        copies
    }
}
