//! Arrival of a version in a lower level, where it may meet an older version of its line.

use crate::parts::interconnect::MessageKind;
use crate::parts::work_list::Task;
use crate::setup::memory_map::is_pmem;
use crate::system::System;
use durasim_cache::Version;
use durasim_contract::{LevelId, LineTag, Merge};
use durasim_types::{CoreId, EventKind, LineAddr};

impl System {
    /// A dirty or tagged version comes down on a level. What happens on the way may abort the transaction it belongs to;
    /// then it is discarded like all others.
    pub(super) fn put_below(&mut self, level: LevelId, core: CoreId, version: Version) {
        let line = version.line;
        self.caches.pin(line);
        if level == LevelId::Llc {
            let at = self.interconnect.send_to_llc(core, line, MessageKind::Data, self.work.now());
            self.work.set_now(at);
        }
        let Some(slot) = self.caches.array(level, core).find(line) else {
            if !version.tag.is_some() && self.caches.array(level, core).has_room(line) {
                return self.arrive(level, core, version);
            }
            self.work.push(Task::Arrive { level, core, version });
            return self.work.push(Task::MakeRoom { level, core, line, incoming: version.tag });
        };
        // The data of the resident version is read only if it is a pre-image: it is rarely in the caches of the host.
        let array = self.caches.array(level, core);
        let tag = self.design.live(array.tag(slot));
        let merge = if tag.is_some() || array.is_dirty(slot) {
            self.design.merge(level, line, tag, version.tag)
        } else {
            Merge::Overwrite
        };
        let is_pre_image = merge != Merge::Overwrite;
        let is_new_tag = version.tag.is_some() && !tag.is_some();
        if !is_pre_image && !is_new_tag {
            return self.arrive(level, core, version);
        }
        self.work.push(Task::Arrive { level, core, version });
        if is_new_tag {
            self.work.push(Task::ObeyTagLimit { level, core, line, tag: version.tag });
        }
        if merge == Merge::KeepBoth && level == LevelId::Llc && self.caches.may_keep_older(line, &self.design) {
            self.work.push(Task::KeepOlder { core, line, incoming: version.tag });
            if self.caches.older_version(line).is_none() {
                self.work.push(Task::MakeRoom { level, core, line, incoming: LineTag::NONE });
            }
        } else if is_pre_image {
            let resident = self.caches.version(level, core, slot, &self.design);
            self.work.push(match self.caches.levels().below(level) {
                Some(below) => Task::PutBelow { level: below, core, version: resident },
                None => Task::LeaveCaches { core, version: resident },
            });
        }
    }

    /// The version of a line in the last level is kept beside a newer one that is about to arrive. What has happened while room
    /// was made may have discarded either.
    pub(super) fn keep_older(&mut self, core: CoreId, line: LineAddr, incoming: LineTag) {
        let Some(slot) = self.caches.llc().find(line) else { return };
        let resident = self.caches.version(LevelId::Llc, core, slot, &self.design);
        if self.was_discarded(incoming) || !resident.dirty || resident.tag.is_some() {
            return;
        }
        if !self.caches.keep_older(resident, self.work.now()) {
            self.work.push(Task::LeaveCaches { core, version: resident });
        }
    }

    /// The older version of a line is written to its home address, and leaves the last level.
    pub(super) fn write_older_home(&mut self, core: CoreId, line: LineAddr) {
        let Some(version) = self.caches.older_version(line) else { return };
        self.work.push(Task::TakeOut { level: LevelId::Llc, core, line: version.line });
        self.work.push(Task::LeaveCaches { core, version });
    }

    /// The version has room on the level.
    pub(super) fn arrive(&mut self, level: LevelId, core: CoreId, version: Version) {
        self.caches.unpin();
        if self.was_discarded(version.tag) {
            return;
        }
        let mut version = self.current_version(version);
        version.tag = self.design.live(version.tag);
        let arrives_dirty = version.dirty;
        // A clean copy of the version that is here already makes nothing clean.
        version.dirty |=
            self.design.llc_keeps_tagged() && self.caches.is_dirty_below(level, core, version, &self.design);
        let at = self.work.now();
        if level == LevelId::Llc {
            self.caches.write_llc(version.line, at);
        }
        let array = self.caches.array_mut(level, core);
        match array.find(version.line) {
            Some(slot) => {
                array.replace(slot, version);
                array.touch(slot);
            }
            None => {
                array.insert(version, at);
            }
        }
        if level == LevelId::Llc && arrives_dirty && self.llc_alone_is_durable() && is_pmem(version.line) {
            self.event(EventKind::CacheArrival, at, version.line.base(), Some(core));
        }
    }

    /// Whether a version that carried this live tag has been discarded by an abort since. That the tag is dead by now is
    /// not enough: its transaction may have committed while the version waited in flight, and then it is the newest
    /// committed one.
    pub(super) fn was_discarded(&self, tag: LineTag) -> bool {
        tag.is_some() && !self.design.live(tag).is_some() && self.transactions.is_tag_aborted(tag, &self.design)
    }

    /// A version in flight stays in its place until it has arrived: a scan may mark it there meanwhile, a clean make it clean,
    /// and an abort restore its bytes. Where tags are notes there are no other versions that it could be mixed up with.
    pub(super) fn current_version(&self, version: Version) -> Version {
        if !self.design.tags_follow_newest_data() {
            return version;
        }
        let is_dirty = version.dirty && self.caches.newest_if_dirty(version.line).is_some();
        match self.caches.newest(version.line, &self.design) {
            Some(newest) => Version { data: newest.data, tag: newest.tag, dirty: is_dirty, ..version },
            None => version,
        }
    }

    /// The newest version of a line comes down to the last level, and the copies above become clean copies of it. False if
    /// nothing above is newer, or if it has a tag: that is its design's affair.
    pub(super) fn gather_in_llc(&mut self, line: LineAddr) -> bool {
        let Some((core, version)) = self.caches.untagged_above_llc(line, &self.design) else { return false };
        self.work.push(Task::CleanPrivate { core, line, data: version.data });
        self.work.push(Task::PutBelow { level: LevelId::Llc, core, version });
        true
    }
}
