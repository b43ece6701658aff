//! A full-map directory: which cores hold a line in their private caches, and which one may write it.
//!
//! The presence vector per line is that of Censier and Feautrier, "A New Solution to Coherence Problems in Multicache
//! Systems", IEEE TC 1978. It lies beside the last level and has an entry for each line that a core holds.

use durasim_types::{CoreId, Cycle, LINE_BYTES, LineAddr};
use serde::{Deserialize, Serialize};
use std::hash::Hasher;

/// Cores that a directory has bits for.
pub const CORES_MAX: u16 = 32;

/// The holders of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The cores that hold the line, bit n for core n.
    pub sharers: u32,
    /// The core that may write the line without asking. It is the only sharer then.
    pub owner: Option<CoreId>,
}

impl Entry {
    /// No cache holds the line.
    pub const NONE: Entry = Entry { sharers: 0, owner: None };

    /// Whether a core holds the line.
    #[inline]
    pub const fn holds(self, core: CoreId) -> bool {
        self.sharers >> core.0 & 1 != 0
    }

    /// The cores that hold the line, in ascending order.
    #[inline]
    pub const fn cores(self) -> Cores {
        Cores(self.sharers)
    }

    /// The cores other than `core` that hold the line, in ascending order.
    #[inline]
    pub const fn others(self, core: CoreId) -> Cores {
        Cores(self.sharers & !(1 << core.0))
    }
}

/// Cores in ascending order. It is a copy of what the entry said: the directory may change meanwhile.
#[derive(Clone, Debug)]
pub struct Cores(u32);

impl Iterator for Cores {
    type Item = CoreId;

    #[inline]
    fn next(&mut self) -> Option<CoreId> {
        let core = (self.0 != 0).then(|| CoreId(self.0.trailing_zeros() as u16))?;
        self.0 &= self.0 - 1;
        Some(core)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let count = self.0.count_ones() as usize;
        (count, Some(count))
    }
}

impl ExactSizeIterator for Cores {}

/// A place of the table; without sharers it is free. The owner is the only sharer, so a bit says whether there is one.
#[derive(Clone, Copy, Debug)]
struct Cell {
    line: u64,
    /// The time at which the last writer had the line and had made the access that asked for it.
    busy_until: Cycle,
    sharers: u32,
    owned: bool,
}

const FREE: Cell = Cell { line: 0, busy_until: 0, sharers: 0, owned: false };
const CELLS_MIN: usize = 64;

impl Cell {
    #[inline]
    fn entry(self) -> Entry {
        let owner = self.owned.then(|| CoreId(self.sharers.trailing_zeros() as u16));
        Entry { sharers: self.sharers, owner }
    }
}

/// The directory: an open-addressing table that doubles when it is three quarters full. Its hash is fixed and no
/// answer depends on the order in which lines came.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "State")]
pub struct Directory {
    cores: u16,
    /// A power of two; a line lies at the place its hash names or, if that is taken, in the row of taken ones after it.
    cells: Vec<Cell>,
    taken: usize,
}

impl Directory {
    /// An empty directory for the cores 0 to `cores` - 1.
    pub fn new(cores: u16) -> Self {
        assert!((1..=CORES_MAX).contains(&cores), "a directory for {cores} cores: it has bits for 1 to {CORES_MAX}");
        Directory { cores, cells: vec![FREE; CELLS_MIN], taken: 0 }
    }

    /// The holders of a line.
    #[inline]
    pub fn entry(&self, line: LineAddr) -> Entry {
        self.cells[self.place(line.0)].entry()
    }

    /// A core holds the line from now on. If it is the owner it stays so.
    ///
    /// # Panics
    /// If another core is the owner: its ownership ends first.
    pub fn add_sharer(&mut self, line: LineAddr, core: CoreId) {
        let bit = self.bit(core);
        let cell = self.cell_for(line.0);
        let sharers = cell.sharers | bit;
        assert!(!cell.owned || sharers == bit, "core {} would share {line}, which another core owns", core.0);
        cell.sharers = sharers;
    }

    /// A core does not hold the line any more, and does not own it.
    pub fn remove_sharer(&mut self, line: LineAddr, core: CoreId) {
        let bit = self.bit(core);
        let at = self.place(line.0);
        let cell = &mut self.cells[at];
        if cell.sharers & bit == 0 {
            return;
        }
        cell.sharers &= !bit;
        cell.owned = false;
        if cell.sharers == 0 {
            self.close_gap(at);
        }
    }

    /// A core is the only one that holds the line from now on, and may write it.
    pub fn grant(&mut self, line: LineAddr, core: CoreId) {
        let bit = self.bit(core);
        let cell = self.cell_for(line.0);
        (cell.sharers, cell.owned) = (bit, true);
    }

    /// The owner of the line, if it has one, becomes an ordinary sharer.
    pub fn downgrade(&mut self, line: LineAddr) {
        let at = self.place(line.0);
        self.cells[at].owned = false;
    }

    /// The cycle from which the directory may take a line from the core that asked last to write it; 0 if no core holds the
    /// line.
    #[inline]
    pub fn busy_until(&self, line: LineAddr) -> Cycle {
        self.cells[self.place(line.0)].busy_until
    }

    /// The core that has asked to write a line keeps it until this cycle at least. Nothing happens if no core holds it.
    pub fn keep_busy(&mut self, line: LineAddr, until: Cycle) {
        let at = self.place(line.0);
        let cell = &mut self.cells[at];
        if cell.sharers != 0 {
            cell.busy_until = cell.busy_until.max(until);
        }
    }

    /// The lines with a holder, in ascending order. It sorts: meant for checks, not for each step of a run.
    pub fn iter(&self) -> impl Iterator<Item = (LineAddr, Entry)> + use<> {
        self.sorted().into_iter().map(|c| (LineAddr(c.line), c.entry()))
    }

    fn sorted(&self) -> Vec<Cell> {
        let mut taken: Vec<Cell> = self.cells.iter().copied().filter(|c| c.sharers != 0).collect();
        taken.sort_unstable_by_key(|c| c.line);
        taken
    }

    /// The number of lines with a holder.
    pub fn len(&self) -> usize {
        self.taken
    }

    /// Whether no line has a holder.
    pub fn is_empty(&self) -> bool {
        self.taken == 0
    }

    /// Feeds all entries into a digest.
    pub fn digest(&self, hasher: &mut dyn Hasher) {
        hasher.write_u64(self.taken as u64);
        for (line, entry) in self.iter() {
            hasher.write_u64(line.0);
            // The bit of the owner lies between those of the first sixteen cores and the rest.
            let (low, high) = (u64::from(entry.sharers & 0xffff), u64::from(entry.sharers >> 16));
            hasher.write_u64(low | u64::from(entry.owner.is_some()) << 16 | high << 17);
        }
    }

    #[inline]
    fn bit(&self, core: CoreId) -> u32 {
        assert!(core.0 < self.cores, "core {} of {}", core.0, self.cores);
        1 << core.0
    }

    /// The place of a line if that is free: the top bits of its product with 2^64 / golden ratio, which
    /// spreads lines in a row as well as lines at any stride (Knuth, TAOCP 3, 6.4).
    #[inline]
    fn home(&self, line: u64) -> usize {
        (line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - self.cells.len().trailing_zeros())) as usize
    }

    /// The place of a line, or the free one where it would come.
    #[inline]
    fn place(&self, line: u64) -> usize {
        let mask = self.cells.len() - 1;
        let mut at = self.home(line);
        loop {
            let cell = &self.cells[at];
            if cell.sharers == 0 || cell.line == line {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    /// The cell of a line, which the caller gives a sharer.
    fn cell_for(&mut self, line: u64) -> &mut Cell {
        let mut at = self.place(line);
        if self.cells[at].sharers == 0 {
            if (self.taken + 1) * 4 > self.cells.len() * 3 {
                self.double();
                at = self.place(line);
            }
            self.taken += 1;
            self.cells[at] = Cell { line, ..FREE };
        }
        &mut self.cells[at]
    }

    fn double(&mut self) {
        let twice = vec![FREE; 2 * self.cells.len()];
        let cells = std::mem::replace(&mut self.cells, twice);
        for cell in cells.into_iter().filter(|c| c.sharers != 0) {
            let at = self.place(cell.line);
            self.cells[at] = cell;
        }
    }

    /// Frees a place and moves those after it up, so that no row has a gap between a line and where it belongs.
    fn close_gap(&mut self, at: usize) {
        let mask = self.cells.len() - 1;
        let distance = |from: usize, to: usize| to.wrapping_sub(from) & mask;
        let (mut gap, mut next) = (at, (at + 1) & mask);
        while self.cells[next].sharers != 0 {
            if distance(self.home(self.cells[next].line), next) >= distance(gap, next) {
                self.cells[gap] = self.cells[next];
                gap = next;
            }
            next = (next + 1) & mask;
        }
        self.cells[gap] = FREE;
        self.taken -= 1;
    }
}

/// A directory in a snapshot: its entries in ascending order, whatever the table looks like.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    cores: u16,
    /// With the cycle until which each is busy.
    entries: Vec<(LineAddr, Entry, Cycle)>,
}

impl Serialize for Directory {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entries = self.sorted().into_iter().map(|c| (LineAddr(c.line), c.entry(), c.busy_until)).collect();
        State { cores: self.cores, entries }.serialize(serializer)
    }
}

impl TryFrom<State> for Directory {
    type Error = String;

    fn try_from(state: State) -> Result<Self, String> {
        let State { cores, entries } = state;
        if !(1..=CORES_MAX).contains(&cores) {
            return Err(format!("a directory for {cores} cores: it has bits for 1 to {CORES_MAX}"));
        }
        let mut directory = Directory::new(cores);
        for (line, entry, busy_until) in entries {
            if line.0 > u64::MAX / LINE_BYTES {
                return Err(format!("no address is in line {:#x} of the directory", line.0));
            }
            let known = entry.sharers != 0 && u64::from(entry.sharers) >> cores == 0;
            let sole = entry.owner.is_none_or(|owner| owner.0 < cores && entry.sharers == 1 << owner.0);
            if !known || !sole || directory.entry(line) != Entry::NONE {
                return Err(format!("the directory entry of {line} is not one of {cores} cores, or there twice"));
            }
            let owned = entry.owner.is_some();
            *directory.cell_for(line.0) = Cell { line: line.0, busy_until, sharers: entry.sharers, owned };
        }
        Ok(directory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: LineAddr = LineAddr(7);

    #[test]
    fn an_entry_lists_its_cores_in_ascending_order() {
        let entry = Entry { sharers: 0b1000_0000_0010_0101, owner: None };
        assert!(entry.cores().eq([0, 2, 5, 15].map(CoreId)));
        assert!(entry.others(CoreId(5)).eq([0, 2, 15].map(CoreId)));
        assert!(entry.others(CoreId(1)).eq(entry.cores()));
        assert_eq!((entry.cores().len(), Entry::NONE.cores().next()), (4, None));
        assert!(entry.holds(CoreId(15)) && !entry.holds(CoreId(14)));
    }

    #[test]
    fn a_line_is_owned_shared_and_forgotten() {
        let mut d = Directory::new(4);
        d.grant(A, CoreId(2));
        assert_eq!(d.entry(A), Entry { sharers: 0b100, owner: Some(CoreId(2)) });
        d.add_sharer(A, CoreId(2));
        assert_eq!(d.entry(A).owner, Some(CoreId(2)), "the owner shares with itself alone");
        d.downgrade(A);
        d.add_sharer(A, CoreId(0));
        assert_eq!(d.entry(A), Entry { sharers: 0b101, owner: None });
        d.grant(A, CoreId(0));
        assert_eq!(d.entry(A), Entry { sharers: 0b1, owner: Some(CoreId(0)) });
        d.remove_sharer(A, CoreId(1));
        assert_eq!(d.entry(A).owner, Some(CoreId(0)), "who does not hold the line cannot end its ownership");
        d.remove_sharer(A, CoreId(0));
        assert!(d.entry(A) == Entry::NONE && d.is_empty());
        d.downgrade(A);
        assert!(d.is_empty(), "nothing becomes of nothing");
    }

    #[test]
    fn a_line_is_busy_as_long_as_a_core_holds_it() {
        let mut d = Directory::new(4);
        d.keep_busy(A, 50);
        assert_eq!(d.busy_until(A), 0, "no core holds it");
        d.grant(A, CoreId(2));
        d.keep_busy(A, 100);
        d.keep_busy(A, 90);
        d.grant(A, CoreId(1));
        assert_eq!(d.busy_until(A), 100, "the latest cycle, whichever core holds the line");
        let saved = postcard::to_stdvec(&d).unwrap();
        assert_eq!(postcard::from_bytes::<Directory>(&saved).unwrap().busy_until(A), 100);
        d.remove_sharer(A, CoreId(1));
        assert_eq!(d.busy_until(A), 0);
    }

    #[test]
    #[should_panic(expected = "core 1 would share 0x1c0, which another core owns")]
    fn an_owner_does_not_share() {
        let mut d = Directory::new(2);
        d.grant(A, CoreId(0));
        d.add_sharer(A, CoreId(1));
    }

    #[test]
    #[should_panic(expected = "core 2 of 2")]
    fn a_core_that_does_not_exist_holds_nothing() {
        Directory::new(2).add_sharer(A, CoreId(2));
    }
}
