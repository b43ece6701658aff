//! What has to hold of the caches between two requests. Looked at after each miss in debug builds, and by the tester.

use super::System;
use durasim_design::{LevelId, LineTag};
use durasim_types::{CoreId, LineAddr};

impl System {
    /// Checks a line: one writer or many readers, a directory that knows them all, clean shared copies that are equal,
    /// and no private copy without one below it where levels include each other.
    ///
    /// # Errors
    /// What does not hold.
    pub fn check_line(&self, line: LineAddr) -> Result<(), String> {
        let private: Vec<CoreId> = self.cores().filter(|&core| self.newest_private(core, line).is_some()).collect();
        if !self.alone() {
            let entry = self.directory.entry(line);
            let known: Vec<CoreId> = entry.cores().collect();
            if known != private {
                return Err(format!("{line}: the directory knows {known:?}, the caches of {private:?} hold it"));
            }
            for &core in &private {
                let slot = self.l1d[core.0 as usize].find(line);
                if slot.is_some_and(|slot| self.l1d[core.0 as usize].is_exclusive(slot)) && entry.owner != Some(core) {
                    return Err(format!("{line}: {core:?} may write it, the directory has owner {:?}", entry.owner));
                }
            }
            if entry.owner.is_none() {
                self.check_shared(line, &private)?;
            }
        }
        self.check_inclusion(line, &private)
    }

    fn check_shared(&self, line: LineAddr, private: &[CoreId]) -> Result<(), String> {
        let mut first = None;
        for &core in private {
            for level in [LevelId::L1d, LevelId::L2] {
                let array = self.array(level, core);
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
        let below = self.llc.find(line).map(|slot| self.llc.data(slot));
        match (first, below) {
            (Some(above), Some(below)) if above != below => Err(format!("{line}: shared copies differ from the LLC")),
            _ => Ok(()),
        }
    }

    /// A version whose tag has one house may have no copy below it: it moved up, or a design gave it.
    fn check_inclusion(&self, line: LineAddr, private: &[CoreId]) -> Result<(), String> {
        if !self.inclusive || self.exclusive_tags || self.llc.find(line).is_some() {
            return Ok(());
        }
        for &core in private {
            if let Some((level, slot)) = self.newest_private(core, line) {
                let array = self.array(level, core);
                // A design that gives a dirty line gives it to the L1D alone.
                if !array.is_dirty(slot) && array.tag(slot) == LineTag::NONE {
                    return Err(format!("{line}: {core:?} has it in its {}, the LLC has not", level.name()));
                }
            }
        }
        Ok(())
    }

    /// Checks every line in the caches.
    ///
    /// # Errors
    /// What does not hold, of the first line that is wrong.
    pub fn check_all_lines(&self) -> Result<(), String> {
        let mut lines: Vec<LineAddr> = self.directory.iter().map(|(line, _)| line).collect();
        for core in self.cores() {
            for level in LevelId::ALL {
                lines.extend(self.array(level, core).slots().map(|slot| self.array(level, core).version(slot).line));
            }
        }
        lines.sort_unstable();
        lines.dedup();
        lines.into_iter().try_for_each(|line| self.check_line(line))
    }

    #[inline]
    pub(super) fn debug_check(&self, line: LineAddr) {
        if cfg!(debug_assertions)
            && !self.halted
            && let Err(problem) = self.check_line(line)
        {
            panic!("{problem}");
        }
    }
}
