//! A set-associative array of lines with their data, tags and ages.

use durasim_contract::{LevelGeometry, LineTag};
use durasim_types::{Cycle, LINE_BYTES, Line, LineAddr};
use serde::{Deserialize, Serialize};
use std::hash::Hasher;
use std::ops::Range;

use crate::column::Column;
use crate::replacement::{Order, Replacement, WAYS_MAX};

mod state;

/// The place of a line in an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot(u32);

/// A version of a line moving between levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// The line.
    pub line: LineAddr,
    /// Its data.
    #[serde(with = "serde_bytes")]
    pub data: Line,
    /// Whether it is newer than everything below.
    pub dirty: bool,
    /// The tag of the durability design.
    pub tag: LineTag,
}

/// Counters of an array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheStats {
    /// Lookups.
    pub accesses: u64,
    /// Lookups that found nothing.
    pub misses: u64,
    /// Lines that had to leave.
    pub evictions: u64,
    /// Dirty or tagged lines that had to leave.
    pub write_backs: u64,
}

#[derive(Clone, Copy, Debug)]
struct Meta {
    age: u64,
    ready: Cycle,
    tag: LineTag,
    dirty: bool,
    exclusive: bool,
}

const EMPTY: u64 = u64::MAX;
const NO_META: Meta = Meta { age: 0, ready: 0, tag: LineTag::NONE, dirty: false, exclusive: false };

/// Arrays with more data than this are kept in pages, which makes their forks cheap. Smaller ones are copied by a fork:
/// a first level is looked up by each load and store, and must not pay for pages.
const FLAT_BYTES_MAX: u64 = 64 << 10;
/// Slots in a page of addresses, of meta data and of data: 4 KB each. Smaller pages make a fork dearer, larger ones
/// the first write of a page after it.
const LINES_PAGE_SLOTS: usize = 512;
const META_PAGE_SLOTS: usize = 128;
const DATA_PAGE_SLOTS: usize = 64;

/// One cache. [`CacheArray::fork`] makes a second one that is independent. Whether a clone is as cheap depends on the
/// past: it copies the pages written since the last fork, so that an array that is not written any more, like that of a
/// snapshot, is forked once and cloned as often as needed.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "state::State")]
pub struct CacheArray {
    geometry: LevelGeometry,
    set_mask: u64,
    ways: usize,
    lines: Column<u64>,
    meta: Column<Meta>,
    data: Column<Line>,
    clock: u64,
    order: Order,
    /// See [`CacheArray::changes`].
    changes: u64,
    /// Counters since the last reset.
    pub stats: CacheStats,
}

impl CacheArray {
    /// An empty array whose least recently used lines leave.
    pub fn new(geometry: LevelGeometry) -> Self {
        CacheArray::with_replacement(geometry, Replacement::Lru, 0)
    }

    /// An empty array; `seed` starts its random choices, if it makes any.
    pub fn with_replacement(geometry: LevelGeometry, replacement: Replacement, seed: u64) -> Self {
        assert!(geometry.ways as usize <= WAYS_MAX, "{} ways are more than {WAYS_MAX}", geometry.ways);
        assert!(geometry.sets.is_power_of_two(), "{} sets are not a power of two", geometry.sets);
        let ways = geometry.ways as usize;
        let slots = geometry.sets as usize * ways;
        let flat = slots as u64 * LINE_BYTES <= FLAT_BYTES_MAX;
        CacheArray {
            geometry,
            set_mask: u64::from(geometry.sets) - 1,
            ways,
            lines: column(flat, EMPTY, slots, ways, LINES_PAGE_SLOTS),
            meta: column(flat, NO_META, slots, ways, META_PAGE_SLOTS),
            data: column(flat, [0; LINE_BYTES as usize], slots, ways, DATA_PAGE_SLOTS),
            clock: 0,
            changes: 0,
            order: Order::new(replacement, seed),
            stats: CacheStats::default(),
        }
    }

    /// Starts the random choices anew, if the array makes any.
    pub fn reseed(&mut self, seed: u64) {
        self.order.reseed(seed);
    }

    /// A second array with the same lines, ages, counters and clock: neither sees what later happens to the other.
    /// A large array shares its pages with its fork until one of the two writes them.
    pub fn fork(&mut self) -> Self {
        CacheArray {
            lines: self.lines.fork(),
            meta: self.meta.fork(),
            data: self.data.fork(),
            geometry: self.geometry,
            set_mask: self.set_mask,
            ways: self.ways,
            clock: self.clock,
            changes: self.changes,
            order: self.order.clone(),
            stats: self.stats,
        }
    }

    /// Its shape.
    pub fn geometry(&self) -> &LevelGeometry {
        &self.geometry
    }

    #[inline]
    fn first_slot(&self, line: LineAddr) -> usize {
        (line.0 & self.set_mask) as usize * self.ways
    }

    /// The ways that exist in the set of `line`.
    #[inline]
    fn ways_of(&self, line: LineAddr) -> usize {
        self.geometry.ways_of((line.0 & self.set_mask) as u32) as usize
    }

    /// The slot of the line, without touching its age.
    #[inline]
    pub fn find(&self, line: LineAddr) -> Option<Slot> {
        let first = self.first_slot(line);
        let ways = self.lines.of_set(first, self.ways);
        let way = match ways {
            // The way cannot be foreseen: all four are compared, without branches.
            [_, b, c, d] => {
                let of = |l: &u64, way: usize| usize::from(*l == line.0) * way;
                let way = (of(b, 1) | of(c, 2) | of(d, 3)) & 3;
                (ways[way] == line.0).then_some(way)
            }
            ways => ways.iter().position(|&l| l == line.0),
        };
        way.map(|way| Slot((first + way) as u32))
    }

    /// Whether `other` is cached in the set of `line`.
    pub fn is_in_set_of(&self, line: LineAddr, other: LineAddr) -> bool {
        self.first_slot(line) == self.first_slot(other) && self.find(other).is_some()
    }

    /// Whether the line is still in a slot in which it was once found.
    #[inline]
    pub fn holds(&self, slot: Slot, line: LineAddr) -> bool {
        *self.lines.get(slot.0 as usize) == line.0
    }

    /// Makes the line the youngest of its set.
    #[inline]
    pub fn touch(&mut self, slot: Slot) {
        self.clock += 1;
        self.meta.get_mut(slot.0 as usize).age = self.clock;
    }

    /// The data of a line.
    #[inline]
    pub fn data(&self, slot: Slot) -> &Line {
        self.data.get(slot.0 as usize)
    }

    /// The data of a line, to be changed.
    #[inline]
    pub fn data_mut(&mut self, slot: Slot) -> &mut Line {
        self.data.get_mut(slot.0 as usize)
    }

    /// The time at which the data of a line arrives.
    #[inline]
    pub fn ready(&self, slot: Slot) -> Cycle {
        self.meta.get(slot.0 as usize).ready
    }

    /// The data of a line is there from this cycle on.
    #[inline]
    pub fn set_ready(&mut self, slot: Slot, ready: Cycle) {
        self.meta.get_mut(slot.0 as usize).ready = ready;
    }

    /// Whether a line is dirty.
    #[inline]
    pub fn is_dirty(&self, slot: Slot) -> bool {
        self.meta.get(slot.0 as usize).dirty
    }

    /// Marks a line dirty or clean.
    #[inline]
    pub fn set_dirty(&mut self, slot: Slot, dirty: bool) {
        let meta = self.meta.get_mut(slot.0 as usize);
        self.changes += u64::from(dirty && !meta.dirty);
        meta.dirty = dirty;
    }

    /// Whether the core that has the line may write it without asking (MESI: E or M). The bit has this meaning in
    /// private first levels only.
    #[inline]
    pub fn is_exclusive(&self, slot: Slot) -> bool {
        self.meta.get(slot.0 as usize).exclusive
    }

    /// Gives or takes the right to write a line without asking.
    #[inline]
    pub fn set_exclusive(&mut self, slot: Slot, exclusive: bool) {
        self.meta.get_mut(slot.0 as usize).exclusive = exclusive;
    }

    /// The tag of a line.
    #[inline]
    pub fn tag(&self, slot: Slot) -> LineTag {
        self.meta.get(slot.0 as usize).tag
    }

    /// Changes the tag of a line.
    #[inline]
    pub fn set_tag(&mut self, slot: Slot, tag: LineTag) {
        let meta = self.meta.get_mut(slot.0 as usize);
        self.changes += u64::from(tag.is_some() && !meta.tag.is_some());
        meta.tag = tag;
    }

    /// The line in a slot.
    #[inline]
    pub fn line(&self, slot: Slot) -> LineAddr {
        LineAddr(*self.lines.get(slot.0 as usize))
    }

    /// The line in a slot with all it carries.
    #[inline]
    pub fn version(&self, slot: Slot) -> Version {
        let at = slot.0 as usize;
        let meta = self.meta.get(at);
        Version { line: LineAddr(*self.lines.get(at)), data: *self.data.get(at), dirty: meta.dirty, tag: meta.tag }
    }

    /// Whether the set of `line` has a free way.
    #[inline]
    pub fn has_room(&self, line: LineAddr) -> bool {
        self.free_way(line).is_some()
    }

    #[inline]
    fn free_way(&self, line: LineAddr) -> Option<usize> {
        let first = self.first_slot(line);
        self.lines.of_set(first, self.ways_of(line)).iter().position(|&l| l == EMPTY)
    }

    /// Puts a version into a free way of its set and makes it the youngest. It is not exclusive.
    ///
    /// # Panics
    /// If the set is full or holds the line already: room is made by the caller, versions are merged by the caller.
    pub fn insert(&mut self, version: Version, ready: Cycle) -> Slot {
        debug_assert!(self.find(version.line).is_none(), "{} is inserted twice", version.line);
        let way = self.free_way(version.line).expect("the caller makes room first");
        let at = self.first_slot(version.line) + way;
        self.clock += 1;
        self.changes += u64::from(version.dirty || version.tag.is_some());
        *self.lines.get_mut(at) = version.line.0;
        *self.meta.get_mut(at) =
            Meta { age: self.clock, ready, tag: version.tag, dirty: version.dirty, exclusive: false };
        *self.data.get_mut(at) = version.data;
        Slot(at as u32)
    }

    /// Replaces the version of a resident line. Whether it is exclusive stays as it is.
    pub fn replace(&mut self, slot: Slot, version: Version) {
        let at = slot.0 as usize;
        debug_assert_eq!(*self.lines.get(at), version.line.0);
        *self.data.get_mut(at) = version.data;
        self.changes += u64::from(version.dirty || version.tag.is_some());
        let meta = self.meta.get_mut(at);
        meta.dirty = version.dirty;
        meta.tag = version.tag;
    }

    /// Takes a line out.
    pub fn remove(&mut self, slot: Slot) {
        *self.lines.get_mut(slot.0 as usize) = EMPTY;
        *self.meta.get_mut(slot.0 as usize) = NO_META;
    }

    /// The least recently used line of a full set, never one of `pinned`. `None` if all are pinned.
    pub fn oldest(&self, line: LineAddr, pinned: &[LineAddr]) -> Option<Slot> {
        let first = self.first_slot(line);
        let existing = self.ways_of(line);
        let lines = self.lines.of_set(first, existing);
        let meta = self.meta.of_set(first, existing);
        let candidates = (0..existing).filter(|&way| !pinned.iter().any(|p| p.0 == lines[way]));
        candidates.min_by_key(|&way| meta[way].age).map(|way| Slot((first + way) as u32))
    }

    /// The line that leaves a full set, never one of `pinned`. `None` if all are pinned.
    pub fn victim(&mut self, line: LineAddr, pinned: &[LineAddr]) -> Option<Slot> {
        let first = self.first_slot(line);
        let existing = self.ways_of(line);
        let lines = self.lines.of_set(first, existing);
        let meta = self.meta.of_set(first, existing);
        let candidates = (0..existing).filter(|&way| !pinned.iter().any(|p| p.0 == lines[way]));
        self.order.choose(candidates, |way| meta[way].age).map(|way| Slot((first + way) as u32))
    }

    /// The tags of the set of `line`, as `Durability::victim` takes them.
    pub fn set_tags(&self, line: LineAddr, tags: &mut Vec<LineTag>) {
        let meta = self.meta.of_set(self.first_slot(line), self.ways);
        tags.clear();
        tags.extend(meta.iter().map(|meta| meta.tag));
    }

    /// The ranks of the set of `line`, as `Durability::victim` takes them: rank 0 is the least recently used (or any, where
    /// lines leave at random), `u32::MAX` marks pinned, free and missing ways.
    pub fn set_ranks(&mut self, line: LineAddr, pinned: &[LineAddr], ranks: &mut Vec<u32>) {
        let first = self.first_slot(line);
        let existing = self.ways_of(line);
        let lines = self.lines.of_set(first, self.ways);
        let meta = self.meta.of_set(first, self.ways);
        let mut ages = [0; WAYS_MAX];
        let ages = &mut ages[..existing];
        for (age, meta) in ages.iter_mut().zip(meta) {
            *age = meta.age;
        }
        ages.sort_unstable();
        ranks.clear();
        for way in 0..self.ways {
            let fixed = way >= existing || lines[way] == EMPTY || pinned.iter().any(|p| p.0 == lines[way]);
            let older = || ages.partition_point(|&age| age < meta[way].age);
            ranks.push(if fixed { u32::MAX } else { older() as u32 });
        }
        self.order.rank(ranks);
    }

    /// The slot of a way in the set of `line`.
    pub fn slot_of_way(&self, line: LineAddr, way: usize) -> Slot {
        assert!(way < self.ways_of(line), "way {way} does not exist in the set of {line}");
        Slot((self.first_slot(line) + way) as u32)
    }

    /// The slot at a position of the whole array, if it holds a line.
    pub fn slot_at(&self, position: usize) -> Option<Slot> {
        (*self.lines.get(position) != EMPTY).then_some(Slot(position as u32))
    }

    /// Grows whenever a line becomes dirty or tagged: as long as it stays as it is, [`CacheArray::find_changed`] finds nothing
    /// where it has found nothing.
    #[inline]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// The first of some positions whose line is dirty, or tagged if `tagged` counts too, and is as asked for.
    pub fn find_changed(
        &self,
        positions: Range<usize>,
        tagged: bool,
        is_wanted: impl Fn(LineAddr) -> bool,
    ) -> Option<usize> {
        self.meta.find(positions, |at, meta| {
            (meta.dirty || tagged && meta.tag.is_some()) && is_wanted(LineAddr(*self.lines.get(at)))
        })
    }

    /// All occupied slots in a fixed order.
    pub fn slots(&self) -> impl Iterator<Item = Slot> {
        self.lines.iter().enumerate().filter(|&(_, &l)| l != EMPTY).map(|(at, _)| Slot(at as u32))
    }

    /// The lines, the least recently used first.
    pub fn lines_by_age(&self) -> Vec<LineAddr> {
        let mut aged: Vec<(u64, u64)> = self
            .slots()
            .map(|slot| {
                let at = slot.0 as usize;
                (self.meta.get(at).age, *self.lines.get(at))
            })
            .collect();
        aged.sort_unstable();
        aged.into_iter().map(|(_, line)| LineAddr(line)).collect()
    }

    /// Feeds lines, data, ages and what is `live` of their tags into a digest.
    pub fn digest(&self, hasher: &mut dyn Hasher, live: impl Fn(LineTag) -> LineTag) {
        for slot in self.slots() {
            let at = slot.0 as usize;
            hasher.write_u64(at as u64);
            let meta = self.meta.get(at);
            hasher.write_u64(*self.lines.get(at));
            hasher.write_u64(meta.age);
            hasher.write_u64(live(meta.tag).0);
            hasher.write_u64(u64::from(meta.dirty) | u64::from(meta.exclusive) << 1);
            hasher.write(self.data.get(at));
        }
        self.order.digest(hasher);
    }
}

fn column<T: Copy>(flat: bool, blank: T, slots: usize, ways: usize, page_slots: usize) -> Column<T> {
    if flat { Column::flat(blank, slots) } else { Column::paged(blank, slots, ways, page_slots) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(sets: u32, ways: u32, missing_way_period: u32) -> CacheArray {
        CacheArray::new(LevelGeometry { sets, ways, missing_way_period, latency_cycles: 1, tag_latency_cycles: 1 })
    }

    fn version(line: u64) -> Version {
        Version { line: LineAddr(line), data: [line as u8; 64], dirty: false, tag: LineTag::NONE }
    }

    #[test]
    fn hercules_l1d_of_30_kb_holds_480_lines() {
        let a = array(128, 4, 4);
        assert_eq!(a.geometry().lines(), 480);
        let mut b = array(4, 2, 4);
        b.insert(version(3), 0);
        assert!(!b.has_room(LineAddr(3)), "the fourth set lacks a way");
        b.insert(version(0), 0);
        assert!(b.has_room(LineAddr(0)));
    }

    #[test]
    fn the_least_recently_used_line_is_the_victim_unless_pinned() {
        let mut a = array(1, 3, 0);
        for line in 0..3 {
            a.insert(version(line), 0);
        }
        let zero = a.find(LineAddr(0)).unwrap();
        a.touch(zero);
        let mut oldest = |pinned: &[LineAddr]| {
            let victim = a.victim(LineAddr(9), pinned);
            assert_eq!(victim, a.oldest(LineAddr(9), pinned));
            victim.map(|s| a.version(s).line.0)
        };
        assert_eq!(oldest(&[]), Some(1));
        assert_eq!(oldest(&[LineAddr(1)]), Some(2));
        assert_eq!(oldest(&[LineAddr(0), LineAddr(1), LineAddr(2)]), None);
        let (mut tags, mut ranks) = (Vec::new(), Vec::new());
        a.set_tags(LineAddr(9), &mut tags);
        a.set_ranks(LineAddr(9), &[LineAddr(2)], &mut ranks);
        assert_eq!(ranks, [2, 0, u32::MAX]);
    }

    #[test]
    fn a_removed_line_is_gone_and_its_way_free() {
        let mut a = array(2, 1, 0);
        let slot = a.insert(version(4), 7);
        assert_eq!((a.ready(slot), a.version(slot)), (7, version(4)));
        a.remove(slot);
        assert!(a.find(LineAddr(4)).is_none() && a.has_room(LineAddr(4)));
    }

    #[test]
    fn a_line_is_exclusive_from_when_it_is_said_until_it_leaves() {
        let mut a = array(2, 1, 0);
        let slot = a.insert(version(4), 0);
        assert!(!a.is_exclusive(slot));
        a.replace(slot, Version { dirty: true, ..version(4) });
        assert!(!a.is_exclusive(slot), "a new version gives no right");
        a.set_exclusive(slot, true);
        a.replace(slot, version(4));
        a.touch(slot);
        assert!(a.is_exclusive(slot), "a new version takes none");
        a.set_exclusive(slot, false);
        assert!(!a.is_exclusive(slot));
        a.set_exclusive(slot, true);
        a.remove(slot);
        assert!(!a.is_exclusive(slot));
        let slot = a.insert(version(6), 0);
        assert!(!a.is_exclusive(slot), "the next line of the way starts without the right");
    }
}
