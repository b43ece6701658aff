//! The TLBs of a core, of machines that have them: which translations are cached, and when the one of an access is known.
//!
//! They hold no frames. The port gives the address of a page at no cost ([`crate::translations`]), so what is here changes
//! times alone. An entry whose walk is in progress is there already, with the cycle from which it can be used, as a line of a
//! cache is.

use crate::Port;
use crate::translations::Translations;
use durasim_cache::Mshrs;
use durasim_isa::{Access, AccessFault};
use durasim_types::{ConfigError, CoreId, Cycle, PAGE_BYTES, PhysAddr};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::hash::Hasher;
use std::ops::Range;

/// One TLB.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlbLevelConfig {
    /// Translations of pages of 4 KB. It has this number divided by `ways` sets, rounded down; page n belongs to set n modulo
    /// the number of sets, which need not be a power of two (DEVIATIONS.md, tlb).
    pub entries: u32,
    /// Associativity.
    pub ways: u32,
    /// Cycles of a look-up.
    pub latency_cycles: Cycle,
}

/// The TLBs of each core.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlbConfig {
    /// The TLB for data, and another one like it for instructions. A look-up overlaps with the access of the L1D or L1I.
    pub l1: TlbLevelConfig,
    /// The TLB that both share; it is looked up after a miss of the first.
    pub l2: TlbLevelConfig,
    /// Page walks of a core in progress at a time; others wait (DEVIATIONS.md, tlb).
    pub walkers: u32,
}

impl TlbConfig {
    /// Refuses what cannot be built; `field` is the path of this section.
    ///
    /// # Errors
    /// The field and what is allowed.
    pub fn check(&self, field: &str) -> Result<(), ConfigError> {
        for (name, level) in [("l1", &self.l1), ("l2", &self.l2)] {
            let refuse = |key: &str, problem| Err(ConfigError::new(format!("{field}.{name}.{key}"), problem));
            if !(1..=256).contains(&level.ways) {
                return refuse("ways", format!("{} is not between 1 and 256", level.ways));
            }
            if !(level.ways..=1 << 20).contains(&level.entries) {
                let problem = format!("{} is not between the {} ways of a set and 2^20", level.entries, level.ways);
                return refuse("entries", problem);
            }
            if !(1..=1000).contains(&level.latency_cycles) {
                return refuse("latency_cycles", format!("{} is not between 1 and 1000", level.latency_cycles));
            }
        }
        if !(1..=64).contains(&self.walkers) {
            let problem = format!("{} is not between 1 and 64", self.walkers);
            return Err(ConfigError::new(format!("{field}.walkers"), problem));
        }
        Ok(())
    }
}

/// Counters of the TLBs of a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlbStats {
    /// Look-ups of the TLB for data.
    pub data_accesses: u64,
    /// Those that found nothing.
    pub data_misses: u64,
    /// Look-ups of the TLB for instructions.
    pub code_accesses: u64,
    /// Those that found nothing.
    pub code_misses: u64,
    /// Page walks: look-ups of the second TLB that found nothing.
    pub walks: u64,
    /// Cycles from such a look-up to the translation.
    pub walk_cycles: Cycle,
    /// Translations dropped because mappings changed.
    pub shoot_downs: u64,
}

impl TlbStats {
    /// Adds the counters of another core.
    pub fn add(&mut self, other: &TlbStats) {
        self.data_accesses += other.data_accesses;
        self.data_misses += other.data_misses;
        self.code_accesses += other.code_accesses;
        self.code_misses += other.code_misses;
        self.walks += other.walks;
        self.walk_cycles += other.walk_cycles;
        self.shoot_downs += other.shoot_downs;
    }
}

/// Pages whose translations the TLBs of a core held, the least recently used first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CachedPages {
    /// Those of data.
    pub data: Vec<u64>,
    /// Those of instructions.
    pub code: Vec<u64>,
    /// Those in the second TLB.
    pub shared: Vec<u64>,
}

/// No page of an address space.
const NO_PAGE: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Entry {
    page: u64,
    /// From when it can be used.
    ready: Cycle,
    /// The look-up of the TLB that used it last.
    used: u64,
}

/// One TLB: the least recently used translation of a set is replaced.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct TlbArray {
    ways: usize,
    entries: Vec<Entry>,
    look_ups: u64,
}

impl TlbArray {
    fn new(config: &TlbLevelConfig) -> Self {
        let sets = config.entries / config.ways;
        let empty = Entry { page: NO_PAGE, ready: 0, used: 0 };
        TlbArray { ways: config.ways as usize, entries: vec![empty; (sets * config.ways) as usize], look_ups: 0 }
    }

    fn set(&mut self, page: u64) -> &mut [Entry] {
        let sets = self.entries.len() / self.ways;
        let first = (page % sets as u64) as usize * self.ways;
        &mut self.entries[first..first + self.ways]
    }

    /// From when the translation of a page can be used, if it is there.
    fn look_up(&mut self, page: u64) -> Option<Cycle> {
        self.look_ups += 1;
        let now = self.look_ups;
        let entry = self.set(page).iter_mut().find(|entry| entry.page == page)?;
        entry.used = now;
        Some(entry.ready)
    }

    /// Puts a translation in that was just looked up and not found.
    fn fill(&mut self, page: u64, ready: Cycle) {
        let used = self.look_ups;
        let oldest = self.set(page).iter_mut().min_by_key(|entry| if entry.page == NO_PAGE { 0 } else { entry.used });
        *oldest.expect("a set has ways") = Entry { page, ready, used };
    }

    /// Drops the translations of some pages; how many there were.
    fn drop_pages(&mut self, pages: &Range<u64>) -> u64 {
        let mut dropped = 0;
        for entry in self.entries.iter_mut().filter(|entry| entry.page != NO_PAGE && pages.contains(&entry.page)) {
            entry.page = NO_PAGE;
            dropped += 1;
        }
        dropped
    }

    fn pages_by_age(&self) -> Vec<u64> {
        let mut there: Vec<&Entry> = self.entries.iter().filter(|entry| entry.page != NO_PAGE).collect();
        there.sort_unstable_by_key(|entry| entry.used);
        there.into_iter().map(|entry| entry.page).collect()
    }

    fn warm(&mut self, pages: &[u64]) {
        for &page in pages {
            if self.look_up(page).is_none() {
                self.fill(page, 0);
            }
        }
    }

    fn digest(&self, hasher: &mut dyn Hasher) {
        for entry in &self.entries {
            hasher.write_u64(entry.page);
        }
    }
}

/// The TLBs of one core.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tlbs {
    config: TlbConfig,
    /// Latencies of the caches whose accesses the first look-ups overlap with.
    l1d_latency: Cycle,
    l1i_latency: Cycle,
    data: TlbArray,
    code: TlbArray,
    shared: TlbArray,
    walkers: Mshrs,
    stats: TlbStats,
    /// Translations to read, write and execute, as the port has given them.
    #[serde(skip)]
    known: [Translations; 3],
}

impl Tlbs {
    /// Empty TLBs beside first levels of these latencies.
    pub fn new(config: &TlbConfig, l1d_latency: Cycle, l1i_latency: Cycle) -> Self {
        Tlbs {
            data: TlbArray::new(&config.l1),
            code: TlbArray::new(&config.l1),
            shared: TlbArray::new(&config.l2),
            walkers: Mshrs::new(config.walkers as usize),
            config: config.clone(),
            l1d_latency,
            l1i_latency,
            stats: TlbStats::default(),
            known: Default::default(),
        }
    }

    /// Physical address of a guest address; the look-up takes no time.
    pub(crate) fn translate<P: Port>(
        &mut self,
        port: &mut P,
        addr: u64,
        access: Access,
    ) -> Result<PhysAddr, AccessFault> {
        let known = &mut self.known[match access {
            Access::Read => 0,
            Access::Write => 1,
            Access::Execute => 2,
        }];
        if let Some(phys) = known.get(addr) {
            return Ok(phys);
        }
        let phys = port.translate(addr, access)?;
        known.put(addr, phys);
        Ok(phys)
    }

    /// An access to a guest address that is mapped is to begin in cycle `at`: when the L1D or L1I begins with it. The look-up
    /// of its sets needs no translation; it waits before it compares tags.
    pub(crate) fn access_begins<P: Port>(
        &mut self,
        port: &mut P,
        core: CoreId,
        addr: u64,
        access: Access,
        at: Cycle,
    ) -> Result<Cycle, AccessFault> {
        let page = addr / PAGE_BYTES;
        let is_code = access == Access::Execute;
        let first = if is_code { &mut self.code } else { &mut self.data };
        let looked = at + self.config.l1.latency_cycles;
        let found = first.look_up(page);
        let (accesses, misses) = if is_code {
            (&mut self.stats.code_accesses, &mut self.stats.code_misses)
        } else {
            (&mut self.stats.data_accesses, &mut self.stats.data_misses)
        };
        *accesses += 1;
        *misses += u64::from(found.is_none());
        let known = match found {
            Some(ready) => ready.max(looked),
            None => {
                let known = self.look_up_shared(port, core, addr, looked + self.config.l2.latency_cycles)?;
                if is_code { &mut self.code } else { &mut self.data }.fill(page, known);
                known
            }
        };
        let overlap = if is_code { self.l1i_latency } else { self.l1d_latency };
        Ok(known.saturating_sub(overlap).max(at))
    }

    /// The second TLB has been looked up in cycle `looked`: when the translation is known, after a walk if need be.
    #[inline(never)]
    fn look_up_shared<P: Port>(
        &mut self,
        port: &mut P,
        core: CoreId,
        addr: u64,
        looked: Cycle,
    ) -> Result<Cycle, AccessFault> {
        let page = addr / PAGE_BYTES;
        if let Some(ready) = self.shared.look_up(page) {
            return Ok(ready.max(looked));
        }
        let start = self.walkers.acquire(looked);
        let known = port.walk(core, addr, start)?;
        self.walkers.release_at(known);
        self.stats.walks += 1;
        self.stats.walk_cycles += known - looked;
        self.shared.fill(page, known);
        Ok(known)
    }

    /// Looks an address up without time: whether the page table is walked.
    pub fn misses(&mut self, addr: u64, is_code: bool) -> bool {
        let page = addr / PAGE_BYTES;
        let first = if is_code { &mut self.code } else { &mut self.data };
        if first.look_up(page).is_some() {
            return false;
        }
        first.fill(page, 0);
        let misses = self.shared.look_up(page).is_none();
        if misses {
            self.shared.fill(page, 0);
        }
        misses
    }

    /// Mappings of these pages have been removed, moved or lost a right.
    pub fn shoot_down(&mut self, pages: &[Range<u64>]) {
        for pages in pages {
            for array in [&mut self.data, &mut self.code, &mut self.shared] {
                self.stats.shoot_downs += array.drop_pages(pages);
            }
        }
    }

    /// Translations that the port has given may have changed.
    pub(crate) fn forget_known(&mut self) {
        self.known.iter_mut().for_each(Translations::clear);
    }

    /// The pages whose translations are cached.
    pub fn cached_pages(&self) -> CachedPages {
        let [data, code, shared] = [&self.data, &self.code, &self.shared].map(TlbArray::pages_by_age);
        CachedPages { data, code, shared }
    }

    /// Fills the empty TLBs with translations that others held, in their order, so that the most recently used ones stay.
    pub fn warm(&mut self, pages: &CachedPages) {
        self.data.warm(&pages.data);
        self.code.warm(&pages.code);
        self.shared.warm(&pages.shared);
    }

    /// Counters since the last reset.
    pub fn stats(&self) -> TlbStats {
        self.stats
    }

    pub(crate) fn reset_stats(&mut self) {
        self.stats = TlbStats::default();
    }

    pub(crate) fn digest(&self, hasher: &mut dyn Hasher) {
        [&self.data, &self.code, &self.shared].into_iter().for_each(|array| array.digest(hasher));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(entries: u32, ways: u32) -> TlbLevelConfig {
        TlbLevelConfig { entries, ways, latency_cycles: 1 }
    }

    #[test]
    fn the_least_recently_used_translation_of_a_set_is_replaced() {
        let mut array = TlbArray::new(&level(8, 2));
        for page in [0, 4, 0, 8] {
            if array.look_up(page).is_none() {
                array.fill(page, page);
            }
        }
        // Four sets: 0, 4 and 8 share one, in which 4 was used least recently.
        assert_eq!([0, 4, 8].map(|page| array.look_up(page)), [Some(0), None, Some(8)]);
        assert_eq!(array.pages_by_age(), [0, 8]);
    }

    #[test]
    fn a_number_of_entries_that_is_no_multiple_of_the_ways_gives_whole_sets() {
        let mut array = TlbArray::new(&level(1024, 12));
        assert_eq!(array.entries.len(), 85 * 12);
        array.warm(&(0..1020).collect::<Vec<_>>());
        assert!((0..1020).all(|page| array.look_up(page).is_some()), "pages in a row fill all sets");
        array.warm(&[1020]);
        assert_eq!(array.look_up(0), None, "page 1020 belongs to set 0, in which page 0 is the oldest");
        assert!((1..=1020).all(|page| array.look_up(page).is_some()));
    }

    #[test]
    fn a_shoot_down_drops_the_pages_of_its_ranges_and_no_others() {
        let config = TlbConfig { l1: level(8, 2), l2: level(64, 4), walkers: 1 };
        let mut tlbs = Tlbs::new(&config, 2, 2);
        for page in 0..6 {
            assert!(tlbs.misses(page * PAGE_BYTES, false));
        }
        assert!(!tlbs.misses(3 * PAGE_BYTES, true), "the second TLB serves both");
        tlbs.shoot_down(&[1..2, 3..5]);
        // Pages 1, 3 and 4 of data and of the second TLB, page 3 of code.
        assert_eq!(tlbs.stats().shoot_downs, 7);
        assert_eq!(tlbs.cached_pages(), CachedPages { data: vec![0, 2, 5], code: vec![], shared: vec![0, 2, 5] });
        let mut others = Tlbs::new(&config, 2, 2);
        others.warm(&tlbs.cached_pages());
        assert_eq!(others.cached_pages(), tlbs.cached_pages());
    }

    #[test]
    fn sizes_and_latencies_out_of_range_are_refused_by_name() {
        let good = TlbConfig { l1: level(64, 4), l2: level(1024, 12), walkers: 1 };
        assert!(good.check("tlb").is_ok());
        let refused = |change: fn(&mut TlbConfig)| {
            let mut config = good.clone();
            change(&mut config);
            config.check("tlb").unwrap_err().to_string()
        };
        assert_eq!(refused(|c| c.l1.ways = 0), "tlb.l1.ways: 0 is not between 1 and 256");
        let too_few = "tlb.l2.entries: 11 is not between the 12 ways of a set and 2^20";
        assert_eq!(refused(|c| c.l2.entries = 11), too_few);
        assert_eq!(refused(|c| c.l2.latency_cycles = 0), "tlb.l2.latency_cycles: 0 is not between 1 and 1000");
        assert_eq!(refused(|c| c.walkers = 65), "tlb.walkers: 65 is not between 1 and 64");
    }
}
