//! Eviction of a line from a level: the victim, its versions from level to level, and from the last level to memory.
//!
//! A line may exist in several versions, the newer ones above. Whatever leaves a level, the newest version stays
//! reachable and a pre-image that the design wants kept goes down before the version above it. A version is taken
//! out of its level only after it has arrived below, so that it is in at least one place at every persist event.

use crate::parts::caches::{Resident, is_older, line_of};
use crate::parts::interconnect::{End, MessageKind};
use crate::parts::work_list::{Condition, Task};
use crate::setup::memory_map::is_pmem;
use crate::system::System;
use durasim_cache::{Slot, Version};
use durasim_contract::{Actions, Evict, Hooks, LevelId, LineTag, Origin};
use durasim_memory::{Write, WriteToken};
use durasim_types::{Cause, CoreId, Cycle, LineAddr};

impl System {
    pub(super) fn make_room_in(&mut self, level: LevelId, core: CoreId, line: LineAddr, incoming: LineTag) {
        let room = self.caches.array(level, core).has_room(line);
        if room && !incoming.is_some() {
            return;
        }
        if let Some(victim) = self.caches.victim(level, core, line, incoming, room, &mut self.design) {
            if !incoming.is_some() && self.drop_clean(level, core, victim) {
                return;
            }
            self.work.push(Task::MakeRoom { level, core, line, incoming });
            self.evict(level, core, victim);
        }
    }

    /// Fast path: a clean victim that needs no notification. False where a task may have to do more.
    fn drop_clean(&mut self, level: LevelId, core: CoreId, victim: Slot) -> bool {
        let line = self.caches.array(level, core).line(victim);
        let is_design_asked = self.design.is_asked_in_private(line);
        // On a mesh the cores are notified by messages; where the last level alone is durable, it first gathers what is above.
        let is_plain = level != LevelId::Llc || (self.interconnect.mesh().is_none() && !self.llc_alone_is_durable());
        let is_dropped = is_plain
            && !is_design_asked
            && !is_older(line)
            && self.caches.drop_clean(level, core, victim, &self.design);
        if is_dropped {
            self.observers.made_room(core, self.work.now(), level.name(), line, false);
        }
        is_dropped
    }

    pub(super) fn enforce_tag_limit(&mut self, level: LevelId, core: CoreId, line: LineAddr, tag: LineTag) {
        if let Some(victim) = self.caches.victim(level, core, line, tag, true, &mut self.design) {
            self.evict(level, core, victim);
        }
    }

    /// Evicts the line in a slot.
    fn evict(&mut self, level: LevelId, core: CoreId, slot: Slot) {
        let array = self.caches.array(level, core);
        let line = array.line(slot);
        let important = array.is_dirty(slot) || self.design.is_version(self.design.live(array.tag(slot)));
        if level == LevelId::Llc
            && self.design.llc_keeps_tagged()
            && self.caches.is_tagged_above(array.version(slot), &self.design)
        {
            return self.work.push(Task::PushToLlc { line });
        }
        let inclusive = self.caches.inclusive();
        let stats = &mut self.caches.array_mut(level, core).stats;
        stats.evictions += 1;
        self.observers.made_room(core, self.work.now(), level.name(), line, important);
        if !important && (level == LevelId::L1d || !inclusive) {
            return self.caches.take_out(level, core, line);
        }
        self.caches.pin(line);
        self.work.push(Task::Unpin);
        if important {
            self.caches.array_mut(level, core).stats.write_backs += 1;
            self.observers.evicted(core, self.work.now(), level.name(), line);
            let is_last_private = level == self.caches.levels().last_private();
            let travels =
                if is_last_private { self.interconnect.cycles_to_llc(core, line, MessageKind::Data) } else { 0 };
            let at = self.caches.take_write_back_buffer(level, core, travels, self.work.now());
            self.work.set_now(at);
            if level == LevelId::Llc {
                // The victim is read.
                self.caches.begin_llc_look_up(line, at);
            } else if is_last_private && self.caches.has_llc_ports() {
                self.work.push(Task::WrittenBack { core });
            }
        }
        let Some(below) = self.caches.levels().below(level) else { return self.leave_llc(line) };
        if inclusive && level != LevelId::L1d {
            self.work.push(Task::LeaveL1 { core, line });
        }
        self.leave_private(level, below, core, line);
    }

    /// The L1 copies of a line leave because L2 loses the line: below it, the LLC takes the newest version.
    pub(super) fn leave_l1(&mut self, core: CoreId, line: LineAddr) {
        self.caches.drop_code(core, line);
        if self.caches.has_filter_buffers() {
            // A line of filters is in the buffer or in the L1D, and no design is asked about it.
            self.move_to(LevelId::Llc, LevelId::FilterBuffer, core, line);
        }
        self.leave_private(LevelId::L1d, LevelId::Llc, core, line);
    }

    /// The version of a private level comes down to the level `to`, if the design has nothing against it.
    fn leave_private(&mut self, from: LevelId, to: LevelId, core: CoreId, line: LineAddr) {
        if self.design.is_asked_in_private(line) {
            self.ask_private(from, Some(to), core, line);
        } else {
            self.move_to(to, from, core, line);
        }
    }

    /// A version comes down to the level `to` if it counts, then it leaves its array.
    pub(super) fn move_to(&mut self, to: LevelId, from: LevelId, core: CoreId, line: LineAddr) {
        let Some(slot) = self.caches.array(from, core).find(line) else { return };
        self.work.push(Task::TakeOut { level: from, core, line });
        let array = self.caches.array(from, core);
        if array.is_dirty(slot) || self.design.is_version(self.design.live(array.tag(slot))) {
            let version = self.caches.version(from, core, slot, &self.design);
            self.work.push(Task::PutBelow { level: to, core, version });
        }
    }

    /// Asks the design about a version that leaves a private level. What happens before it moves may take it away.
    pub(super) fn ask_private(&mut self, from: LevelId, to: Option<LevelId>, core: CoreId, line: LineAddr) {
        let at = self.work.now();
        if self.agenda.due() <= at {
            self.work.push(Task::AskPrivate { from, to, core, line });
            return self.work.push(Task::Advance { until: at });
        }
        let Some(slot) = self.caches.array(from, core).find(line) else { return };
        let version = self.caches.version(from, core, slot, &self.design);
        let moves = to.map(|to| Task::Move { from, to, core, line });
        if !version.dirty && !version.tag.is_some() {
            return moves.into_iter().for_each(|task| self.work.push(task));
        }
        let take_out = Task::TakeOut { level: from, core, line };
        let mut out = self.design.actions();
        let cx = self.cx(core, at);
        match self.design.evict(&cx, from, &version, &mut out) {
            Evict::Proceed => moves.into_iter().for_each(|task| self.work.push(task)),
            Evict::To { at: place, cause, token } => {
                let from = Origin::Core(core);
                let token = token.map(|token| WriteToken::new(token.0, from));
                let write = Write { token, ..Write::line(place.line(), version.data, cause) };
                self.work.push(take_out);
                self.work.push(Task::Submit { core, from, write, at });
            }
            Evict::Drop => self.work.push(take_out),
            Evict::Abort(tx, why) => {
                moves.into_iter().for_each(|task| self.work.push(task));
                self.work.push(Task::Abort { tx, why });
            }
            Evict::After(wait) => {
                self.work.push(Task::AskPrivate { from, to, core, line });
                self.work.push(Task::Await { wait });
            }
        }
        self.push_actions(core, at, out);
    }

    /// A line leaves the LLC: its versions, oldest first, go to memory; with inclusion those above leave too.
    fn leave_llc(&mut self, line: LineAddr) {
        if !self.caches.inclusive() {
            return self.collect_versions(line);
        }
        self.work.push(Task::DropCode { line });
        self.work.push(Task::CollectVersions { line });
        if self.llc_alone_is_durable() {
            // A kept line may not leave before the version that replaces it is as durable.
            self.gather_in_llc(line);
        }
        if self.design.is_asked_in_private(line) {
            for core in self.caches.holders(line) {
                for &from in self.caches.levels().private() {
                    self.work.push(Task::AskPrivate { from, to: None, core, line });
                }
            }
        }
    }

    pub(super) fn collect_versions(&mut self, line: LineAddr) {
        let versions = self.caches.versions_from_llc_up(line, &self.design);
        self.leave_versions(line, versions, 0);
    }

    pub(super) fn leave_versions(&mut self, line: LineAddr, versions: Vec<Resident>, next: usize) {
        for index in next..versions.len() {
            let Resident { level, core, version } = versions[index];
            if self.caches.must_leave(&versions[index..], &self.design) && !self.was_discarded(version.tag) {
                if level != LevelId::Llc {
                    let recalled = self.recall(core, line, &versions[..index]);
                    let at = self.interconnect.send_to_llc(core, line, MessageKind::Data, recalled);
                    self.work.set_now(at);
                }
                self.work.push(Task::LeaveVersions { line, versions, next: index + 1 });
                self.work.push(Task::TakeOut { level, core, line });
                return self.work.push(Task::LeaveCaches { core, version });
            }
            // Oldest first here too: a dirty version that stays would be flushed over a newer one by a power failure.
            self.caches.take_out(level, core, line);
            if level != LevelId::Llc {
                // No request waits for a copy that is only dropped.
                self.recall(core, line, &versions[..index]);
            }
        }
    }

    /// On a mesh the last level notifies a core, once, that it loses a line; the cycle in which the core knows. In the other topologies this
    /// message takes nothing.
    fn recall(&mut self, core: CoreId, line: LineAddr, before: &[Resident]) -> Cycle {
        let now = self.work.now();
        let is_notified = before.iter().any(|other| other.level != LevelId::Llc && other.core == core);
        match self.interconnect.mesh() {
            Some(mesh) if !is_notified => mesh.send(End::Bank(line), End::Core(core), 0, now),
            _ => now,
        }
    }

    /// A dirty or tagged version leaves the caches.
    pub(super) fn leave_caches(&mut self, core: CoreId, version: Version) {
        let at = self.work.now();
        let line = version.line;
        let persist_buffers = self.persist_buffers.exist();
        if persist_buffers && is_pmem(line) {
            if version.dirty {
                self.persist_buffers.count_dropped();
                self.work.push(Task::DrainLine { line, at });
            }
        } else if !self.memories.has_write_back_buffer(persist_buffers) {
            self.work.push(Task::LeaveCaches { core, version });
            self.work.push(Task::Until { condition: Condition::WriteBackBuffer, since: at, now: at });
        } else if !is_pmem(line) {
            let write = Write::line(line, version.data, Cause::Data);
            self.work.push(Task::Submit { core, from: Origin::Llc, write, at });
        } else if is_older(line) {
            // It is committed, and the only version that is.
            self.go_home(core, Version { line: line_of(line), ..version }, at);
        } else if self.design.has(Hooks::EVICT) {
            self.ask_evict(core, version);
        } else if version.dirty {
            self.go_home(core, version, at);
        }
    }

    pub(super) fn ask_evict(&mut self, core: CoreId, version: Version) {
        let at = self.work.now();
        if self.agenda.due() <= at {
            // Pending events happen before the design's state changes, not between this and the writes that it requests.
            self.work.push(Task::AskEvict { core, version });
            return self.work.push(Task::Advance { until: at });
        }
        let mut out = self.design.actions();
        let cx = self.cx(core, at);
        match self.design.evict(&cx, LevelId::Llc, &version, &mut out) {
            Evict::Proceed => {
                self.push_actions(core, at, out);
                if version.dirty {
                    self.go_home(core, version, at);
                }
            }
            Evict::To { at: place, cause, token } => {
                let from = Origin::Llc;
                let token = token.map(|token| WriteToken::new(token.0, from));
                let write = Write { token, from_llc_buffer: true, ..Write::line(place.line(), version.data, cause) };
                // Actions first: where the design has moved older versions to make room for this one comes
                // before anything that could be a crash point.
                self.after_actions(Task::Submit { core, from, write, at }, core, out);
            }
            Evict::Drop => self.push_actions(core, at, out),
            Evict::Abort(tx, why) => self.after_actions(Task::Abort { tx, why }, core, out),
            Evict::After(wait) => {
                self.work.push(Task::AskEvict { core, version });
                self.after_actions(Task::Await { wait }, core, out);
            }
        }
    }

    /// Pushes a task that comes after the actions of `out`.
    fn after_actions(&mut self, task: Task, core: CoreId, out: Actions) {
        self.work.push(task);
        self.push_actions(core, self.work.now(), out);
    }

    /// A dirty version is written to its home address.
    fn go_home(&mut self, core: CoreId, version: Version, at: Cycle) {
        // The last level evicts its own copy, even if a private cache has a newer one.
        let data = match self.caches.llc().find(version.line) {
            Some(slot) if self.design.tags_follow_newest_data() => *self.caches.llc().data(slot),
            _ => self.current_version(version).data,
        };
        let line = version.line;
        let write = Write { from_llc_buffer: true, ..Write::line(line, data, self.memories.home_cause(line)) };
        self.work.push(Task::Submit { core, from: Origin::Llc, write, at });
    }
}
