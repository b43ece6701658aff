//! Lines that leave a level: the victim, its write-back buffer, and the versions that leave with it.

use super::Caches;
use crate::parts::design_port::DesignPort;
use durasim_cache::{CacheArray, Mshrs, Slot, Version};
use durasim_contract::{Hooks, LevelId, LineTag};
use durasim_types::{CoreId, Cycle, LineAddr};

/// A version of a line with its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resident {
    pub level: LevelId,
    pub core: CoreId,
    pub version: Version,
}

impl Caches {
    /// The way that has to leave the set of `line` for a version with the tag `incoming`, if one has to.
    pub(crate) fn victim(
        &mut self,
        level: LevelId,
        core: CoreId,
        line: LineAddr,
        incoming: LineTag,
        room: bool,
        design: &mut DesignPort,
    ) -> Option<Slot> {
        if design.has(Hooks::VICTIM)
            && let Some(way) = self.victim_of_design(level, core, line, incoming, room, design)
        {
            return Some(self.array(level, core).slot_of_way(line, way));
        }
        if room {
            return None;
        }
        let pinned = std::mem::take(&mut self.pinned);
        if level == LevelId::L1d {
            // An L1D may have one way only: what makes room there must never depend on a second one.
            let array = self.array(level, core);
            debug_assert!(!pinned.iter().any(|&pinned| array.is_in_set_of(line, pinned)), "{line}: {pinned:?} stay");
        }
        let victim = self.array_mut(level, core).victim(line, &pinned);
        self.pinned = pinned;
        Some(victim.expect("a set has more ways than lines in service"))
    }

    /// The way that the design wants to leave the set of `line`. Where there is no tag it has no wish.
    fn victim_of_design(
        &mut self,
        level: LevelId,
        core: CoreId,
        line: LineAddr,
        incoming: LineTag,
        room: bool,
        design: &mut DesignPort,
    ) -> Option<usize> {
        let mut tags = std::mem::take(&mut self.view_tags);
        self.array(level, core).set_tags(line, &mut tags);
        let mut tagged = incoming.is_some();
        for tag in &mut tags {
            *tag = design.live(*tag);
            tagged |= tag.is_some();
        }
        let mut choice = None;
        if tagged {
            let mut ranks = std::mem::take(&mut self.view_ranks);
            let pinned = std::mem::take(&mut self.pinned);
            self.array_mut(level, core).set_ranks(line, &pinned, &mut ranks);
            self.pinned = pinned;
            choice = design.victim(level, incoming, !room, &tags, &ranks);
            self.view_ranks = ranks;
        }
        self.view_tags = tags;
        choice
    }

    /// Takes a victim out at once, with the copies above it that inclusion takes along, if all of them are clean and none is
    /// a version: no level below has to be notified. False, and nothing done, otherwise.
    pub(crate) fn drop_clean(&mut self, level: LevelId, core: CoreId, victim: Slot, design: &DesignPort) -> bool {
        let array = self.array(level, core);
        let line = array.line(victim);
        let is_clean =
            |array: &CacheArray, slot: Slot| !array.is_dirty(slot) && !design.is_version(design.live(array.tag(slot)));
        if !is_clean(array, victim) {
            return false;
        }
        let takes_copies_along = self.inclusive && level != LevelId::L1d;
        let is_llc = level == LevelId::Llc;
        let core = self.core_of(core);
        if takes_copies_along {
            // Above a private level is its own core's L1D, above the last one the copies of all holders.
            let mut holders = self.holders(line).filter(|&holder| is_llc || holder == core);
            let all_clean = holders.all(|holder| {
                let above = self.levels.private().iter().filter(|&&above| above < level);
                let mut arrays = above.map(|&above| self.array(above, holder));
                arrays.all(|array| array.find(line).is_none_or(|slot| is_clean(array, slot)))
            });
            if !all_clean {
                return false;
            }
        }
        self.array_mut(level, core).stats.evictions += 1;
        if is_llc && takes_copies_along {
            self.holders(line).for_each(|holder| self.drop_private(holder, line));
            self.cores().for_each(|core| self.drop_code(core, line));
        } else if takes_copies_along {
            let above = self.levels.private().iter().filter(|&&above| above < level);
            above.for_each(|&above| self.take_out(above, core, line));
            self.drop_code(core, line);
        }
        self.take_out(level, core, line);
        true
    }

    /// The buffers of a private level for dirty lines on their way down.
    fn write_back_buffers(&mut self, level: LevelId, core: CoreId) -> &mut Mshrs {
        let place = self.place(core);
        let of_level = if level == LevelId::L1d { &mut self.l1d_write_backs } else { &mut self.l2_write_backs };
        &mut of_level[place]
    }

    /// A dirty line leaves a private level: the cycle in which a buffer has it, until it has arrived below, where it
    /// is in flight for `travels` cycles on a mesh. Where that is the last level, and has ports,
    /// [`Caches::release_write_back_buffer`] ends that.
    pub(crate) fn take_write_back_buffer(&mut self, level: LevelId, core: CoreId, travels: Cycle, at: Cycle) -> Cycle {
        let arrives_after = match self.levels.below(level) {
            // Those of the last level wait for room in the write queues.
            None => return at,
            Some(LevelId::Llc) if self.llc_ports.is_some() => None,
            Some(LevelId::Llc) => Some(self.request_cycles + self.llc_write_cycles),
            Some(below) => Some(self.request_cycles + self.array(below, core).geometry().latency_cycles),
        };
        let buffers = self.write_back_buffers(level, core);
        let start = buffers.acquire(at);
        if let Some(cycles) = arrives_after {
            buffers.release_at(start + travels + cycles);
        }
        start
    }

    /// Whether an untagged version in the L2 of `owner` is older than an untagged one in its L1D.
    pub(crate) fn is_covered_in_l2(&self, owner: CoreId, version: Version, design: &DesignPort) -> bool {
        !design.is_version(version.tag)
            && self.l1d(owner).find(version.line).is_some_and(|slot| {
                let newer = self.l1d(owner);
                newer.is_dirty(slot) && !design.is_version(design.live(newer.tag(slot)))
            })
    }

    /// Whether a version in the L2 is older than the one in the L1D and no pre-image of it.
    pub(crate) fn is_superseded(&self, core: CoreId, below: Version, design: &DesignPort) -> bool {
        let l1d = self.l1d(core);
        let above = l1d.find(below.line).filter(|&slot| l1d.is_dirty(slot));
        above.is_some_and(|slot| design.live(l1d.tag(slot)) == below.tag)
    }

    /// Whether a level has a dirty version of the same transaction as one that comes down on it.
    pub(crate) fn is_dirty_below(&self, level: LevelId, core: CoreId, incoming: Version, design: &DesignPort) -> bool {
        let array = self.array(level, core);
        let resident = array.find(incoming.line).filter(|&slot| array.is_dirty(slot));
        resident.is_some_and(|slot| design.live(array.tag(slot)) == incoming.tag)
    }

    fn is_dirty_in(&self, core: CoreId, line: LineAddr) -> bool {
        self.levels.private().iter().any(|&level| {
            let array = self.array(level, core);
            array.find(line).is_some_and(|slot| array.is_dirty(slot))
        })
    }

    /// The core whose private caches have a dirty version of a line.
    pub(crate) fn dirty_holder(&self, line: LineAddr) -> Option<CoreId> {
        self.holders(line).find(|&core| self.is_dirty_in(core, line))
    }

    /// Whether a line of the last level has no live tag there, and a dirty version with one above it, which an inclusive
    /// last level would lose with it.
    pub(crate) fn is_tagged_above(&self, version: Version, design: &DesignPort) -> bool {
        self.inclusive
            && !design.live(version.tag).is_some()
            && self.holders(version.line).any(|core| {
                self.newest_private(core, version.line).is_some_and(|(level, slot)| {
                    design.live(self.array(level, core).tag(slot)).is_some() && self.is_dirty_in(core, version.line)
                })
            })
    }

    /// The newest private version of a line that is dirty and has no live tag, with its core; one with a tag is its
    /// design's affair.
    pub(crate) fn untagged_above_llc(&self, line: LineAddr, design: &DesignPort) -> Option<(CoreId, Version)> {
        for core in self.holders(line) {
            let (mut dirty, mut tagged) = (false, false);
            for &level in self.levels.private() {
                let array = self.array(level, core);
                if let Some(slot) = array.find(line) {
                    dirty |= array.is_dirty(slot);
                    tagged |= design.live(array.tag(slot)).is_some();
                }
            }
            if tagged || !dirty {
                continue;
            }
            let (level, slot) = self.newest_private(core, line)?;
            return Some((core, Version { dirty: true, ..self.version(level, core, slot, design) }));
        }
        None
    }

    /// The versions of a line that leave with it when the last level loses it, oldest first: with inclusion those of all
    /// cores too.
    pub(crate) fn versions_from_llc_up(&self, line: LineAddr, design: &DesignPort) -> Vec<Resident> {
        let mut places = vec![(LevelId::Llc, CoreId(0))];
        if self.inclusive {
            for core in self.holders(line) {
                places.extend(self.levels.private().iter().rev().map(|&level| (level, core)));
            }
        }
        let resident = |(level, core): (LevelId, CoreId)| {
            let slot = self.array(level, core).find(line)?;
            Some(Resident { level, core, version: self.version(level, core, slot, design) })
        };
        places.into_iter().filter_map(resident).collect()
    }

    /// Whether memory has to be notified of the first of these versions of a line, which are in order of age, oldest first.
    pub(crate) fn must_leave(&self, versions: &[Resident], design: &DesignPort) -> bool {
        let Resident { level, core, version } = versions[0];
        // An untagged version below a newer untagged one is no pre-image: only the newer one is written.
        let superseded = !design.is_version(version.tag)
            && versions[1..].iter().any(|above| above.version.dirty && !design.is_version(above.version.tag));
        // A shared line is a copy of that of the last level.
        let copy = level != LevelId::Llc && !version.dirty && !self.owns(core, version.line);
        (version.dirty || design.is_version(version.tag)) && !copy && !superseded
    }

    /// Code of a line that leaves a level leaves the L1I of a core.
    pub(crate) fn drop_code(&mut self, core: CoreId, line: LineAddr) {
        let l1i = self.l1i_mut(core);
        if let Some(slot) = l1i.find(line) {
            l1i.remove(slot);
        }
    }

    /// The last level is asked for a line at `at`; the cycle in which the look-up begins.
    #[inline]
    pub(crate) fn begin_llc_look_up(&mut self, line: LineAddr, at: Cycle) -> Cycle {
        self.llc_ports.as_mut().map_or(at, |ports| ports.read(line, at))
    }

    /// A line is written into the last level. Only a caller of [`Caches::llc_written_at`] waits for that.
    #[inline]
    pub(crate) fn write_llc(&mut self, line: LineAddr, at: Cycle) {
        if let Some(ports) = &mut self.llc_ports {
            ports.write(line, at);
        }
    }

    /// A line that memory has sent until `at` is written into the last level; the cycle from which its data can go up.
    pub(crate) fn fill_llc(&mut self, line: LineAddr, at: Cycle) -> Cycle {
        let Some(ports) = &mut self.llc_ports else { return at };
        let written = ports.write(line, at);
        if ports.fills_first() { written } else { at }
    }

    /// Cycle in which a line that has come down to the last level at `at` is written there.
    pub(crate) fn llc_written_at(&self, at: Cycle) -> Cycle {
        self.llc_ports.as_ref().map_or(at + self.llc_write_cycles, |ports| ports.written_at().max(at))
    }

    /// Whether a buffer of the level above the last one keeps its line until a port of the last level has taken it.
    pub(crate) fn has_llc_ports(&self) -> bool {
        self.llc_ports.is_some()
    }

    /// A line that came down to the last level is written there: its buffer is free.
    pub(crate) fn release_write_back_buffer(&mut self, core: CoreId, at: Cycle) {
        let written = self.llc_written_at(at).max(at + self.request_cycles + self.llc_write_cycles);
        self.write_back_buffers(self.levels.last_private(), core).release_at(written);
    }
}
