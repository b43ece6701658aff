//! Sparse memory contents with cheap copies: pages are shared until one side writes.

use crate::{LINE_BYTES, Line, LineAddr, PAGE_BYTES, PhysAddr};
use std::hash::Hasher;
use std::sync::Arc;

mod saved;

/// Children of an inner node. Small, since the first write below a shared node copies it: 64 reference counts.
const FAN_OUT: usize = 64;
const PAGES_PER_BRANCH: usize = FAN_OUT * FAN_OUT;
type Page = [u8; PAGE_BYTES as usize];
type Leaf = [Option<Arc<Page>>; FAN_OUT];
type Branch = [Option<Arc<Leaf>>; FAN_OUT];

/// A range of physical memory that reads as zero until written. `clone` copies no page, and of the tree above them no
/// more than a word for each 16 MB below the highest page written.
#[derive(Clone, Debug, Default)]
pub struct Pages {
    base: u64,
    size_bytes: u64,
    branches: Vec<Option<Arc<Branch>>>,
}

impl Pages {
    /// More than any memory has: 2^48 bytes.
    const LARGEST_BYTES: u64 = 1 << 48;

    /// Memory from `base` on, which must be page-aligned.
    pub fn new(base: PhysAddr, size_bytes: u64) -> Self {
        assert!(base.0.is_multiple_of(PAGE_BYTES), "memory at {base} is not page-aligned");
        Pages { base: base.0, size_bytes, branches: Vec::new() }
    }

    /// The first address.
    pub const fn base(&self) -> PhysAddr {
        PhysAddr(self.base)
    }

    /// The capacity in bytes.
    pub const fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Whether the byte at `addr` belongs to this memory.
    #[inline]
    pub const fn contains(&self, addr: PhysAddr) -> bool {
        addr.0.wrapping_sub(self.base) < self.size_bytes
    }

    #[inline]
    fn page(&self, index: u64) -> Option<&Page> {
        let index = index as usize;
        let branch = self.branches.get(index / PAGES_PER_BRANCH)?.as_deref()?;
        let leaf = branch[index / FAN_OUT % FAN_OUT].as_deref()?;
        leaf[index % FAN_OUT].as_deref()
    }

    #[inline]
    fn page_mut(&mut self, index: u64) -> &mut Page {
        Arc::make_mut(self.slot(index).get_or_insert_with(|| Arc::new([0; PAGE_BYTES as usize])))
    }

    /// The place of the page of this number, whether it exists or not.
    #[inline]
    fn slot(&mut self, index: u64) -> &mut Option<Arc<Page>> {
        let index = index as usize;
        if index / PAGES_PER_BRANCH >= self.branches.len() {
            self.branches.resize(index / PAGES_PER_BRANCH + 1, None);
        }
        let branch = self.branches[index / PAGES_PER_BRANCH].get_or_insert_with(|| Arc::new([const { None }; FAN_OUT]));
        let leaf =
            Arc::make_mut(branch)[index / FAN_OUT % FAN_OUT].get_or_insert_with(|| Arc::new([const { None }; FAN_OUT]));
        &mut Arc::make_mut(leaf)[index % FAN_OUT]
    }

    fn offset(&self, addr: PhysAddr, len: u64) -> u64 {
        let offset = addr.0.wrapping_sub(self.base);
        assert!(
            offset < self.size_bytes && len <= self.size_bytes - offset,
            "access to {len} bytes at {addr}, outside the memory of {} bytes at {:#x}",
            self.size_bytes,
            self.base
        );
        offset
    }

    /// Reads `bytes.len()` bytes at `addr`.
    ///
    /// # Panics
    /// If the range is not inside this memory.
    pub fn read(&self, addr: PhysAddr, bytes: &mut [u8]) {
        let mut offset = self.offset(addr, bytes.len() as u64);
        let mut rest = bytes;
        while !rest.is_empty() {
            let at = (offset % PAGE_BYTES) as usize;
            let n = rest.len().min(PAGE_BYTES as usize - at);
            let (now, later) = rest.split_at_mut(n);
            match self.page(offset / PAGE_BYTES) {
                Some(page) => now.copy_from_slice(&page[at..at + n]),
                None => now.fill(0),
            }
            rest = later;
            offset += n as u64;
        }
    }

    /// Writes `bytes` at `addr`.
    ///
    /// # Panics
    /// If the range is not inside this memory.
    pub fn write(&mut self, addr: PhysAddr, bytes: &[u8]) {
        let mut offset = self.offset(addr, bytes.len() as u64);
        let mut rest = bytes;
        while !rest.is_empty() {
            let at = (offset % PAGE_BYTES) as usize;
            let n = rest.len().min(PAGE_BYTES as usize - at);
            self.page_mut(offset / PAGE_BYTES)[at..at + n].copy_from_slice(&rest[..n]);
            rest = &rest[n..];
            offset += n as u64;
        }
    }

    /// The page that holds `addr`, if it was ever written; a copy of the reference, not of the bytes.
    ///
    /// # Panics
    /// If the address is not in this memory.
    pub fn share_page(&self, addr: PhysAddr) -> Option<Arc<[u8; PAGE_BYTES as usize]>> {
        let index = (self.offset(addr, 1) / PAGE_BYTES) as usize;
        let leaf = self.branches.get(index / PAGES_PER_BRANCH)?.as_deref()?[index / FAN_OUT % FAN_OUT].as_deref()?;
        leaf[index % FAN_OUT].clone()
    }

    /// Takes the page that holds `addr` away, which then reads as never written.
    ///
    /// # Panics
    /// If the address is not in this memory.
    pub fn take_page(&mut self, addr: PhysAddr) -> Option<Arc<[u8; PAGE_BYTES as usize]>> {
        let index = (self.offset(addr, 1) / PAGE_BYTES) as usize;
        let branch = self.branches.get_mut(index / PAGES_PER_BRANCH)?.as_mut()?;
        // A missing page is not worth a copy of a shared node.
        branch[index / FAN_OUT % FAN_OUT].as_ref()?[index % FAN_OUT].as_ref()?;
        let leaf = Arc::make_mut(branch)[index / FAN_OUT % FAN_OUT].as_mut()?;
        Arc::make_mut(leaf)[index % FAN_OUT].take()
    }

    /// Puts a page in the place of the one that holds `addr`.
    ///
    /// # Panics
    /// If the address is not in this memory.
    pub fn put_page(&mut self, addr: PhysAddr, page: Arc<[u8; PAGE_BYTES as usize]>) {
        let offset = self.offset(addr, 1);
        *self.slot(offset / PAGE_BYTES) = Some(page);
    }

    /// Reads a line.
    #[inline]
    pub fn line(&self, line: LineAddr) -> Line {
        let mut data = [0; LINE_BYTES as usize];
        self.read(line.base(), &mut data);
        data
    }

    /// Writes those bytes of a line whose bit in `mask` is set.
    pub fn write_masked(&mut self, line: LineAddr, mask: u64, data: &Line) {
        if mask == u64::MAX {
            self.write(line.base(), data);
            return;
        }
        let offset = self.offset(line.base(), LINE_BYTES);
        let page = self.page_mut(offset / PAGE_BYTES);
        let at = (offset % PAGE_BYTES) as usize;
        for byte in 0..LINE_BYTES as usize {
            if mask >> byte & 1 == 1 {
                page[at + byte] = data[byte];
            }
        }
    }

    /// Reads a little-endian word of eight bytes.
    pub fn read_u64(&self, addr: PhysAddr) -> u64 {
        let mut bytes = [0; 8];
        self.read(addr, &mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// The pages that were ever written, with their addresses, in order.
    pub fn touched(&self) -> impl Iterator<Item = (PhysAddr, &[u8])> {
        self.touched_pages().map(|(addr, page)| (addr, page.as_slice()))
    }

    fn touched_pages(&self) -> impl Iterator<Item = (PhysAddr, &Arc<Page>)> {
        self.branches.iter().enumerate().flat_map(move |(b, branch)| {
            let leaves = branch.iter().flat_map(|branch| branch.iter()).enumerate();
            leaves.flat_map(move |(l, leaf)| {
                leaf.iter().flat_map(|leaf| leaf.iter()).enumerate().filter_map(move |(p, page)| {
                    let index = ((b * FAN_OUT + l) * FAN_OUT + p) as u64;
                    page.as_ref().map(|page| (PhysAddr(self.base + index * PAGE_BYTES), page))
                })
            })
        })
    }

    /// Shows the written pages of `other` that begin before `end`; they are shared, not copied.
    ///
    /// # Panics
    /// If one of them is not inside this memory.
    pub fn share_from(&mut self, other: &Pages, end: PhysAddr) {
        for (addr, page) in other.touched_pages().take_while(|(addr, _)| *addr < end) {
            self.put_page(addr, page.clone());
        }
    }

    /// Whether the page that holds `addr` was ever written.
    pub fn is_touched(&self, addr: PhysAddr) -> bool {
        self.page(self.offset(addr, 1) / PAGE_BYTES).is_some()
    }

    /// Zeroes everything from `addr` on; whole pages count as never written again.
    pub fn clear_from(&mut self, addr: PhysAddr) {
        let offset = self.offset(addr, 0);
        let (last_kept, kept_bytes) = (offset / PAGE_BYTES, (offset % PAGE_BYTES) as usize);
        if kept_bytes > 0 && self.page(last_kept).is_some() {
            self.page_mut(last_kept)[kept_bytes..].fill(0);
        }
        let end = addr.0.next_multiple_of(PAGE_BYTES);
        let cleared: Vec<u64> = self.touched().map(|(at, _)| at.0).skip_while(|&at| at < end).collect();
        for at in cleared {
            let index = ((at - self.base) / PAGE_BYTES) as usize;
            let branch = self.branches[index / PAGES_PER_BRANCH].as_mut().expect("the page was found in it");
            let leaf = Arc::make_mut(branch)[index / FAN_OUT % FAN_OUT].as_mut().expect("the page was found in it");
            Arc::make_mut(leaf)[index % FAN_OUT] = None;
        }
    }

    /// Whether both sides share the page that holds `addr`, and so surely hold the same bytes there.
    pub fn shares_page(&self, other: &Pages, addr: PhysAddr) -> bool {
        let index = (addr.0 - self.base) / PAGE_BYTES;
        match (self.page(index), other.page(index)) {
            (Some(a), Some(b)) => std::ptr::eq(a, b),
            (None, None) => true,
            _ => false,
        }
    }

    /// Feeds the contents into a digest; pages of zeros count as never written.
    pub fn digest(&self, hasher: &mut dyn Hasher) {
        for (addr, page) in self.touched().filter(|(_, page)| page.iter().any(|&b| b != 0)) {
            hasher.write_u64(addr.0);
            hasher.write(page);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_do_not_see_later_writes_and_reads_cross_pages() {
        let mut a = Pages::new(PhysAddr(0x1000), 1 << 24);
        a.write(PhysAddr(0x1ffe), &[1, 2, 3, 4]);
        let b = a.clone();
        a.write(PhysAddr(0x1fff), &[9]);
        let mut bytes = [0; 4];
        b.read(PhysAddr(0x1ffe), &mut bytes);
        assert_eq!(bytes, [1, 2, 3, 4]);
        a.read(PhysAddr(0x1ffe), &mut bytes);
        assert_eq!(bytes, [1, 9, 3, 4]);
        assert!(!a.shares_page(&b, PhysAddr(0x1fff)));
        assert!(a.shares_page(&b, PhysAddr(0x2000)));
        assert_eq!(a.touched().count(), 2);
    }

    #[test]
    fn masked_writes_touch_only_their_bytes() {
        let mut a = Pages::new(PhysAddr(0), 4096);
        a.write_masked(LineAddr(1), 0b101, &[7; 64]);
        assert_eq!(&a.line(LineAddr(1))[..4], &[7, 0, 7, 0]);
    }

    #[test]
    fn clearing_keeps_what_lies_before() {
        let mut a = Pages::new(PhysAddr(0x1000), 1 << 30);
        for addr in [0x1000, 0x2000, 0x3000, 0x100_3000] {
            a.write(PhysAddr(addr), &[7; 8]);
        }
        let before = a.clone();
        a.clear_from(PhysAddr(0x2004));
        assert_eq!(a.read_u64(PhysAddr(0x2000)), 0x0707_0707);
        assert!(a.is_touched(PhysAddr(0x2fff)) && !a.is_touched(PhysAddr(0x3000)));
        assert_eq!((a.touched().count(), before.touched().count()), (2, 4));
        a.clear_from(PhysAddr(0x1000));
        assert_eq!(a.touched().count(), 0);
    }

    #[test]
    fn pages_can_be_shared_taken_and_put_back() {
        let mut a = Pages::new(PhysAddr(0x1000), 1 << 30);
        a.write(PhysAddr(0x5004), &[7; 4]);
        assert!(a.share_page(PhysAddr(0x1000)).is_none() && a.take_page(PhysAddr(0x100_0000)).is_none());
        let before = a.clone();
        let mut page = a.take_page(PhysAddr(0x5ff8)).unwrap();
        assert!(!a.is_touched(PhysAddr(0x5000)) && before.is_touched(PhysAddr(0x5000)));
        Arc::make_mut(&mut page)[0] = 1;
        a.put_page(PhysAddr(0x5000), page);
        assert_eq!(
            (a.read_u64(PhysAddr(0x5000)), before.read_u64(PhysAddr(0x5000))),
            (0x0707_0707 << 32 | 1, 0x0707_0707 << 32)
        );
        assert!(Arc::ptr_eq(&a.share_page(PhysAddr(0x5000)).unwrap(), &a.share_page(PhysAddr(0x5fff)).unwrap()));
    }

    #[test]
    fn shared_pages_are_shown_until_one_side_writes() {
        let mut from = Pages::new(PhysAddr(0x1000), 1 << 30);
        for addr in [0x1000, 0x3000, 0x100_3000] {
            from.write(PhysAddr(addr), &[7; 8]);
        }
        let mut to = Pages::new(PhysAddr(0), 1 << 20);
        to.write(PhysAddr(0x3ff8), &[9; 8]);
        to.share_from(&from, PhysAddr(0x4000));
        assert_eq!(to.touched().map(|(addr, _)| addr.0).collect::<Vec<_>>(), [0x1000, 0x3000]);
        assert_eq!(to.read_u64(PhysAddr(0x3ff8)), 0, "the whole page is the other one");
        to.write(PhysAddr(0x3000), &[1]);
        assert_eq!((from.read_u64(PhysAddr(0x3000)) & 0xff, to.read_u64(PhysAddr(0x3000)) & 0xff), (7, 1));
    }

    #[test]
    #[should_panic(expected = "outside the memory")]
    fn wild_accesses_are_caught() {
        Pages::new(PhysAddr(0), 4096).read(PhysAddr(4090), &mut [0; 8]);
    }
}
