//! Memory without a machine, for functional runs and tests.

use crate::PhysMemory;
use durasim_types::{PAGE_BYTES, PhysAddr};
use std::collections::BTreeMap;

type Page = Box<[u8; PAGE_BYTES as usize]>;

/// A sparse physical memory without caches, all zero at the start.
#[derive(Clone, Debug, Default)]
pub struct FlatMemory {
    pages: BTreeMap<u64, Page>,
}

impl FlatMemory {
    /// The pages that were ever written, by ascending physical address of their first byte.
    pub fn pages(&self) -> impl Iterator<Item = (PhysAddr, &[u8; PAGE_BYTES as usize])> {
        self.pages.iter().map(|(&number, page)| (PhysAddr(number * PAGE_BYTES), &**page))
    }
}

/// Calls `visit(page number, offset in the page, start and end in the buffer)` for each page of the range.
fn for_pages(addr: PhysAddr, len: usize, mut visit: impl FnMut(u64, usize, usize, usize)) {
    let mut done = 0;
    while done < len {
        let here = addr.0 + done as u64;
        let offset = (here % PAGE_BYTES) as usize;
        let end = len.min(done + PAGE_BYTES as usize - offset);
        visit(here / PAGE_BYTES, offset, done, end);
        done = end;
    }
}

impl PhysMemory for FlatMemory {
    fn read(&mut self, addr: PhysAddr, bytes: &mut [u8]) {
        for_pages(addr, bytes.len(), |number, offset, start, end| match self.pages.get(&number) {
            Some(page) => bytes[start..end].copy_from_slice(&page[offset..offset + end - start]),
            None => bytes[start..end].fill(0),
        });
    }

    fn write(&mut self, addr: PhysAddr, bytes: &[u8]) {
        for_pages(addr, bytes.len(), |number, offset, start, end| {
            let page = self.pages.entry(number).or_insert_with(|| Box::new([0; PAGE_BYTES as usize]));
            page[offset..offset + end - start].copy_from_slice(&bytes[start..end]);
        });
    }

    /// There are no caches.
    fn persist(&mut self, _: PhysAddr, _: u64) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_cross_pages() {
        let mut memory = FlatMemory::default();
        memory.write(PhysAddr(4090), &[7; 20]);
        let mut back = [1; 24];
        memory.read(PhysAddr(4088), &mut back);
        assert_eq!(back[..2], [0, 0]);
        assert_eq!(back[2..22], [7; 20]);
        assert_eq!(back[22..], [0, 0]);
        assert_eq!(memory.pages().count(), 2);
    }
}
