//! The copies of a line: which is the newest, which are changed or cleaned together, and which an abort discards.

use super::Caches;
use super::older::{is_older, line_of};
use crate::parts::design_port::DesignPort;
use crate::setup::memory_map::is_pmem;
use durasim_cache::{CacheArray, Slot, Version};
use durasim_contract::{CachedLine, LevelId, LineTag};
use durasim_types::{CoreId, Cycle, Line, LineAddr, PhysAddr, TxId};

impl Caches {
    /// The places in which a line may be, newest first: the private levels of its holders, then the last level.
    fn places(&self, line: LineAddr) -> impl Iterator<Item = (LevelId, CoreId)> + use<> {
        let levels = self.levels.private();
        let private = self.holders(line).flat_map(move |core| levels.iter().map(move |&level| (level, core)));
        private.chain([(LevelId::Llc, CoreId(0))])
    }

    /// The version in a slot, with its tag if that still means anything.
    #[inline]
    pub(crate) fn version(&self, level: LevelId, core: CoreId, slot: Slot, design: &DesignPort) -> Version {
        let mut version = self.array(level, core).version(slot);
        version.tag = design.live(version.tag);
        version
    }

    /// The copies of a line on the way from a core to memory, newest first.
    pub(crate) fn copies_of(&self, core: CoreId, line: LineAddr) -> impl Iterator<Item = (LevelId, Version)> {
        self.levels.all().iter().filter_map(move |&level| {
            let array = self.array(level, core);
            array.find(line).map(|slot| (level, array.version(slot)))
        })
    }

    /// The newest cached version of a line; dirty if any version below it is.
    pub(crate) fn newest(&self, line: LineAddr, design: &DesignPort) -> Option<Version> {
        let mut newest: Option<Version> = None;
        for (level, core) in self.places(line) {
            let array = self.array(level, core);
            if let Some(slot) = array.find(line) {
                let dirty = array.is_dirty(slot);
                match &mut newest {
                    Some(newest) => newest.dirty |= dirty,
                    None => newest = Some(self.version(level, core, slot, design)),
                }
            }
        }
        newest
    }

    /// The newest cached data of a line, if any cached version is dirty.
    pub(crate) fn newest_if_dirty(&self, line: LineAddr) -> Option<Line> {
        let mut newest = None;
        let mut dirty = false;
        for (level, core) in self.places(line) {
            let array = self.array(level, core);
            if let Some(slot) = array.find(line) {
                newest = newest.or(Some(*array.data(slot)));
                dirty |= array.is_dirty(slot);
            }
        }
        newest.filter(|_| dirty)
    }

    /// Cycles that the newest cached data of a line takes beyond the look-up of the tags, in the level that has it.
    pub(crate) fn data_cycles(&self, line: LineAddr) -> Cycle {
        let mut found = self.places(line).filter_map(|(level, core)| {
            let array = self.array(level, core);
            array.find(line).map(|_| array.geometry().latency_cycles - array.geometry().tag_latency_cycles)
        });
        found.next().unwrap_or(0)
    }

    /// The newest cached data of a line.
    pub(crate) fn newest_data(&self, line: LineAddr) -> Option<Line> {
        let mut copies = self.places(line).filter_map(|(level, core)| {
            let array = self.array(level, core);
            array.find(line).map(|slot| *array.data(slot))
        });
        copies.next()
    }

    /// All copies of a line become clean copies of `data`, its newest version, which is being written home. If tags are
    /// notes, each gets the newest note with it: the copy with an older one may be the last that stays.
    pub(crate) fn clean_copies(&mut self, line: LineAddr, data: Line, tags_follow_newest_data: bool) {
        let mut newest = None;
        for (level, core) in self.places(line) {
            let array = self.array_mut(level, core);
            if let Some(slot) = array.find(line) {
                *array.data_mut(slot) = data;
                array.set_dirty(slot, false);
                if tags_follow_newest_data {
                    let note = *newest.get_or_insert(array.tag(slot));
                    array.set_tag(slot, note);
                }
            }
        }
    }

    /// The private copies of a line become clean copies of a version that has come down to the last level.
    pub(crate) fn clean_private_copies(&mut self, core: CoreId, line: LineAddr, data: Line) {
        for &level in self.levels.private() {
            let array = self.array_mut(level, core);
            if let Some(slot) = array.find(line) {
                *array.data_mut(slot) = data;
                array.set_dirty(slot, false);
            }
        }
    }

    /// The private copies of a line become clean copies of the newest of them, with its tag.
    pub(crate) fn clean_to_newest_private(&mut self, core: CoreId, line: LineAddr) {
        let Some((level, slot)) = self.newest_private(core, line) else { return };
        let newest = self.array(level, core).version(slot);
        for &level in self.levels.private() {
            let array = self.array_mut(level, core);
            if let Some(slot) = array.find(line) {
                array.replace(slot, Version { dirty: false, ..newest });
            }
        }
    }

    /// Changes bytes in all cached copies of their line; one copy keeps the change. False if memory has to.
    pub(crate) fn overwrite(&mut self, addr: PhysAddr, bytes: &[u8]) -> bool {
        let line = addr.line();
        let range = addr.offset()..addr.offset() + bytes.len();
        let mut kept = false;
        for (level, core) in self.places(line) {
            let owns = level == LevelId::Llc || self.owns(core, line);
            let array = self.array_mut(level, core);
            if let Some(slot) = array.find(line) {
                array.data_mut(slot)[range.clone()].copy_from_slice(bytes);
                if owns && !kept {
                    array.set_dirty(slot, true);
                    kept = true;
                }
            }
        }
        kept
    }

    /// Gives the newest version of a line a tag. A note goes to all copies, as each of them may be the last that stays.
    pub(crate) fn tag_newest(&mut self, line: LineAddr, tag: LineTag, all: bool) {
        for (level, core) in self.places(line) {
            let array = self.array_mut(level, core);
            if let Some(slot) = array.find(line) {
                array.set_tag(slot, tag);
                if !all {
                    return;
                }
            }
        }
    }

    /// Copies a line up to the L1D; a tagged version moves if its tag has one house. Room was made before.
    pub(crate) fn move_up(
        &mut self,
        from: LevelId,
        core: CoreId,
        slot: Slot,
        ready: Cycle,
        design: &DesignPort,
    ) -> Slot {
        let mut version = self.version(from, core, slot, design);
        if version.tag.is_some() && design.tags_are_exclusive() {
            self.array_mut(from, core).remove(slot);
        } else {
            self.array_mut(from, core).set_tag(slot, version.tag);
            version.dirty = false;
            for &level in self.levels.middle().iter().filter(|&&level| level < from) {
                self.array_mut(level, core).insert(version, ready);
            }
        }
        self.l1d_mut(core).insert(version, ready)
    }

    /// The versions of `lines` that a transaction has tagged are discarded, wherever they are.
    pub(crate) fn discard_tagged(&mut self, tx: TxId, lines: &[LineAddr], design: &DesignPort) {
        for &line in lines {
            let mut discarded = false;
            for core in self.holders(line).collect::<Vec<_>>() {
                for &level in self.levels.private() {
                    discarded |= self.discard_version(level, core, line, tx, design);
                }
            }
            discarded |= self.discard_version(LevelId::Llc, CoreId(0), line, tx, design);
            if discarded {
                self.forget_copies(line, design);
                self.restore_older(line);
            }
        }
    }

    fn discard_version(&mut self, level: LevelId, core: CoreId, line: LineAddr, tx: TxId, design: &DesignPort) -> bool {
        let array = self.array(level, core);
        let tag = array.find(line).map_or(LineTag::NONE, |slot| array.tag(slot));
        let belongs = tag.is_some() && design.belongs_to(tag, tx);
        if belongs {
            self.take_out(level, core, line);
        }
        belongs
    }

    /// Copies of a version that was discarded leave too.
    fn forget_copies(&mut self, line: LineAddr, design: &DesignPort) {
        for core in self.holders(line).collect::<Vec<_>>() {
            for &level in self.levels.private() {
                self.forget_copy(level, core, line, design);
            }
        }
        // A pre-image above it hides what the last level has, and goes down to it later.
        let mut holders = self.holders(line);
        let covered = !design.tags_are_exclusive() && holders.any(|core| self.newest_private(core, line).is_some());
        if !covered {
            self.forget_copy(LevelId::Llc, CoreId(0), line, design);
        }
    }

    /// Copies of a discarded version, and clean ones that may be older than what memory can give by now. Dirty versions
    /// below it stay where tags have one house: they are pre-images.
    fn forget_copy(&mut self, level: LevelId, core: CoreId, line: LineAddr, design: &DesignPort) {
        let exclusive = design.tags_are_exclusive();
        let array = self.array(level, core);
        let Some(slot) = array.find(line) else { return };
        let tag = array.tag(slot);
        // A version with a dead tag is committed, and may be the only one that is.
        let tag = if exclusive { tag } else { design.live(tag) };
        if (!array.is_dirty(slot) || tag.is_some()) && (!tag.is_some() || !exclusive) {
            self.take_out(level, core, line);
        }
    }

    /// Lines of the set of `line` that have live tags.
    pub(crate) fn tagged_lines_of_set(&self, level: LevelId, core: CoreId, line: LineAddr, design: &DesignPort) -> u32 {
        let mut tags = Vec::new();
        self.array(level, core).set_tags(line, &mut tags);
        tags.iter().filter(|tag| design.live(**tag).is_some()).count() as u32
    }

    /// Each array below the L1I with its level and a core that uses it, the last level once.
    pub(crate) fn data_arrays(&self) -> impl Iterator<Item = (LevelId, CoreId, &CacheArray)> {
        let private = self.cores().flat_map(|core| self.levels.private().iter().map(move |&level| (level, core)));
        private.chain([(LevelId::Llc, CoreId(0))]).map(|(level, core)| (level, core, self.array(level, core)))
    }

    /// The lines that are dirty in a cache, some of them several times.
    pub(crate) fn dirty_lines(&self) -> impl Iterator<Item = LineAddr> {
        self.data_arrays().flat_map(|(_, _, array)| {
            let places = 0..array.geometry().sets as usize * array.geometry().ways as usize;
            let slots = places.filter_map(|place| array.slot_at(place)).filter(|&slot| array.is_dirty(slot));
            slots.map(|slot| array.version(slot).line)
        })
    }

    /// The arrays from the last level up, so that newer versions come later.
    pub(super) fn arrays_upwards(&self) -> impl Iterator<Item = (LevelId, CoreId, &CacheArray)> {
        let private = self.levels.private().iter().rev();
        let private = private.flat_map(|&level| self.cores().map(move |core| (level, core)));
        [(LevelId::Llc, CoreId(0))]
            .into_iter()
            .chain(private)
            .map(|(level, core)| (level, core, self.array(level, core)))
    }

    /// Dirty or tagged lines of persistent memory: older versions of the LLC, LLC, then L2, then L1D, so that newer versions come later.
    pub(crate) fn dirty_pmem_lines(&self, design: &DesignPort) -> Vec<CachedLine> {
        let (mut older, mut lines) = (Vec::new(), Vec::new());
        for (level, core, array) in self.arrays_upwards() {
            for slot in array.slots() {
                if !array.is_dirty(slot) && !array.tag(slot).is_some() {
                    continue;
                }
                let version = array.version(slot);
                let tag = design.live(version.tag);
                if is_pmem(line_of(version.line)) && (version.dirty || tag.is_some()) {
                    let core: Option<CoreId> = (level != LevelId::Llc).then_some(core);
                    let (line, dirty, data) = (line_of(version.line), version.dirty, version.data);
                    let of = if is_older(version.line) { &mut older } else { &mut lines };
                    of.push(CachedLine { level, core, line, tag, dirty, data });
                }
            }
        }
        older.append(&mut lines);
        older
    }
}
