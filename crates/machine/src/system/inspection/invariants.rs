//! Invariants of the caches between two requests. Checked after each miss in debug builds, and by the random tester.

use crate::setup::memory_map::is_pmem;
use crate::system::System;
use durasim_contract::{Hooks, LevelId, LineTag};
use durasim_types::{CoreId, LineAddr};

impl System {
    /// Checks a line: one writer or many readers, a directory that knows them all, clean shared copies that are equal,
    /// no reservation but those that the writer leaves, clean copies that are copies of the version below them, one note of
    /// shared copies, one house for a tag, no more tags in a set than its limit, and no private copy without one below it where levels include each other.
    ///
    /// # Errors
    /// The violated invariant.
    pub fn check_line(&self, line: LineAddr) -> Result<(), String> {
        let private: Vec<CoreId> =
            self.caches.cores().filter(|&core| self.caches.newest_private(core, line).is_some()).collect();
        if !self.caches.is_single_core() {
            let entry = self.caches.directory().entry(line);
            let known: Vec<CoreId> = entry.cores().collect();
            if known != private {
                return Err(format!("{line}: the directory knows {known:?}, the caches of {private:?} hold it"));
            }
            for &core in &private {
                let slot = self.caches.l1d(core).find(line);
                if slot.is_some_and(|slot| self.caches.l1d(core).is_exclusive(slot)) && entry.owner != Some(core) {
                    return Err(format!("{line}: {core:?} may write it, the directory has owner {:?}", entry.owner));
                }
            }
            match entry.owner {
                None => self.check_shared(line, &private)?,
                Some(owner) => {
                    let lost = |thread: &CoreId| self.caches.core_of(*thread) != owner;
                    if let Some(thread) = self.caches.reserving(line).find(lost) {
                        return Err(format!("{line}: {thread:?} has reserved it, {owner:?} may write it"));
                    }
                }
            }
        }
        for &core in &private {
            self.check_copies(core, line)?;
        }
        if self.design.tags_are_exclusive() {
            self.check_single_tagged_version(line, &private)?;
        }
        self.check_tag_limits(line)?;
        self.persist_buffers.check(line, self.caches.newest(line, &self.design))?;
        self.check_inclusion(line, &private)
    }

    /// Above the newest dirty version a clean copy is a copy of the next one below it, the last one of what memory has: a
    /// clean copy may leave without a trace.
    fn check_copies(&self, core: CoreId, line: LineAddr) -> Result<(), String> {
        let mut copies = self.caches.copies_of(core, line).peekable();
        while let Some((level, version)) = copies.next() {
            match self.design.is_version(self.design.live(version.tag)) {
                // An abort uncovers the version below it.
                true => continue,
                // It will cover the version below it.
                false if version.dirty => return Ok(()),
                false => {}
            }
            let same = match copies.peek() {
                Some((_, below)) => below.data == version.data,
                // Such a design may have given what memory does not have.
                None if is_pmem(line) && self.design.has(Hooks::FILL) && !self.design.tags_are_exclusive() => true,
                None => self.memories.peek(line) == version.data,
            };
            if !same {
                return Err(format!("{line}: a clean copy in the {} of {core:?} differs from below", level.name()));
            }
        }
        Ok(())
    }

    /// A version with a live tag is the newest one and the only one with a tag: it moves, and is not copied.
    fn check_single_tagged_version(&self, line: LineAddr, private: &[CoreId]) -> Result<(), String> {
        let mut tagged = 0;
        let mut above = 0;
        for &core in private {
            for (level, version) in self.caches.copies_of(core, line).filter(|(level, _)| *level != LevelId::Llc) {
                if self.design.live(version.tag).is_some() {
                    tagged += 1;
                    if above > 0 || private.len() > 1 {
                        return Err(format!("{line}: a tagged version in the {} is not alone on top", level.name()));
                    }
                }
                above += 1;
            }
        }
        if let Some(slot) = self.caches.llc().find(line)
            && self.design.live(self.caches.llc().tag(slot)).is_some()
        {
            tagged += 1;
            if above > 0 {
                return Err(format!("{line}: cores have it above a tagged version in the LLC"));
            }
        }
        if tagged > 1 { Err(format!("{line}: {tagged} tagged versions")) } else { Ok(()) }
    }

    /// The sets of a line never have more live tags than they may.
    fn check_tag_limits(&self, line: LineAddr) -> Result<(), String> {
        for &level in self.caches.levels().all() {
            let Some(limit) = self.design.tag_limit(level) else { continue };
            for core in self.caches.cores().filter(|core| level != LevelId::Llc || core.0 == 0) {
                let tagged = self.caches.tagged_lines_of_set(level, core, line, &self.design);
                if tagged > limit {
                    let name = level.name();
                    return Err(format!(
                        "{line}: {tagged} lines of its set in the {name} of {core:?} have tags, not {limit}"
                    ));
                }
            }
        }
        Ok(())
    }

    fn check_shared(&self, line: LineAddr, private: &[CoreId]) -> Result<(), String> {
        let mut first = None;
        for &core in private {
            for &level in self.caches.levels().private() {
                let array = self.caches.array(level, core);
                let Some(slot) = array.find(line) else { continue };
                if array.is_dirty(slot) {
                    return Err(format!(
                        "{line}: a dirty copy in the {} of {core:?}, which does not own it",
                        level.name()
                    ));
                }
                let data = array.data(slot);
                if *first.get_or_insert(data) != data {
                    return Err(format!("{line}: shared copies differ"));
                }
            }
        }
        if self.design.tags_follow_newest_data() && !self.design.notes_expire() {
            self.check_notes(line)?;
        }
        let below = self.caches.llc().find(line).map(|slot| self.caches.llc().data(slot));
        match (first, below) {
            (Some(above), Some(below)) if above != below => Err(format!("{line}: shared copies differ from the LLC")),
            _ => Ok(()),
        }
    }

    /// Copies that cores share have one note: the last one that stays needs it.
    fn check_notes(&self, line: LineAddr) -> Result<(), String> {
        let mut first = None;
        for (level, core, array) in self.caches.data_arrays() {
            let Some(slot) = array.find(line) else { continue };
            let note = self.design.live(array.tag(slot));
            let expected = *first.get_or_insert(note);
            if note != expected {
                let name = level.name();
                return Err(format!(
                    "{line}: its copy in the {name} of {core:?} has the note {note:?}, not {expected:?}"
                ));
            }
        }
        Ok(())
    }

    /// A version whose tag has one house may have no copy below it: it moved up, or a design gave it.
    fn check_inclusion(&self, line: LineAddr, private: &[CoreId]) -> Result<(), String> {
        if !self.caches.inclusive() || self.design.tags_are_exclusive() || self.caches.llc().find(line).is_some() {
            return Ok(());
        }
        for &core in private {
            if let Some((level, slot)) = self.caches.newest_private(core, line) {
                let array = self.caches.array(level, core);
                // A design that gives a dirty line gives it to the L1D alone.
                if !array.is_dirty(slot) && array.tag(slot) == LineTag::NONE {
                    return Err(format!("{line}: {core:?} has it in its {}, the LLC has not", level.name()));
                }
            }
        }
        Ok(())
    }

    /// The core of a hardware thread, by the number of its first one.
    pub fn core_of(&self, thread: CoreId) -> CoreId {
        self.caches.core_of(thread)
    }

    /// The only core that may write a line, if there is one.
    pub fn writer_of(&self, line: LineAddr) -> Option<CoreId> {
        if self.caches.is_single_core() { Some(CoreId(0)) } else { self.caches.directory().entry(line).owner }
    }

    /// Checks every line in the caches.
    ///
    /// # Errors
    /// The violated invariant of the first line that is wrong.
    pub fn check_all_lines(&self) -> Result<(), String> {
        let mut lines: Vec<LineAddr> = self.caches.directory().iter().map(|(line, _)| line).collect();
        for core in self.caches.cores() {
            for &level in self.caches.levels().all() {
                lines.extend(
                    self.caches
                        .array(level, core)
                        .slots()
                        .map(|slot| self.caches.array(level, core).version(slot).line),
                );
            }
        }
        lines.sort_unstable();
        lines.dedup();
        lines.into_iter().try_for_each(|line| self.check_line(line))
    }

    #[inline]
    pub(in crate::system) fn debug_check(&self, line: LineAddr) {
        if cfg!(debug_assertions)
            && !self.halted()
            && let Err(problem) = self.check_line(line)
        {
            panic!("{problem}");
        }
    }
}
