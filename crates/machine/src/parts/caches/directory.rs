//! Coherence: one writer or many readers of each line, kept by a full-map directory beside the last level (MESI).
//!
//! States of a line in the private caches of a core: its L1D copy may be *exclusive* (MESI E, or M if a copy is dirty),
//! which the directory knows as the owner; else it is shared and clean.

use super::Caches;
use crate::parts::design_port::DesignPort;
use durasim_cache::{Directory, Slot};
use durasim_contract::{LevelId, LineTag};
use durasim_types::{CoreId, Cycle, LineAddr, Stats};
use serde::{Deserialize, Serialize};

/// Access that a core wants to make to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessMode {
    /// Load, or fetch code.
    Read,
    /// Store: no other core keeps a copy.
    Write,
}

/// Counters of the directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoherenceStats {
    /// Lines that another core owned and gave up or shared.
    pub transfers: u64,
    /// Lines that readers lost to a writer.
    pub invalidations: u64,
    /// Lines that a core had and asked to write.
    pub upgrades: u64,
    /// Probes that a design answered with an abort.
    pub conflict_aborts: u64,
}

impl CoherenceStats {
    pub(super) fn stats(&self, stats: &mut Stats) {
        stats.count("coherence.transfers", self.transfers, "Lines that another core owned and gave up or shared");
        stats.count("coherence.invalidations", self.invalidations, "Copies that readers lost to a writer");
        stats.count("coherence.upgrades", self.upgrades, "Lines that a core could read and asked to write");
        stats.count("coherence.conflict_aborts", self.conflict_aborts, "Requests for which a transaction was aborted");
    }
}

impl Caches {
    /// The directory.
    pub(crate) fn directory(&self) -> &Directory {
        &self.directory
    }

    pub(crate) fn coherence_stats_mut(&mut self) -> &mut CoherenceStats {
        &mut self.coherence_stats
    }

    /// Whether the L1D copy in `slot` may be accessed without asking the directory.
    #[inline(always)]
    pub(crate) fn may_access(&self, core: CoreId, slot: Slot, want: AccessMode) -> bool {
        want == AccessMode::Read || self.is_single_core() || self.l1d(core).is_exclusive(slot)
    }

    /// The slot of a line in the L1D of `core`, if the core may access it there without asking the directory.
    #[inline(always)]
    pub(crate) fn usable_in_l1d(&self, core: CoreId, line: LineAddr, want: AccessMode) -> Option<Slot> {
        let array = self.l1d(core);
        array.find(line).filter(|&slot| want == AccessMode::Read || self.is_single_core() || array.is_exclusive(slot))
    }

    /// Whether the L1D of `core` has a line that the core may read and not write.
    pub(crate) fn is_read_only_in_l1d(&self, core: CoreId, line: LineAddr) -> bool {
        self.l1d(core).find(line).is_some_and(|slot| !self.may_access(core, slot, AccessMode::Write))
    }

    /// Whether `core` may write the line without asking, in any of its private caches.
    pub(crate) fn owns(&self, core: CoreId, line: LineAddr) -> bool {
        self.is_single_core() || self.directory.entry(line).owner == Some(self.core_of(core))
    }

    /// The private copy of a line that is newest: level and slot.
    pub(crate) fn newest_private(&self, core: CoreId, line: LineAddr) -> Option<(LevelId, Slot)> {
        let find = |&level: &LevelId| self.array(level, core).find(line).map(|slot| (level, slot));
        self.levels.private().iter().find_map(find)
    }

    /// The cores that hold a line in private caches.
    pub(crate) fn holders(&self, line: LineAddr) -> impl Iterator<Item = CoreId> + use<> {
        let single = self.is_single_core().then_some(CoreId(0));
        let many = (!self.is_single_core()).then(|| self.directory.entry(line).cores());
        single.into_iter().chain(many.into_iter().flatten())
    }

    /// The line that the request of `core` is about: its newest version elsewhere, or in the last level, if that has a
    /// live tag. A shared tagged line counts too if the core wants to write it, and one of its own where a thread has
    /// `moved` inside its transaction.
    pub(crate) fn tagged_elsewhere(
        &self,
        core: CoreId,
        line: LineAddr,
        want: AccessMode,
        moved: bool,
        design: &DesignPort,
    ) -> Option<(LineTag, Option<CoreId>)> {
        let core = self.core_of(core);
        let others = self.holders(line).filter(|&other| other != core);
        for other in others {
            if let Some((level, slot)) = self.newest_private(other, line) {
                let tag = design.live(self.array(level, other).tag(slot));
                return tag.is_some().then_some((tag, Some(other)));
            }
        }
        let own = self.newest_private(core, line);
        if let Some((level, slot)) = own {
            let tag = design.live(self.array(level, core).tag(slot));
            return (tag.is_some() && (want == AccessMode::Write || moved)).then_some((tag, Some(core)));
        }
        let tag = self.llc.find(line).map_or(LineTag::NONE, |slot| design.live(self.llc.tag(slot)));
        tag.is_some().then_some((tag, None))
    }

    /// The copies of an owner become clean, shared copies of its newest version.
    pub(crate) fn share(&mut self, owner: CoreId, line: LineAddr) {
        let Some((level, slot)) = self.newest_private(owner, line) else { return };
        let newest = *self.array(level, owner).data(slot);
        let tag = self.array(level, owner).tag(slot);
        for &level in self.levels.private() {
            let array = self.array_mut(level, owner);
            if let Some(slot) = array.find(line) {
                *array.data_mut(slot) = newest;
                array.set_tag(slot, tag);
                array.set_dirty(slot, false);
                array.set_exclusive(slot, false);
            }
        }
        self.directory.downgrade(line);
    }

    /// A core loses its private copies of a line.
    pub(crate) fn drop_private(&mut self, core: CoreId, line: LineAddr) {
        for &level in self.levels.private().iter().rev() {
            self.take_out(level, core, line);
        }
    }

    /// A copy leaves an array; with the last private one the directory forgets the core.
    pub(crate) fn take_out(&mut self, level: LevelId, core: CoreId, line: LineAddr) {
        let array = self.array_mut(level, core);
        if let Some(slot) = array.find(line) {
            array.remove(slot);
        }
        if level != LevelId::Llc && !self.is_single_core() && self.newest_private(core, line).is_none() {
            self.directory.remove_sharer(line, self.core_of(core));
        }
    }

    /// No cache holds the line any more.
    pub(crate) fn invalidate(&mut self, line: LineAddr) {
        for core in self.holders(line).collect::<Vec<_>>() {
            self.drop_private(core, line);
        }
        self.take_out(LevelId::Llc, CoreId(0), line);
    }

    /// `core` has got a line into its private caches. It owns it if it wanted to, or if no other core has it.
    pub(crate) fn note_arrival(&mut self, core: CoreId, line: LineAddr, want: AccessMode) {
        if self.is_single_core() {
            return;
        }
        let thread = core;
        let core = self.core_of(thread);
        let entry = self.directory.entry(line);
        let unshared = entry.others(core).next().is_none();
        if want == AccessMode::Write || unshared {
            debug_assert!(unshared, "{line} is written by {core:?} while others have it");
            self.directory.grant(line, core);
            self.end_reservations(Some(thread), line);
            let array = self.l1d_mut(core);
            if let Some(slot) = array.find(line) {
                array.set_exclusive(slot, true);
            }
        } else {
            self.directory.add_sharer(line, core);
        }
    }

    /// The core that asked to write a line keeps it until this cycle at least.
    #[inline]
    pub(crate) fn keep_busy(&mut self, line: LineAddr, until: Cycle) {
        self.directory.keep_busy(line, until);
    }

    /// Sets the holders of a line in the directory. A single core owns it, as if it had been the first to read it.
    pub(super) fn note_holders(&mut self, line: LineAddr, cores: &[CoreId]) {
        if let [core] = *cores {
            self.directory.grant(line, core);
            let array = self.l1d_mut(core);
            if let Some(slot) = array.find(line) {
                array.set_exclusive(slot, true);
            }
        } else {
            cores.iter().for_each(|&core| self.directory.add_sharer(line, core));
        }
    }

    /// The hardware threads that have reserved a line.
    pub(crate) fn reserving(&self, line: LineAddr) -> impl Iterator<Item = CoreId> {
        let reserved = self.reservations.iter().enumerate().filter(move |(_, reserved)| **reserved == Some(line));
        reserved.map(|(thread, _)| CoreId(thread as u16))
    }

    /// LR reserves a line for its hardware thread.
    pub(crate) fn reserve(&mut self, core: CoreId, line: LineAddr) {
        self.reservations[core.0 as usize] = Some(line);
    }

    /// Takes the reservation of a hardware thread.
    pub(crate) fn take_reservation(&mut self, core: CoreId) -> Option<LineAddr> {
        self.reservations[core.0 as usize].take()
    }

    /// Another core or thread, or the kernel (`None`), may write a line from now on.
    pub(crate) fn end_reservations(&mut self, writer: Option<CoreId>, line: LineAddr) {
        for (core, reservation) in self.reservations.iter_mut().enumerate() {
            if *reservation == Some(line) && writer.is_none_or(|writer| writer.0 as usize != core) {
                *reservation = None;
            }
        }
    }
}
