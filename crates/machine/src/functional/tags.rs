//! Caches that hold no data: which lines a detailed run would find where. Least recently used, write-allocate, a store
//! takes the line from other cores.

use crate::parts::caches::CachedLines;
use durasim_contract::LevelGeometry;
use durasim_types::LineAddr;

const EMPTY: u64 = u64::MAX;

/// The tags of one cache.
struct Tags {
    mask: u64,
    geometry: LevelGeometry,
    /// Line and time of its last use, by way.
    ways: Vec<(u64, u64)>,
    clock: u64,
}

impl Tags {
    fn new(geometry: LevelGeometry) -> Self {
        let slots = geometry.sets as usize * geometry.ways as usize;
        Tags { mask: u64::from(geometry.sets) - 1, geometry, ways: vec![(EMPTY, 0); slots], clock: 0 }
    }

    fn set(&mut self, line: u64) -> &mut [(u64, u64)] {
        let set = line & self.mask;
        let first = set as usize * self.geometry.ways as usize;
        &mut self.ways[first..][..self.geometry.ways_of(set as u32) as usize]
    }

    /// Uses a line if it is there.
    fn hit(&mut self, line: u64) -> bool {
        self.clock += 1;
        let now = self.clock;
        let found = self.set(line).iter_mut().find(|way| way.0 == line);
        found.map(|way| way.1 = now).is_some()
    }

    /// Puts a line that is not there in the place of the least recently used one of its set, which it gives back.
    fn put(&mut self, line: u64) -> Option<u64> {
        let now = self.clock;
        let set = self.set(line);
        let oldest = set.iter_mut().min_by_key(|way| if way.0 == EMPTY { 0 } else { way.1 });
        let way = oldest.expect("a set has ways");
        let before = std::mem::replace(way, (line, now)).0;
        (before != EMPTY).then_some(before)
    }

    fn remove(&mut self, line: u64) {
        if let Some(way) = self.set(line).iter_mut().find(|way| way.0 == line) {
            *way = (EMPTY, 0);
        }
    }

    fn by_age(&self) -> Vec<LineAddr> {
        let mut used: Vec<_> = self.ways.iter().filter(|way| way.0 != EMPTY).collect();
        used.sort_unstable_by_key(|way| way.1);
        used.into_iter().map(|way| LineAddr(way.0)).collect()
    }
}

/// The caches of a machine, without their data.
pub(super) struct TagCaches {
    inclusive: bool,
    l1i: Vec<Tags>,
    l1d: Vec<Tags>,
    /// Empty on a machine without an L2.
    l2: Vec<Tags>,
    llc: Tags,
    /// The last line of each core's instructions and data: used again, it changes no order.
    last: Vec<[u64; 2]>,
    /// The cores that have used something, bit n for core n: the others have nothing that could be taken.
    used: u64,
}

impl TagCaches {
    pub(super) fn new(
        cores: usize,
        inclusive: bool,
        l1i: LevelGeometry,
        l1d: LevelGeometry,
        l2: Option<LevelGeometry>,
        llc: LevelGeometry,
    ) -> Self {
        let all = |geometry| (0..cores).map(|_| Tags::new(geometry)).collect::<Vec<_>>();
        let last = vec![[EMPTY; 2]; cores];
        let l2 = l2.map_or_else(Vec::new, all);
        TagCaches { inclusive, l1i: all(l1i), l1d: all(l1d), l2, llc: Tags::new(llc), last, used: 0 }
    }

    #[inline(always)]
    pub(super) fn fetch(&mut self, core: usize, line: LineAddr) {
        if self.last[core][0] != line.0 {
            self.fetch_other(core, line.0);
        }
    }

    #[inline(never)]
    fn fetch_other(&mut self, core: usize, line: u64) {
        self.last[core][0] = line;
        self.used |= 1 << core;
        if !self.l1i[core].hit(line) {
            self.l1i[core].put(line);
            self.below(core, line);
        }
    }

    #[inline(always)]
    pub(super) fn data(&mut self, core: usize, line: LineAddr, write: bool) {
        if write && self.used & !(1 << core) != 0 {
            self.take_from_others(core, line.0);
        }
        if self.last[core][1] != line.0 {
            self.data_other(core, line.0);
        }
    }

    #[inline(never)]
    fn data_other(&mut self, core: usize, line: u64) {
        self.last[core][1] = line;
        self.used |= 1 << core;
        if !self.l1d[core].hit(line) {
            self.l1d[core].put(line);
            self.below(core, line);
        }
    }

    /// A miss of a first level. Levels that include each other lose a line together.
    fn below(&mut self, core: usize, line: u64) {
        if self.l2.get_mut(core).is_some_and(|l2| l2.hit(line)) {
            return;
        }
        if !self.llc.hit(line)
            && let Some(victim) = self.llc.put(line)
            && self.inclusive
        {
            self.take_from(self.used, victim);
        }
        if let Some(victim) = self.l2.get_mut(core).and_then(|l2| l2.put(line))
            && self.inclusive
        {
            self.l1i[core].remove(victim);
            self.l1d[core].remove(victim);
            self.forget_last(core, victim);
        }
    }

    #[inline(never)]
    fn take_from_others(&mut self, core: usize, line: u64) {
        self.take_from(self.used & !(1 << core), line);
    }

    /// The cores of a mask lose a line.
    fn take_from(&mut self, mut cores: u64, line: u64) {
        while cores != 0 {
            self.drop_private(cores.trailing_zeros() as usize, line);
            cores &= cores - 1;
        }
    }

    fn drop_private(&mut self, core: usize, line: u64) {
        self.l1i[core].remove(line);
        self.l1d[core].remove(line);
        if let Some(l2) = self.l2.get_mut(core) {
            l2.remove(line);
        }
        self.forget_last(core, line);
    }

    fn forget_last(&mut self, core: usize, line: u64) {
        for last in self.last[core].iter_mut().filter(|last| **last == line) {
            *last = EMPTY;
        }
    }

    pub(super) fn cached_lines(&self) -> CachedLines {
        let all = |tags: &[Tags]| tags.iter().map(Tags::by_age).collect();
        CachedLines { l1i: all(&self.l1i), l1d: all(&self.l1d), l2: all(&self.l2), llc: self.llc.by_age() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(sets: u32, ways: u32) -> LevelGeometry {
        LevelGeometry { sets, ways, missing_way_period: 0, latency_cycles: 1, tag_latency_cycles: 1 }
    }

    fn lines(numbers: &[u64]) -> Vec<LineAddr> {
        numbers.iter().copied().map(LineAddr).collect()
    }

    #[test]
    fn the_most_recently_used_lines_stay_and_inclusion_takes_lines_from_above() {
        let mut caches = TagCaches::new(2, true, level(1, 2), level(1, 2), Some(level(1, 3)), level(1, 4));
        for line in [1, 2, 3, 2, 4] {
            caches.data(0, LineAddr(line), false);
        }
        let held = caches.cached_lines();
        assert_eq!((&held.l1d[0], &held.l2[0]), (&lines(&[2, 4]), &lines(&[2, 3, 4])));
        assert_eq!(held.llc, lines(&[1, 2, 3, 4]));
        // Line 5 pushes 1 out of the LLC, 6 pushes 2, which core 0 then loses everywhere.
        caches.data(1, LineAddr(5), false);
        caches.fetch(1, LineAddr(6));
        let held = caches.cached_lines();
        assert_eq!((&held.l1d[0], &held.l2[0]), (&lines(&[4]), &lines(&[3, 4])));
        assert_eq!((&held.l1i[1], &held.l1d[1], &held.l2[1]), (&lines(&[6]), &lines(&[5]), &lines(&[5, 6])));
    }

    #[test]
    fn a_store_takes_the_line_from_other_cores() {
        let mut caches = TagCaches::new(2, false, level(1, 2), level(1, 2), Some(level(1, 2)), level(1, 4));
        caches.data(0, LineAddr(7), false);
        caches.data(1, LineAddr(7), true);
        let held = caches.cached_lines();
        assert_eq!((&held.l1d[0], &held.l1d[1]), (&lines(&[]), &lines(&[7])));
        caches.data(0, LineAddr(7), false);
        assert_eq!(caches.cached_lines().l1d[0], lines(&[7]), "it is used again");
    }
}
