//! Older versions: a committed version of a line that the last level keeps beside an uncommitted one, in another way of its set
//! (`Merge::KeepBoth`). Its tag has one bit more than that of the line, so that a look-up for the line does not find it.

use super::Caches;
use crate::parts::design_port::DesignPort;
use durasim_cache::Version;
use durasim_contract::LevelId;
use durasim_types::{CoreId, Cycle, LineAddr};

/// The bit that an older version has in addition. No memory reaches it, and it is no part of the number of a set.
const OLDER: u64 = 1 << 57;

/// The tag of the older version of a line.
pub(crate) fn older(line: LineAddr) -> LineAddr {
    LineAddr(line.0 | OLDER)
}

/// Whether a tag is that of an older version.
pub(crate) fn is_older(line: LineAddr) -> bool {
    line.0 & OLDER != 0
}

/// The line of a tag.
pub(crate) fn line_of(tag: LineAddr) -> LineAddr {
    LineAddr(tag.0 & !OLDER)
}

impl Caches {
    /// Whether the older version of a line, which is in the last level, can get a way: a free one, or that of a line which
    /// is not in service and no uncommitted one.
    pub(crate) fn may_keep_older(&mut self, line: LineAddr, design: &DesignPort) -> bool {
        let pinned = std::mem::take(&mut self.pinned);
        let (mut tags, mut ranks) = (std::mem::take(&mut self.view_tags), std::mem::take(&mut self.view_ranks));
        self.llc.set_tags(line, &mut tags);
        self.llc.set_ranks(line, &pinned, &mut ranks);
        let takes = |(tag, rank): (&_, &u32)| *rank != u32::MAX && !design.live(*tag).is_some();
        let found =
            self.llc.has_room(line) || self.llc.find(older(line)).is_some() || tags.iter().zip(&ranks).any(takes);
        (self.pinned, self.view_tags, self.view_ranks) = (pinned, tags, ranks);
        found
    }

    /// The version in the last level becomes an older one beside it. False if there is no way for it.
    pub(crate) fn keep_older(&mut self, version: Version, at: Cycle) -> bool {
        let kept = Version { line: older(version.line), ..version };
        match self.llc.find(kept.line) {
            Some(slot) => self.llc.replace(slot, kept),
            None if self.llc.has_room(version.line) => {
                self.llc.insert(kept, at);
            }
            None => return false,
        }
        true
    }

    /// The older version of a line, if the last level has one.
    pub(crate) fn older_version(&self, line: LineAddr) -> Option<Version> {
        self.llc.find(older(line)).map(|slot| self.llc.version(slot))
    }

    /// Whether a request or a task is about a line.
    fn is_in_service(&self, line: LineAddr) -> bool {
        self.pinned.contains(&line)
    }

    /// Older versions whose newer ones were discarded while their lines were in service: they have to be written to their home address.
    pub(crate) fn left_alone(&self, lines: &[LineAddr]) -> Vec<LineAddr> {
        let is_left = |line: &LineAddr| self.is_in_service(*line) && self.llc.find(older(*line)).is_some();
        lines.iter().copied().filter(is_left).collect()
    }

    /// The older version of a line is needed no more, unless an open transaction could still be aborted to it.
    pub(crate) fn drop_older(&mut self, line: LineAddr, design: &DesignPort) {
        let open = self.llc.find(line).is_some_and(|slot| design.live(self.llc.tag(slot)).is_some());
        if !open {
            self.take_out(LevelId::Llc, CoreId(0), older(line));
        }
    }

    /// The newer version of a line was discarded: the older one is the only one in the last level, if nothing else has come
    /// down meanwhile. While the line is in service what moves it would take this version for the other one.
    pub(crate) fn restore_older(&mut self, line: LineAddr) {
        let Some(slot) = self.llc.find(older(line)) else { return };
        if self.llc.find(line).is_some() || self.is_in_service(line) {
            return;
        }
        let version = self.llc.version(slot);
        self.llc.remove(slot);
        self.llc.insert(Version { line, ..version }, 0);
    }
}
